# SPDX-License-Identifier: Apache-2.0
"""The frame: all that the server learns of the node in one tick, and all that a recording keeps.

A frame holds what is new since the frame before: readings that lanes finished, what became of the others, events.
All time is inside: whoever folds a frame needs no clock.
"""

from typing import Literal

from msgspec import Struct

from gpufeed.model.fabric import IbCounters, IbDevice, IbErrors, IbPort
from gpufeed.model.gpu import (
    DriverInfo,
    GpmInterval,
    GpuCondition,
    GpuFast,
    GpuIdentity,
    GpuProcesses,
    GpuSlow,
    MigInstances,
    NvlinkTotals,
    PcieBytes,
    PciGpus,
)
from gpufeed.model.gpu_errors import GpuC2c, GpuErrorDetail, GpuErrors
from gpufeed.model.host import HostCpu, HostMemory, JobTasks, NodeInfo, Pressure
from gpufeed.model.ids import CollectorName, GpuUuid, GroupName, LaneId
from gpufeed.model.jobs import Allocations, JobFiles, JobOwner, JobReport, JobUsage, PodName, RefusedReports
from gpufeed.model.network import NetCounters, NetEvents, NetInterface
from gpufeed.model.nvlink import NvlinkLinks
from gpufeed.model.sample import Extension
from gpufeed.model.storage import StorageCounters, StorageInfo

AnySample = (
    DriverInfo | PciGpus | GpuIdentity | GpuCondition | GpuFast | GpmInterval | PcieBytes | NvlinkTotals
    | GpuSlow | GpuProcesses | IbDevice | IbPort | IbCounters | IbErrors | StorageInfo | StorageCounters
    | NodeInfo | Pressure | HostCpu | HostMemory | JobTasks | Extension
    | GpuErrors | GpuErrorDetail | GpuC2c | NvlinkLinks | NetInterface | NetCounters | NetEvents
    | JobOwner | PodName | Allocations | JobFiles | JobUsage | JobReport | RefusedReports | MigInstances
)  # fmt: skip
"""The closed union that may cross the wire."""

InputState = Literal["available", "absent", "unsupported", "denied", "broken", "released"]


class FrameTime(Struct, frozen=True, array_like=True):
    """One moment on three clocks, in nanoseconds."""

    monotonic_ns: int
    boottime_ns: int
    wall_ns: int


class Reading(Struct, frozen=True, array_like=True):
    """One finished read of one group by one lane: replaces that lane's reading of the same group before it."""

    lane: LaneId
    group: GroupName
    collector: CollectorName
    began_ns: int  # monotonic
    ended_ns: int  # monotonic: the time the samples stand for, if they carry none of their own
    period_ns: int  # in force: when the next one is due; staleness is counted in these
    samples: tuple[AnySample, ...]


class Failure(Struct, frozen=True, array_like=True):
    """A read that gave nothing, or one device of a read that did."""

    lane: LaneId
    group: GroupName
    collector: CollectorName
    at_ns: int  # monotonic
    reason: str  # absent, unsupported, denied, lost, reset_required, broken, parse
    detail: str = ""


class LaneStatus(Struct, frozen=True, array_like=True):
    """A lane at the time of the frame, busy or not."""

    lane: LaneId
    collector: CollectorName
    busy_since_ns: int | None  # monotonic start of the call outstanding; None: idle
    late_after_ns: int
    stuck_after_ns: int
    call: str = ""  # what is outstanding: an NVML function, a file
    fast_period_ns: int | None = None  # in force, where the governor lengthened it
    busy_ns: int = 0  # wall time spent reading since the lane began
    reads: int = 0
    gpu: int | None = None  # NVML index, on GPU lanes
    uuid: GpuUuid | None = None  # once known


class InputStatus(Struct, frozen=True, array_like=True):
    """What became known of an input: found once, said once, said again when it changes."""

    input: str  # gpm, pressure, nfs, infiniband, task_states …
    scope: str  # the device, or empty for the node
    state: InputState
    reason: str = ""
    fix: str = ""  # what a person can do about it


class XidEvent(Struct, frozen=True, array_like=True, tag="xid"):
    """An XID reported by the driver or the kernel log."""

    at_ns: int  # monotonic
    xid: int
    uuid: GpuUuid | None
    pci_bus_id: str | None = None
    origin: Literal["nvml", "kernel_log"] = "nvml"
    text: str = ""
    sequence: int | None = None  # of the kernel log's record: the same after the log was read anew


class GpuEvent(Struct, frozen=True, array_like=True, tag="gpu_event"):
    """Any other event of a GPU; kinds are `mig_changed`, `recovery_action_changed`, `unavailable`, `driver_changed`."""

    at_ns: int
    kind: str
    uuid: GpuUuid | None
    detail: str = ""


Event = XidEvent | GpuEvent


class ProbeCost(Struct, frozen=True, array_like=True):
    """What the probe itself has used since it started."""

    cpu_ns: int
    resident_bytes: int
    nvml_calls: int
    field_values: int
    file_reads: int


class Frame(Struct, frozen=True, array_like=True, tag="frame"):
    """One tick of the node."""

    sequence: int
    time: FrameTime
    lanes: tuple[LaneStatus, ...] = ()
    readings: tuple[Reading, ...] = ()
    failures: tuple[Failure, ...] = ()
    inputs: tuple[InputStatus, ...] = ()
    events: tuple[Event, ...] = ()
    withdrawn: tuple[LaneId, ...] = ()  # lanes that ended: all they read is gone
    cost: ProbeCost | None = None
    probe_pid: int = 0
    gap: str = ""  # not empty: made by the server because the probe says nothing; says why
