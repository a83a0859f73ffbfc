# SPDX-License-Identifier: Apache-2.0
"""States for tests of health: a well node of two GPUs and one port, and what may befall it."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from gpufeed.health.fold import Verdicts, fold
from gpufeed.health.latches import Latches
from gpufeed.model.fabric import IbErrors, IbPort
from gpufeed.model.frame import FrameTime, InputStatus
from gpufeed.model.gpu import DriverInfo, GpuCondition, GpuFast, GpuIdentity, GpuSlow
from gpufeed.model.host import NodeInfo
from gpufeed.model.ids import GpuKey, GpuUuid, GroupName, IbPortKey, LaneId, StorageKey
from gpufeed.model.sample import Sample
from gpufeed.model.state import GpuRecord, Held, NodeState, Subject, Verdict, XidTotals
from gpufeed.model.storage import StorageCounters

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
START = 1_000 * SECOND
ONE, TWO = GpuUuid("GPU-1"), GpuUuid("GPU-2")
PORT = IbPortKey("mlx5_0", 1)
NFS = StorageKey("nfs", "/data")
BOOT = "boot-1"


def record(uuid: GpuUuid, condition: Any = "ok", **changes: Any) -> GpuRecord:
    index = 0 if uuid == ONE else 1
    identity = GpuIdentity(gpu=GpuKey(uuid), index=index, pcie_width_max=16, pcie_generation_max=5)
    of = GpuRecord(uuid=uuid, index=index, lane=LaneId(f"gpu{index}"), identity=identity, condition=condition)
    return replace(of, **changes)


def holding(*samples: Sample) -> dict[type[Sample], Mapping[Hashable, Held[Any]]]:
    found: dict[type[Sample], dict[Hashable, Held[Any]]] = {}
    for sample in samples:
        found.setdefault(type(sample), {})[sample.subject] = Held(
            sample=sample, lane=LaneId("x"), group=GroupName("x.fast"), collector="nvml", read_at_ns=0, stale_at_ns=0
        )
    return dict(found)


def node(*samples: Sample, at_ns: int = START, boot_id: str | None = BOOT, **changes: Any) -> NodeState:
    """A node of which these samples are fresh. Both GPUs answer, unless records say otherwise."""
    gpus = changes.pop("gpus", {ONE: record(ONE), TWO: record(TWO)})
    answering = [
        GpuCondition(index=gpu.index, uuid=uuid, condition=gpu.condition)
        for uuid, gpu in gpus.items()
        if gpu.condition not in {"hung", "missing"}
    ]
    boot = [NodeInfo(nodename="n", boot_id=boot_id)] if boot_id else []
    state = NodeState(
        time=FrameTime(monotonic_ns=at_ns, boottime_ns=at_ns, wall_ns=at_ns),
        samples=holding(*answering, *boot, *samples),
        gpus=gpus,
        inputs={("xid", uuid): InputStatus("xid", uuid, "available") for uuid in gpus},
    )
    return replace(state, **changes)


def xids(uuid: GpuUuid, **counts: int) -> dict[GpuUuid, XidTotals]:
    """Totals of one GPU: `xids(ONE, x79=1)`."""
    return {uuid: XidTotals(by_class={}, by_xid={int(name[1:]): count for name, count in counts.items()})}


def found(state: NodeState, subject: Subject, check: str, latches: Latches | None = None) -> Verdict | None:
    """The verdict on one thing when nothing was known before."""
    verdicts, _ = fold({}, state, latches or Latches())
    return verdicts.get((subject, check))


def levels(subject: Subject, check: str, *states: NodeState) -> list[int | None]:
    """The level after each of several states in turn."""
    verdicts: Verdicts = {}
    latches = Latches()
    seen: list[int | None] = []
    for state in states:
        verdicts, latches = fold(verdicts, state, latches)
        verdict = verdicts.get((subject, check))
        seen.append(None if verdict is None else verdict.level)
    return seen


def level(state: NodeState, subject: Subject, check: str, latches: Latches | None = None) -> int | None:
    verdict = found(state, subject, check, latches)
    return None if verdict is None else verdict.level


def fast(uuid: GpuUuid = ONE, **values: Any) -> GpuFast:
    return GpuFast(gpu=GpuKey(uuid), **values)


def slow(uuid: GpuUuid = ONE, **values: Any) -> GpuSlow:
    return GpuSlow(gpu=GpuKey(uuid), **values)


def port(state_id: int | None = 4, physical: int | None = 5, *, is_fabric: bool = True) -> IbPort:
    return IbPort(port=PORT, state_id=state_id, physical_state_id=physical, is_fabric=is_fabric)


def ib_errors(**errors: int) -> IbErrors:
    return IbErrors(port=PORT, errors=errors, hw_events={})


def nfs(timeouts: int | None = None, errors: int | None = None) -> StorageCounters:
    return StorageCounters(storage=NFS, timeouts=timeouts, errors=errors)


def driver(device_count: int) -> DriverInfo:
    return DriverInfo(device_count=device_count)
