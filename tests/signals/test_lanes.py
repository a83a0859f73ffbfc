# SPDX-License-Identifier: Apache-2.0
"""Late and stuck, judged from what lanes say and a frame's time."""

import pytest

from gpufeed.model.frame import Frame, FrameTime, LaneStatus
from gpufeed.model.ids import LaneId
from gpufeed.signals.lanes import HANDOVER_NS, busy_ns, fold, is_late, is_stuck, stuck_lanes, stuck_seconds

S = 1_000_000_000
GPU0, IB = LaneId("gpu0"), LaneId("ib")


def lane(name: LaneId = GPU0, busy_since_ns: int | None = None) -> LaneStatus:
    return LaneStatus(
        lane=name, collector="nvml", busy_since_ns=busy_since_ns, late_after_ns=2 * S, stuck_after_ns=8 * S
    )


def frame(at_ns: int, *lanes: LaneStatus, gap: str = "", withdrawn: tuple[LaneId, ...] = ()) -> Frame:
    return Frame(
        sequence=1, time=FrameTime(at_ns, at_ns, at_ns), lanes=lanes, gap=gap, withdrawn=withdrawn, probe_pid=7
    )


@pytest.mark.parametrize(
    ("busy_s", "late", "stuck", "seconds"),
    [(None, False, False, 0), (1.9, False, False, 0), (2, True, False, 0), (8, True, True, 8), (60, True, True, 60)],
)
def test_a_call_gets_late_then_stuck(busy_s: float | None, late: bool, stuck: bool, seconds: float) -> None:
    now_ns = 100 * S
    status = lane(busy_since_ns=None if busy_s is None else now_ns - round(busy_s * S))
    assert (is_late(status, now_ns), is_stuck(status, now_ns)) == (late, stuck)
    assert stuck_seconds(status, now_ns) == seconds


def test_a_call_that_begins_after_the_frame_is_not_busy_yet() -> None:
    assert busy_ns(lane(busy_since_ns=10), 5) == 0


def test_lanes_are_those_of_the_last_frame() -> None:
    assert fold({IB: lane(IB)}, frame(60 * S, lane()), 59 * S, 0) == {GPU0: lane()}


def test_while_the_probe_is_silent_only_stuck_lanes_go_on() -> None:
    before = {GPU0: lane(busy_since_ns=1 * S), IB: lane(IB, busy_since_ns=9 * S)}
    after = fold(before, frame(20 * S, gap="silent"), 10 * S, 0)
    assert after == {GPU0: lane(busy_since_ns=1 * S), IB: lane(IB)}
    assert stuck_lanes(after, 20 * S) == {GPU0}


def test_a_new_probe_has_some_time_to_find_the_lane_that_the_old_one_left_stuck() -> None:
    before = {GPU0: lane(busy_since_ns=1 * S), IB: lane(IB)}
    started_ns = 20 * S
    assert fold(before, frame(21 * S), 20 * S, started_ns) == {GPU0: before[GPU0]}
    assert fold(before, frame(21 * S, withdrawn=(GPU0,)), 20 * S, started_ns) == {}
    assert fold(before, frame(started_ns + HANDOVER_NS), 20 * S, started_ns) == {}
    found = lane(busy_since_ns=19 * S)
    assert fold(before, frame(21 * S, found), 20 * S, started_ns) == {GPU0: found}
