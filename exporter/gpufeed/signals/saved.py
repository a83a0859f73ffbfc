# SPDX-License-Identifier: Apache-2.0
"""What outlives the daemon: one versioned structure, as MessagePack. Whatever cannot be read was never there."""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from gpufeed.health.baselines import after_reboot
from gpufeed.health.latches import Latches
from gpufeed.model.frame import FrameTime
from gpufeed.model.gpu import GpuIdentity
from gpufeed.model.host import NodeInfo
from gpufeed.model.ids import GpuUuid, IbPortKey
from gpufeed.model.state import NodeState, XidTotals
from gpufeed.signals.baselines import BaselineName, Baselines, Learned
from gpufeed.signals.flaps import Flaps, PortPhase
from gpufeed.units import NS_PER_S

SAVED_VERSION: Final = 1
BOOT_ID_WAIT_FRAMES: Final = 120
"""A node that has not said its boot id by then will not: the clocks have to tell."""
BOOT_MOMENT_NS: Final = 120 * NS_PER_S
"""Two boots are not this near each other, and a wall clock is seldom set by more."""

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0, lt=1e13)]


class SavedXids(Struct, frozen=True, array_like=True):
    """`XidTotals` of one GPU."""

    by_class: dict[str, Count]
    by_xid: dict[int, Count]
    last_wall_s: dict[int, float]


class SavedPort(Struct, frozen=True, array_like=True):
    """Flaps of one port."""

    port: IbPortKey
    flaps: Count
    was_up: bool
    is_up: bool
    link_downed: Count | None


class SavedBaseline(Struct, frozen=True, array_like=True):
    """One learned quantile."""

    name: BaselineName
    of: str
    value: Positive
    seen_s: Positive


class Saved(Struct, frozen=True, array_like=True):
    """All of it."""

    version: int
    boot_id: str | None
    time: FrameTime
    totals: dict[GpuUuid, SavedXids] = {}
    ports: tuple[SavedPort, ...] = ()
    slots: dict[str, GpuIdentity] = {}
    baselines: tuple[SavedBaseline, ...] = ()
    latches: Latches = Latches()

    @property
    def xids(self) -> Mapping[GpuUuid, XidTotals]:
        """XIDs counted until then."""
        return {
            uuid: XidTotals(by_class=saved.by_class, by_xid=saved.by_xid, last_wall_s=saved.last_wall_s)
            for uuid, saved in self.totals.items()
        }

    def slots_beside(self, now: Mapping[str, GpuIdentity]) -> Mapping[str, GpuIdentity]:
        """The inventory of then, where the slot has not been read yet."""
        found = {identity.gpu.uuid for identity in now.values()}
        return {**{slot: gpu for slot, gpu in self.slots.items() if gpu.gpu.uuid not in found}, **now}

    def baselines_beside(self, now: Baselines) -> Baselines:
        """What had been learned; it weighs more than what a few seconds have taught since."""
        saved = {(item.name, item.of): Learned(item.value, item.seen_s) for item in self.baselines}
        return Baselines({**now.entries, **saved})

    def flaps_beside(self, now: Flaps) -> Flaps:
        """Flaps of both lives; a port that went down in between is known to have been up."""
        counts, phases = dict(now.counts), dict(now.phases)
        for saved in self.ports:
            counts[saved.port] = saved.flaps + now.counts.get(saved.port, 0)
            known = now.phases.get(saved.port)
            if known is None:
                phases[saved.port] = PortPhase(was_up=saved.was_up, is_up=saved.is_up, link_downed=saved.link_downed)
        return Flaps(counts=counts, phases=phases)

    def latches_beside(self, now: Latches, *, is_same_boot: bool) -> Latches:
        """Latches of both lives. A reboot clears them, not what should be connected."""
        then = self.latches
        if not is_same_boot:
            kept = after_reboot(then.baselines)
            ports = kept.ports_once_up | now.baselines.ports_once_up
            return replace(now, baselines=replace(now.baselines, ports_once_up=ports))
        return replace(
            then,
            boot_id=now.boot_id or then.boot_id,
            at_ns=now.at_ns,
            xids={**then.xids, **now.xids},
            lost={**then.lost, **now.lost},
            undecided={**then.undecided, **now.undecided},
            seen={uuid: _sum(then.seen.get(uuid, {}), now.seen.get(uuid, {})) for uuid in {*then.seen, *now.seen}},
        )


def encoded(
    state: NodeState, *, flaps: Flaps, slots: Mapping[str, GpuIdentity], learned: Baselines, latches: Latches
) -> bytes:
    """As bytes for the state file."""
    return msgspec.msgpack.encode(
        Saved(
            version=SAVED_VERSION,
            boot_id=boot_id(state),
            time=state.time,
            totals={
                uuid: SavedXids(dict(total.by_class), dict(total.by_xid), dict(total.last_wall_s))
                for uuid, total in state.xids.items()
            },
            ports=tuple(
                SavedPort(port, flaps.counts.get(port, 0), phase.was_up, phase.is_up, phase.link_downed)
                for port, phase in flaps.phases.items()
            ),
            slots=dict(slots),
            baselines=tuple(
                SavedBaseline(name, of, entry.value, entry.seen_s) for (name, of), entry in learned.entries.items()
            ),
            latches=latches,
        )
    )


def decoded(data: bytes | None) -> Saved | None:
    """What was saved, or None: nothing, another version, or damaged."""
    if not data:
        return None
    try:
        saved = msgspec.msgpack.decode(data, type=Saved)
    except (
        ValueError,
        TypeError,
        RecursionError,
    ):  # msgspec's errors are ValueErrors; keys that are no keys, TypeErrors
        return None
    return saved if saved.version == SAVED_VERSION else None


def boot_id(state: NodeState) -> str | None:
    """Of this boot, once the host has been read."""
    return next((held.sample.boot_id for held in state.latest(NodeInfo).values()), None)


def is_same_boot(saved: Saved, state: NodeState) -> bool | None:
    """Whether `saved` is of the boot that runs now; None: not known yet."""
    now = boot_id(state)
    if now is not None and saved.boot_id is not None:
        return now == saved.boot_id
    if state.time.boottime_ns < saved.time.boottime_ns:
        return False
    if now is None and state.probe.frames < BOOT_ID_WAIT_FRAMES:
        return None
    moved_ns = (state.time.wall_ns - state.time.boottime_ns) - (saved.time.wall_ns - saved.time.boottime_ns)
    return abs(moved_ns) < BOOT_MOMENT_NS


def _sum(then: Mapping[int, int], now: Mapping[int, int]) -> dict[int, int]:
    return {xid: then.get(xid, 0) + now.get(xid, 0) for xid in {*then, *now}}
