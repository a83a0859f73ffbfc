# SPDX-License-Identifier: Apache-2.0
"""What stays failed after the fault itself is silent: a fatal XID, a lost GPU. And what clears it.

A latch is cleared by one of four events only: the GPU was reset (its recovery action went back to none, its energy
counter began anew), the node was rebooted, a GPU that was gone answers again, or a person acknowledged it. A hang
that ends, a daemon restart and a missing reading clear nothing.
"""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from gpufeed.health.baselines import Baselines, after_reboot, remember
from gpufeed.health.xid_catalogue import CONTAINED_ERROR, DOUBLE_BIT_ERROR, classify
from gpufeed.model.gpu import GpuCondition, GpuFast, GpuSlow
from gpufeed.model.host import NodeInfo
from gpufeed.model.ids import GpuKey, GpuUuid, IbPortKey
from gpufeed.model.state import GpuRecord, NodeState, Verdict
from gpufeed.units import NS_PER_S

DECIDES_AFTER_NS: Final = 60 * NS_PER_S
"""How long a double-bit error waits for the word that it was contained."""

GONE: Final = frozenset({"lost", "missing"})
RESTARTED_SHARE: Final = 0.5
"""An energy counter below this share of what it was has begun anew: no glitch of the last digits looks like that."""


class XidLatch(Struct, frozen=True, kw_only=True):
    """The gravest XID of a GPU since it was last known to be well."""

    xid: int
    level: Literal[1, 2]
    since_ns: int  # monotonic
    was_gone: bool = False  # lost, missing or to be reset at some moment since
    asked_for_action: bool = False  # the driver has named a recovery action since
    energy_j: float | None = None  # highest since


class LostLatch(Struct, frozen=True, kw_only=True):
    """A GPU that fell off its bus, or is no longer there."""

    since_ns: int  # monotonic
    detail: str = ""


class Latches(Struct, frozen=True, kw_only=True):
    """All latches and the memory of the checks; goes into the state file as it is."""

    boot_id: str | None = None
    at_ns: int = 0  # monotonic: of the last fold
    xids: dict[GpuUuid, XidLatch] = field(default_factory=dict)
    lost: dict[GpuUuid, LostLatch] = field(default_factory=dict)
    undecided: dict[GpuUuid, int] = field(default_factory=dict)  # since when a double-bit error waits for its word
    seen: dict[GpuUuid, dict[int, int]] = field(default_factory=dict)  # counts by XID, already answered
    baselines: Baselines = Baselines()


def observe(latches: Latches, state: NodeState) -> Latches:
    """Set and clear latches by what `state` shows, and remember what the checks need."""
    latches = _after_boot(latches, state)
    seen = {uuid: dict(totals.by_xid) for uuid, totals in state.xids.items()}
    return replace(
        _decided(_with_new_xids(_returned(latches, state), state), state),
        at_ns=state.time.monotonic_ns,
        seen=seen,
        lost=dict(_lost(latches, state)),
        baselines=remember(latches.baselines, state),
    )


def acknowledge(latches: Latches, uuid: GpuUuid) -> Latches:
    """A person has taken note of this GPU's fault. One that persists latches again with the next frame."""
    return replace(
        latches,
        xids={key: latch for key, latch in latches.xids.items() if key != uuid},
        lost={key: latch for key, latch in latches.lost.items() if key != uuid},
        undecided={key: since for key, since in latches.undecided.items() if key != uuid},
    )


def forget_port(latches: Latches, port: IbPortKey) -> Latches:
    """A port whose cable was taken away on purpose: it need not come back."""
    left = latches.baselines.ports_once_up - {port}
    return replace(latches, baselines=replace(latches.baselines, ports_once_up=left))


def holds(latches: Latches, verdict: Verdict) -> bool:
    """Whether a latch still stands behind a verdict of `xid` or `lost` that one was behind."""
    held = latches.xids if verdict.check == "xid" else latches.lost
    return verdict.subject in {GpuKey(uuid) for uuid in held}


def is_of_this_boot(latches: Latches, state: NodeState) -> bool:
    """Whether the latches are known to belong to the boot that `state` runs in; unknown at the very start."""
    return latches.boot_id is None or _boot_id(state) is not None


