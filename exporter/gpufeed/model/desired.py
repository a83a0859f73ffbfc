# SPDX-License-Identifier: Apache-2.0
"""What the server wants of the probe: the part of the configuration that decides which lanes run and how."""

from typing import Final

from msgspec import Struct, field

from gpufeed.model.ids import CollectorName, GroupName

OFF_UNLESS_ASKED: Final[frozenset[CollectorName]] = frozenset({"gpfs"})
"""Collectors that do what nobody expects of a monitor: this one starts a process."""


class CollectorOptions(Struct, frozen=True, array_like=True):
    """One collector's section. Keys a collector does not know stay at their default."""

    enabled: bool = True
    include: str = ".*"
    exclude: str = ""
    exclude_mounts: str = ""
    target_from: str = "mountpoint"


class SimulatedNode(Struct, frozen=True, array_like=True):
    """Where the truth of a node that does not exist is found: the probe loads the simulated NVML over it."""

    truth_path: str


class ProbeConfig(Struct, frozen=True, array_like=True, kw_only=True):
    """Everything the probe needs to know. Equal configurations need no action."""

    procfs: str = "/proc"
    sysfs: str = "/sys"
    rootfs: str = "/"
    runtime_dir: str  # lane locks live here
    state_dir: str | None = None  # None: nothing is kept over a restart
    tick_ns: int = 250_000_000  # how often a frame is sent at least
    fast_period_ns: int = 500_000_000
    slow_period_ns: int = 10_000_000_000
    rare_period_ns: int = 60_000_000_000
    periods_ns: dict[GroupName, int] = field(default_factory=dict)
    cost_limit_ratio: float = 0.03  # of one core
    collectors: dict[CollectorName, CollectorOptions] = field(default_factory=dict)
    extra_sources: tuple[str, ...] = ()
    simulated: SimulatedNode | None = None
    job_users: bool = False  # whether a job's user may leave the node
    driver_crashes: int = 0  # probes that crashed in a row: the driver's library is left alone meanwhile
    capture_dir: str | None = None  # what readers see is laid down there
    reports_dir: str | None = None  # where jobs put text files about themselves
    report_socket: str | None = None  # where they send the same

    def options(self, collector: CollectorName) -> CollectorOptions:
        """The section of `collector`, or its defaults."""
        return self.collectors.get(collector) or CollectorOptions(enabled=collector not in OFF_UNLESS_ASKED)

    def period_ns(self, group: GroupName) -> int:
        """The configured period of a group; its speed (`.fast`, `.slow`, `.rare`) decides where none is set."""
        explicit = self.periods_ns.get(group)
        if explicit is not None:
            return explicit
        speed = group.rpartition(".")[2]
        return {"slow": self.slow_period_ns, "rare": self.rare_period_ns}.get(speed, self.fast_period_ns)
