# SPDX-License-Identifier: Apache-2.0
"""What has been folded from all frames: the one object that exposition, health, alerts, explain and page read.

Replaced whole at every step, never changed. A reader holds one and sees one moment.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, cast

from gpufeed.model.balance import Layer, LayerCapacity, LayerName, StallCause, StallCounts, Straggler
from gpufeed.model.evidence import Evidence
from gpufeed.model.frame import FrameTime, InputStatus, LaneStatus, ProbeCost
from gpufeed.model.gpu import GpuConditionWord, GpuIdentity
from gpufeed.model.ids import CollectorName, GpuKey, GpuUuid, GroupName, IbPortKey, JobKey, LaneId, StorageKey
from gpufeed.model.jobs import JobUsage
from gpufeed.model.sample import Sample

S = TypeVar("S", bound=Sample)

GpuStateName = Literal[
    "busy", "communicating", "starved", "throttled", "idle_held", "idle_free", "fault", "unknown"
]  # fmt: skip


class StateCause(NamedTuple):
    """A state of a GPU and its cause, as the labels of `gpu_state_seconds_total`."""

    state: GpuStateName
    cause: str


CAUSES: Final[Mapping[GpuStateName, tuple[str, ...]]] = MappingProxyType(
    {
        "busy": ("tensor", "memory", "other"),
        "communicating": ("nvlink", "fabric", "pcie_p2p"),
        "starved": (
            "storage", "checkpoint", "host_cpu", "host_memory", "pcie", "nvlink", "fabric", "peer", "unknown",
        ),
        "throttled": ("thermal", "power_brake", "power_cap"),
        "idle_held": ("",),
        "idle_free": ("",),
        "fault": ("lost", "xid", "ecc", "fabric_state", "recovery_pending", "hung"),
        "unknown": ("no_data", "stale", "conflict", "unsupported"),
    }
)  # fmt: skip
"""Every (state, cause) there is (design §5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(Generic[S]):
    """The latest sample of one thing, until it is stale."""

    sample: S
    lane: LaneId
    group: GroupName
    collector: CollectorName
    read_at_ns: int
    stale_at_ns: int  # read_at + max(3 periods, 10 s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Because:
    """The numbers by which time of one GPU was counted as one cause; means, in which old ones fade."""

    weight_s: float  # time they stand for
    at_ns: int  # monotonic: end of the last interval that counted
    confidence: float | None
    evidence: tuple[Evidence, ...]
    runner_up: StateCause | None = None  # of the last one


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Where one GPU's time went, in integer nanoseconds that add up to `tracked_ns` exactly."""

    state_ns: Mapping[StateCause, int]
    tracked_ns: int
    decided_until_ns: int  # monotonic
    current: StateCause
    confidence_ratio: float | None = None
    evidence: tuple[Evidence, ...] = ()
    runner_up: StateCause | None = None
    reasons: Mapping[StateCause, Because] = field(default_factory=lambda: _nothing())  # noqa: PLW0108 defined below


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRecord:
    """A GPU that is remembered, present or not."""

    uuid: GpuUuid
    index: int
    lane: LaneId
    identity: GpuIdentity | None  # None: seen only as an index so far
    condition: GpuConditionWord | Literal["hung", "missing"]
    detail: str = ""
    first_seen_ns: int = 0
    in_use_at_ns: int | None = None  # last moment a process held it
    processes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTotals:
    """What the server accumulates for a GPU, because the hardware gives only windows or wrapping counters."""

    engine_active_s: Mapping[str, float] = field(default_factory=dict)  # graphics, sm, tensor, dram
    pipe_active_s: Mapping[str, float] = field(default_factory=dict)
    pcie_receive_bytes: float | None = None
    pcie_transmit_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class XidTotals:
    """XIDs counted for a GPU."""

    by_class: Mapping[str, int]
    by_xid: Mapping[int, int] = field(default_factory=dict)
    last_wall_s: Mapping[int, float] = field(default_factory=dict)


Subject = GpuKey | IbPortKey | StorageKey | Literal["host", "self"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One health check of one thing: 0 ok, 1 degraded, 2 failed."""

    subject: Subject
    check: str
    level: Literal[0, 1, 2]
    since_ns: int  # monotonic
    reason: str = ""
    action: str = ""  # app, gpu_reset, node_reboot, drain, replace, tune, investigate
    is_latched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorRecord:
    """How a collector fares."""

    errors: Mapping[str, int] = field(default_factory=dict)  # by reason
    last_success_ns: int | None = None  # monotonic
    last_success_wall_s: float | None = None
    duration_s: float | None = None  # of its last read
    is_successful: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRecord:
    """The probe as the server sees it."""

    is_up: bool = False
    pid: int = 0
    cost: ProbeCost | None = None
    frames: int = 0
    silent_ns: int = 0  # since it was last heard; since the server's start where it never was


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """The job that works on a GPU. Where several do, what they have in common; the rest is empty."""

    scheduler: str = ""
    job_id: str = ""  # Kubernetes: the pod's UID
    step: str = ""
    k8s_namespace: str = ""
    k8s_pod: str = ""
    k8s_container: str = ""
    user: str = ""
    is_shared: bool = False  # between jobs; not between the steps of one


@dataclass(frozen=True, slots=True, kw_only=True)
class NearPort:
    """A fabric port near to a GPU."""

    port: IbPortKey
    netdev: str
    path: Literal["same_switch", "same_numa", "remote"]


_EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})


def _nothing() -> Mapping[Any, Any]:
    return _EMPTY  # a factory, because before Python 3.12 this type counts as a mutable default


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWork:
    """What the processes of one step or pod do, and what they have used so far."""

    job: JobView  # without container and user: it may have several
    usage: JobUsage | None = None
    threads: int | None = None
    running: int | None = None
    blocked: int | None = None
    busiest_thread_ratio: float | None = None  # of one processor


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """What a step or pod reports of itself, by the processes of this node. None: it does not report that."""

    model_flops: float | None = None  # never falls
    data_wait_s: float | None = None  # of all its processes; never falls
    data_wait_ratio: float | None = None  # of their time, lately
    utilization_ratio: float | None = None  # of the peak of its GPUs here, lately


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """Whose the GPUs are, what their jobs read, and the ports they are nearest to."""

    jobs: Mapping[GpuKey, JobView] = field(default_factory=_nothing)  # of boards, or of GPU instances; never both
    storages: Mapping[GpuKey, tuple[StorageKey, ...]] = field(default_factory=_nothing)
    allocated: Mapping[GpuUuid, bool] = field(default_factory=_nothing)  # only GPUs of which it is known
    ports: Mapping[GpuUuid, tuple[NearPort, ...]] = field(default_factory=_nothing)
    work: tuple[JobWork, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """One node at one moment."""

    time: FrameTime
    samples: Mapping[type[Sample], Mapping[Hashable, Held[Any]]] = field(default_factory=_nothing)  # fresh ones only
    gpus: Mapping[GpuUuid, GpuRecord] = field(default_factory=_nothing)
    gpu_totals: Mapping[GpuKey, GpuTotals] = field(default_factory=_nothing)
    attributions: Mapping[GpuKey, Attribution] = field(default_factory=_nothing)
    xids: Mapping[GpuUuid, XidTotals] = field(default_factory=_nothing)
    verdicts: Mapping[tuple[Subject, str], Verdict] = field(default_factory=_nothing)
    lanes: Mapping[LaneId, LaneStatus] = field(default_factory=_nothing)
    inputs: Mapping[tuple[str, str], InputStatus] = field(default_factory=_nothing)
    collectors: Mapping[CollectorName, CollectorRecord] = field(default_factory=_nothing)
    gpus_expected: Mapping[str, int] = field(default_factory=_nothing)  # by origin: config, inventory, pci
    ib_flaps: Mapping[IbPortKey, int] = field(default_factory=_nothing)
    probe: ProbeRecord = ProbeRecord()
    ownership: Ownership = field(default_factory=Ownership)
    cpu_s: Mapping[str, float] = field(default_factory=_nothing)  # of the node, by mode; never falls
    layers: Mapping[LayerName, Layer] = field(default_factory=_nothing)
    storage_capacity: Mapping[tuple[StorageKey, str], LayerCapacity] = field(default_factory=_nothing)  # by direction
    stragglers: Mapping[GpuUuid, Straggler] = field(default_factory=_nothing)
    stalls: Mapping[StallCause, StallCounts] = field(default_factory=_nothing)
    tensor_intensity: Mapping[GpuUuid, float] = field(default_factory=_nothing)
    peak_flops: Mapping[GpuUuid, Mapping[str, float]] = field(default_factory=_nothing)  # by data type
    progress: Mapping[JobKey, JobProgress] = field(default_factory=_nothing)

    def latest(self, kind: type[S]) -> Mapping[Hashable, Held[S]]:
        """Every fresh sample of a kind, by its subject."""
        return cast("Mapping[Hashable, Held[S]]", self.samples.get(kind, _EMPTY))