def answers(state: NodeState, gpu: GpuRecord) -> bool:
    """Whether a GPU is known to be well right now: said by a fresh reading, not by memory."""
    held = state.latest(GpuCondition).get(gpu.index)
    return held is not None and held.sample.condition == "ok" and gpu.condition == "ok"


def _boot_id(state: NodeState) -> str | None:
    for held in state.latest(NodeInfo).values():
        return held.sample.boot_id
    return None


def _after_boot(latches: Latches, state: NodeState) -> Latches:
    boot_id = _boot_id(state) or latches.boot_id
    has_rebooted = latches.boot_id not in {None, boot_id} or state.time.monotonic_ns < latches.at_ns
    if has_rebooted:
        return Latches(boot_id=boot_id, baselines=after_reboot(latches.baselines))
    return replace(latches, boot_id=boot_id)


def _lost(latches: Latches, state: NodeState) -> Iterator[tuple[GpuUuid, LostLatch]]:
    for uuid, latch in latches.lost.items():
        if uuid not in state.gpus or not answers(state, state.gpus[uuid]):
            yield uuid, latch
    for uuid, gpu in state.gpus.items():
        if gpu.condition in GONE and uuid not in latches.lost:
            yield uuid, LostLatch(since_ns=state.time.monotonic_ns, detail=gpu.detail)


def _returned(latches: Latches, state: NodeState) -> Latches:
    """XID latches follow their GPUs; those that are well again are dropped."""
    followed = ((uuid, _followed(uuid, latch, state)) for uuid, latch in latches.xids.items())
    return replace(latches, xids={uuid: latch for uuid, latch in followed if latch is not None})


def _followed(uuid: GpuUuid, latch: XidLatch, state: NodeState) -> XidLatch | None:
    gpu = state.gpus.get(uuid)
    if gpu is None:
        return latch
    slow = state.latest(GpuSlow).get(GpuKey(uuid))
    fast = state.latest(GpuFast).get(GpuKey(uuid))
    action = slow.sample.recovery_action if slow else None
    energy_j = fast.sample.energy_j if fast else None
    is_reset = (latch.asked_for_action and action == 0) or (
        energy_j is not None and latch.energy_j is not None and energy_j < RESTARTED_SHARE * latch.energy_j
    )
    if is_reset or (latch.was_gone and answers(state, gpu)):
        return None
    return replace(
        latch,
        was_gone=latch.was_gone or gpu.condition in {*GONE, "reset_required"},
        asked_for_action=latch.asked_for_action or bool(action),
        energy_j=max((joules for joules in (energy_j, latch.energy_j) if joules is not None), default=None),
    )


def _new_xids(latches: Latches, state: NodeState) -> Iterator[tuple[GpuUuid, set[int]]]:
    for uuid, totals in state.xids.items():
        seen = latches.seen.get(uuid, {})
        if totals.by_xid != seen:
            yield uuid, {xid for xid, count in totals.by_xid.items() if count > 0 and count != seen.get(xid, 0)}


def _with_new_xids(latches: Latches, state: NodeState) -> Latches:
    now_ns = state.time.monotonic_ns
    xids, undecided = dict(latches.xids), dict(latches.undecided)
    for uuid, new in _new_xids(latches, state):
        if CONTAINED_ERROR in new:
            undecided.pop(uuid, None)
        elif DOUBLE_BIT_ERROR in new:
            undecided.setdefault(uuid, now_ns)
        for xid in sorted(new - {DOUBLE_BIT_ERROR}):
            _latch(xids, uuid, xid, now_ns)
    return replace(latches, xids=xids, undecided=undecided)


def _decided(latches: Latches, state: NodeState) -> Latches:
    now_ns = state.time.monotonic_ns
    due = [uuid for uuid, since_ns in latches.undecided.items() if now_ns - since_ns >= DECIDES_AFTER_NS]
    xids = dict(latches.xids)
    for uuid in due:
        _latch(xids, uuid, DOUBLE_BIT_ERROR, latches.undecided[uuid])
    undecided = {uuid: since_ns for uuid, since_ns in latches.undecided.items() if uuid not in due}
    return replace(latches, xids=xids, undecided=undecided)


def _latch(xids: dict[GpuUuid, XidLatch], uuid: GpuUuid, xid: int, since_ns: int) -> None:
    level = classify(xid).level
    held = xids.get(uuid)
    if level != 0 and (held is None or held.level < level):
        xids[uuid] = XidLatch(xid=xid, level=level, since_ns=since_ns)
