# SPDX-License-Identifier: Apache-2.0
"""What a source is: it plans lanes; a lane opens a reader on its own thread and asks it for one group at a time.

A reader is blocking, synchronous and alone: it shares nothing with other lanes but the `Board`. It raises a
`SourceError` when a whole group gave nothing; what fails for one device of several is returned as a failure beside
the others' samples. It never logs: what it says goes through `Outcome`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from msgspec import Struct

from gpufeed.clock import Clock
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import AnySample, Event, InputStatus
from gpufeed.model.ids import CollectorName, GpuUuid, GroupName, LaneId
from gpufeed.units import NS_PER_S

LATE_AFTER_NS: Final = 2 * NS_PER_S
STUCK_AFTER_NS: Final = 8 * NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Readings taken together at one period."""

    name: GroupName
    collector: CollectorName
    period_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFailure:
    """One device of a read that otherwise went well."""

    device: str
    reason: str  # the word of a SourceError
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one read gave. `lanes` replaces the lanes this one has found before; None leaves them as they are."""

    samples: tuple[AnySample, ...] = ()
    events: tuple[Event, ...] = ()
    inputs: tuple[InputStatus, ...] = ()
    failures: tuple[DeviceFailure, ...] = ()
    lanes: "tuple[LanePlan, ...] | None" = None


@dataclass(slots=True)
class Board:
    """What lanes tell one another. Each entry is written by one lane, replaced whole, and read by any."""

    gpu_pids: dict[LaneId, tuple[GpuUuid, tuple[int, ...]]] = field(default_factory=dict)
    idle_gpus: set[LaneId] = field(default_factory=set)  # no process: may be read at 1 s
    released: bool = False  # NVML is to be closed: GPU lanes give up their handles
    nvml_generation: int = 0  # of the last initialisation of NVML; written by nvml-init alone
    nvml_is_open: bool = False  # GPU lanes of another generation, or while this is False, make no call
    gpu_pods: frozenset[str] = frozenset()  # UIDs of pods whose processes hold GPUs; written by owners


@dataclass(slots=True)
class Counts:
    """Work done, counted where it is done. Each lane has its own; the writer adds them up."""

    nvml_calls: int = 0
    field_values: int = 0
    file_reads: int = 0


@dataclass(slots=True)
class Desk:
    """What a reader is given besides its own spec."""

    lane: LaneId
    clock: Clock
    config: ProbeConfig
    board: Board
    counts: Counts = field(default_factory=Counts)
    call: str = ""  # set before anything that may block: named when the lane hangs
    gpu_index: int | None = None  # set by GPU lanes, for lane_stuck_seconds
    gpu_uuid: GpuUuid | None = None


class Reader(Protocol):
    """Reads groups of one lane. Lives and dies on that lane's thread."""

    def read(self, group: GroupName) -> Outcome:
        """Everything of `group`, now. May block. Raises SourceError."""

    def close(self) -> None:
        """Let go of descriptors and handles. Called once, on the lane's thread, if that is not blocked."""


class NoSpec(Struct, frozen=True):
    """The spec of a lane that needs none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePlan:
    """One lane. Two equal plans are the same lane: it keeps running. `open` is a module-level function."""

    lane: LaneId
    groups: tuple[Group, ...]
    open: Callable[[Any, Desk], Reader]  # (spec, desk): runs on the lane's thread, may block, may raise SourceError
    spec: Struct = field(default_factory=NoSpec)
    late_after_ns: int = LATE_AFTER_NS
    stuck_after_ns: int = STUCK_AFTER_NS


class Source(Protocol):
    """What stands in `sources.builtin.BUILTIN`, and behind an entry point of group `gpufeed.sources`."""

    name: str

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """The lanes to run under `config`; none where the collectors are switched off. Opens nothing."""
