# SPDX-License-Identifier: Apache-2.0
"""What a GPU and the part of a job that feeds it do while a phase lasts: levels that do not change within it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

LOADERS: Final = 4
"""Data-loading processes per GPU, and processors in the set that one GPU's processes may use."""

Cause = tuple[str, str]
"""(state, cause), as `gpufeed_gpu_state_seconds_total` has them."""

Occupant = Literal["none", "held"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShare:
    """The host side of one GPU's share of the job: its trainer process and its loaders."""

    trainer_cpu: float = 0.0  # cores used by the trainer's main thread, 0 to 1
    loader_cpu: float = 0.0  # cores used by each loader, 0 to 1
    loaders_running: int = 0  # in state R
    loaders_blocked: int = 0  # in state D; the rest sleeps
    nfs_read_bytes_per_s: float = 0.0
    nfs_write_bytes_per_s: float = 0.0
    nfs_read_rtt_s: float = 0.0008  # mean of one READ of a mebibyte, on the wire and in the server
    nfs_queue_s: float = 0.00002  # mean wait of one READ for a slot
    disk_read_bytes_per_s: float = 2e6
    disk_write_bytes_per_s: float = 5e6
    io_waiting: float = 0.0  # share of time some task waits (PSI some)
    io_stalled: float = 0.0  # share of time every task waits (PSI full)
    cpu_waiting: float = 0.01
    memory_waiting: float = 0.0
    memory_stalled: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Levels of one GPU. Ratios are 0 to 1; rates are shares of the model's capacity in one direction."""

    truth: Cause
    occupant: Occupant = "held"  # does a process hold a context
    graphics: float = 0.0  # share of time a kernel is resident
    sm: float = 0.0  # share of SMs with a warp
    occupancy: float = 0.0
    tensor: float = 0.0
    dram: float = 0.0
    memory: float = 0.85  # share of the board's memory allocated
    power: float = 0.1  # between idle (0) and the limit (1)
    clock: float = 1.0  # share of the highest SM clock
    temperature_c: float = 45.0  # where it settles
    nvlink: float = 0.0
    fabric: float = 0.0
    fabric_waiting: float = 0.0  # share of time the network card has data and no credit to send it
    pcie_receive: float = 0.0  # to the GPU
    pcie_transmit: float = 0.0
    reasons: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Clock-event reason → share of time it holds."""
    host: HostShare = HostShare()
    fabric_lost: float = 0.0  # packets per second that have to be sent again


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A part of a step."""

    duration_ns: int
    activity: Activity


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that happens to the node at a time, counted from its start; for ever where it has no end."""

    kind: Literal["lost", "hang", "driver_absent", "xid", "port_down", "mig"]
    from_ns: int = 0
    until_ns: int | None = None
    gpu: int | None = None  # None: all; a number the node has not: its last. port_down: the card beside it
    xid: int = 0
    recovery_action: int = 0  # field 230 while it lasts
    mig_layout: str = "off"  # of kind mig: how the board is split from then on, see mig.py

    def holds(self, age_ns: int) -> bool:
        """At this age of the node."""
        return self.from_ns <= age_ns and (self.until_ns is None or age_ns < self.until_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A story: what every GPU does, in a cycle, and what happens."""

    name: str
    description: str  # one line, for people
    phases: tuple[Phase, ...]
    others: Mapping[int, tuple[Phase, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """GPUs that follow another cycle than `phases`."""
    incidents: tuple[Incident, ...] = ()
    driver_version: str | None = None  # None: the simulator's usual one
    models: tuple[str, ...] = ()  # on which it makes sense; empty: on all
    mig_layout: str = "off"  # of every board, see mig.py

    def phases_of(self, gpu: int) -> tuple[Phase, ...]:
        """The cycle of one GPU."""
        return self.others.get(gpu, self.phases)
