# SPDX-License-Identifier: Apache-2.0
"""What the host side of a GPU's job did in an interval: its tasks, its processors, its storage, its pressure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpufeed.model.host import HostCpu, JobTasks, Pressure, PressureResource
from gpufeed.model.ids import GpuUuid, StorageKey
from gpufeed.signals.baselines import target_name
from gpufeed.signals.jobs import jobs_of
from gpufeed.signals.timeline import mean
from gpufeed.signals.view import View
from gpufeed.units import NS_PER_S

WINDOW_NS: Final = NS_PER_S
"""Host evidence is read this far to either side: states of tasks are samples, and few operations end in a moment."""


GRID_NS: Final = NS_PER_S // 4
"""Windows begin and end on this grid, so that GPUs read a few milliseconds apart look at the same evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Threads of the processes that hold the GPU, and of their children. None: not known."""

    running: float  # mean number in state R
    blocked: float  # mean number in state D
    cores: float | None = None  # processors used
    cpus: float | None = None  # processors they may use
    busiest: float | None = None  # share of one processor that the busiest thread used
    gpus: int = 1  # that share them

    @property
    def blocked_ratio(self) -> float:
        """Of those that do not sleep, the share that waits for input or output."""
        awake = self.running + self.blocked
        return self.blocked / awake if awake > 0 else 0.0

    @property
    def cpu_ratio(self) -> float | None:
        """Of the processors they may use, the share they use."""
        return None if self.cores is None or not self.cpus else self.cores / self.cpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Of all storage targets, the most that any shows. None: not known."""

    target: str = ""  # the one most is read from
    read_bytes_per_s: float = 0.0
    write_bytes_per_s: float = 0.0
    outstanding: float = 0.0  # reads under way, mean
    latency_s: float | None = None  # of a read of that target
    latency_usual_s: float | None = None
    read_saturation: float | None = None  # of its configured capacity
    write_saturation: float | None = None

    @property
    def slowdown(self) -> float | None:
        """Latency of a read over its usual one, once that has been learned."""
        if self.latency_s is None or not self.latency_usual_s:
            return None
        return self.latency_s / self.latency_usual_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """All of it. `storage` and `tasks` are None where nothing of the kind is read."""

    tasks: Tasks | None = None
    storage: Storage | None = None
    io_waiting: float | None = None  # shares of time
    cpu_waiting: float | None = None
    memory_waiting: float | None = None
    host_cores: float | None = None
    host_cpus: float | None = None

    @property
    def has_evidence(self) -> bool:
        """Whether anything at all is known of the host."""
        return any(value is not None for value in (self.tasks, self.storage, self.io_waiting, self.cpu_waiting))


def pipeline(uuid: GpuUuid, view: View, began_ns: int, ended_ns: int) -> Pipeline:
    """The host side of the job on one GPU, around [began_ns, ended_ns)."""
    began_ns = (began_ns - WINDOW_NS) // GRID_NS * GRID_NS
    ended_ns = -(-(ended_ns + WINDOW_NS) // GRID_NS) * GRID_NS
    jobs = jobs_of(uuid, view)
    cgroup = jobs[0].cgroup if len(jobs) == 1 else ""
    cpu = view.mean(HostCpu, "host", began_ns, ended_ns)
    return Pipeline(
        tasks=_tasks(jobs, view, began_ns, ended_ns),
        storage=view.once(("storage", began_ns, ended_ns), lambda: _storage(view, began_ns, ended_ns)),
        io_waiting=_pressure(view, cgroup, "io", (began_ns, ended_ns)),
        cpu_waiting=_pressure(view, cgroup, "cpu", (began_ns, ended_ns)),
        memory_waiting=_pressure(view, cgroup, "memory", (began_ns, ended_ns)),
        host_cores=cpu.get("cores"),
        host_cpus=cpu.get("cpus"),
    )


def _tasks(jobs: tuple[JobTasks, ...], view: View, began_ns: int, ended_ns: int) -> Tasks | None:
    """All task sets of the GPU together; the processors they may use are taken to be the same ones."""
    found = [view.mean(JobTasks, tasks.cgroup, began_ns, ended_ns) for tasks in jobs]
    known = [means for means in found if "running" in means]
    if not known:
        return None
    cores = [means["cores"] for means in known if "cores" in means]
    return Tasks(
        running=sum(means["running"] for means in known),
        blocked=sum(means["blocked"] for means in known),
        cores=sum(cores) if cores else None,
        cpus=max((means["cpus"] for means in known if "cpus" in means), default=None),
        busiest=max((means["busiest"] for means in known if "busiest" in means), default=None),
        gpus=max(1, len({gpu for tasks in jobs for gpu in tasks.gpus})),
    )


def _pressure(view: View, cgroup: str, resource: PressureResource, interval: tuple[int, int]) -> float | None:
    """Of the job's own control group where it is read, else of the whole node."""
    own = view.mean(Pressure, (cgroup, resource), *interval) if cgroup else {}
    return own.get("waiting", view.mean(Pressure, ("", resource), *interval).get("waiting"))


def _storage(view: View, began_ns: int, ended_ns: int) -> Storage | None:
    """Of the whole node: which targets a job reads from is not known."""
    lines = [(subject, line) for (_, subject), line in view.timelines.items() if isinstance(subject, StorageKey)]
    known = [(target, mean(line, began_ns, ended_ns)) for target, line in lines]
    targets = [(target, means) for target, means in known if "read" in means]
    if not targets:
        return None
    most_read, means = max(targets, key=lambda target: target[1]["read"])
    name = target_name(most_read)
    return Storage(
        target=name,
        read_bytes_per_s=means["read"],
        write_bytes_per_s=max(of.get("write", 0.0) for _, of in targets),
        outstanding=max(of.get("read_outstanding", 0.0) for _, of in targets),
        latency_s=means.get("read_latency"),
        latency_usual_s=view.baselines.usual("read_latency", name),
        read_saturation=_saturation(targets, view, "read"),
        write_saturation=_saturation(targets, view, "write"),
    )


def _saturation(targets: list[tuple[StorageKey, Mapping[str, float]]], view: View, direction: str) -> float | None:
    """The highest share of a configured capacity; None where none is configured."""
    shares = []
    for target, means in targets:
        capacity = view.settings.storage_capacity.get(target)
        if capacity is not None:
            most = capacity.read_bytes_per_s if direction == "read" else capacity.write_bytes_per_s
            if most:
                shares.append(means.get(direction, 0.0) / most)
    return max(shares, default=None)
