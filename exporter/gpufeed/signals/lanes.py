# SPDX-License-Identifier: Apache-2.0
"""Which lanes are late, which are stuck and since when: judged from what lanes say of themselves and a frame's time."""

from collections.abc import Mapping

from msgspec.structs import replace

from gpufeed.model.frame import Frame, LaneStatus
from gpufeed.model.ids import LaneId
from gpufeed.units import NS_PER_S, seconds

HANDOVER_NS = 30 * NS_PER_S
"""How long a stuck lane of a replaced probe is remembered until the new probe has found it locked."""


def busy_ns(lane: LaneStatus, now_ns: int) -> int:
    """How long the call outstanding has been so, in nanoseconds; 0 when there is none."""
    return 0 if lane.busy_since_ns is None else max(0, now_ns - lane.busy_since_ns)


def is_late(lane: LaneStatus, now_ns: int) -> bool:
    """Slower than it should be, but not yet given up."""
    return lane.busy_since_ns is not None and busy_ns(lane, now_ns) >= lane.late_after_ns


def is_stuck(lane: LaneStatus, now_ns: int) -> bool:
    """Given up: what it read last is withdrawn."""
    return lane.busy_since_ns is not None and busy_ns(lane, now_ns) >= lane.stuck_after_ns


def stuck_seconds(lane: LaneStatus, now_ns: int) -> float:
    """Seconds since the outstanding call began, or 0 where the lane is not stuck."""
    return seconds(busy_ns(lane, now_ns)) if is_stuck(lane, now_ns) else 0.0


def stuck_lanes(lanes: Mapping[LaneId, LaneStatus], now_ns: int) -> frozenset[LaneId]:
    """All lanes that are stuck."""
    return frozenset(lane for lane, status in lanes.items() if is_stuck(status, now_ns))


def fold(
    previous: Mapping[LaneId, LaneStatus], frame: Frame, before_ns: int, probe_since_ns: int
) -> Mapping[LaneId, LaneStatus]:
    """The lanes after `frame`; `before_ns` is the time of the frame before it.

    While the probe says nothing a lane that was busy is not known to be so still: only the stuck ones go on. A new
    probe says within a moment which lanes it found locked: until then those of the old one are not forgotten.
    """
    if frame.gap:
        return {
            lane: status if is_stuck(status, before_ns) else replace(status, busy_since_ns=None)
            for lane, status in previous.items()
        }
    current = {status.lane: status for status in frame.lanes}
    if frame.time.monotonic_ns - probe_since_ns < HANDOVER_NS:
        for lane in stuck_lanes(previous, before_ns):
            if lane not in frame.withdrawn:
                current.setdefault(lane, previous[lane])
    return current
