# SPDX-License-Identifier: Apache-2.0
"""How each collector fares."""

from gpufeed.model.frame import AnySample, Failure, Frame, FrameTime, LaneStatus, Reading
from gpufeed.model.gpu import DriverInfo
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.state import CollectorRecord
from gpufeed.signals.collectors import Collectors, fold

S = 1_000_000_000
GPU0, GPU1 = LaneId("gpu0"), LaneId("gpu1")
FAST = GroupName("nvml.fast")
NONE: frozenset[LaneId] = frozenset()


def reading(lane: LaneId = GPU0, samples: tuple[AnySample, ...] = (DriverInfo(device_count=1),)) -> Reading:
    return Reading(
        lane=lane, group=FAST, collector="nvml", began_ns=9 * S, ended_ns=9 * S + S // 4, period_ns=S, samples=samples
    )


def failed(reason: str, lane: LaneId = GPU0) -> Failure:
    return Failure(lane=lane, group=FAST, collector="nvml", at_ns=10 * S, reason=reason)


FRAME = Frame(sequence=1, time=FrameTime(10 * S, 10 * S, 1_700_000_000 * S))


def frame(*readings: Reading, failures: tuple[Failure, ...] = (), withdrawn: tuple[LaneId, ...] = ()) -> Frame:
    return Frame(sequence=1, time=FRAME.time, readings=readings, failures=failures, withdrawn=withdrawn)


def test_a_success_says_when_and_how_long() -> None:
    record = fold(Collectors(), frame(reading()), NONE).records["nvml"]
    assert record.is_successful
    assert record.duration_s == 0.25
    assert record.last_success_ns == 9 * S + S // 4
    assert record.last_success_wall_s == 1_700_000_000 - 0.75


def test_one_failing_lane_makes_the_collector_unsuccessful_until_it_reads_again_or_ends() -> None:
    well = fold(Collectors(), frame(reading()), NONE)
    ill = fold(well, frame(failures=(failed("broken", GPU1),)), NONE)
    assert not ill.records["nvml"].is_successful
    assert ill.records["nvml"].errors == {"broken": 1}
    assert not fold(ill, frame(reading()), NONE).records["nvml"].is_successful
    assert fold(ill, frame(reading(GPU1)), NONE).records["nvml"].is_successful
    assert fold(ill, frame(withdrawn=(GPU1,)), NONE).records["nvml"].is_successful


def test_one_failing_device_of_a_good_read_only_counts() -> None:
    record = fold(Collectors(), frame(reading(), failures=(failed("lost"),)), NONE).records["nvml"]
    assert record.is_successful
    assert record.errors == {"lost": 1}


def test_what_is_not_there_is_no_error_and_no_success() -> None:
    record = fold(Collectors(), frame(reading(samples=()), failures=(failed("absent"),)), NONE).records["nvml"]
    assert record == CollectorRecord()


def test_a_stuck_lane_and_a_silent_probe_are_no_success() -> None:
    well = fold(Collectors(), frame(reading()), NONE)
    status = LaneStatus(lane=GPU0, collector="nvml", busy_since_ns=0, late_after_ns=1, stuck_after_ns=2)
    stuck = Frame(sequence=2, time=FRAME.time, lanes=(status,))
    assert not fold(well, stuck, frozenset({GPU0})).records["nvml"].is_successful
    gap = Frame(sequence=2, time=FRAME.time, gap="silent")
    assert not fold(well, gap, NONE).records["nvml"].is_successful


def test_a_frame_without_news_changes_nothing() -> None:
    well = fold(Collectors(), frame(reading()), NONE)
    assert fold(well, FRAME, NONE) is well
