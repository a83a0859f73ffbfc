# SPDX-License-Identifier: Apache-2.0
"""Fresh is there, stale is absent, identity stays."""

from gpufeed.model.fabric import IbPort
from gpufeed.model.frame import AnySample, Frame, FrameTime, Reading
from gpufeed.model.gpu import DriverInfo, GpuFast, GpuIdentity
from gpufeed.model.ids import GpuKey, GpuUuid, GroupName, IbPortKey, LaneId
from gpufeed.signals.samples import Samples, fold

S = 1_000_000_000
GPU0 = LaneId("gpu0")
KEY = GpuKey(GpuUuid("GPU-0"))
FAST = GpuFast(gpu=KEY, power_w=100.0)
IDENTITY = GpuIdentity(gpu=KEY, index=0)
DRIVER = DriverInfo(device_count=1)
NONE: frozenset[LaneId] = frozenset()


def reading(*samples: AnySample, at_ns: int = 0, period_ns: int = S // 2, group: str = "nvml.fast") -> Reading:
    return Reading(
        lane=GPU0,
        group=GroupName(group),
        collector="nvml",
        began_ns=at_ns,
        ended_ns=at_ns,
        period_ns=period_ns,
        samples=samples,
    )


def frame(at_ns: int, *readings: Reading, gap: str = "", withdrawn: tuple[LaneId, ...] = ()) -> Frame:
    return Frame(sequence=1, time=FrameTime(at_ns, at_ns, at_ns), readings=readings, gap=gap, withdrawn=withdrawn)


def kinds(samples: Samples) -> set[type]:
    return {kind for kind, held in samples.items() if held}


def test_a_fast_reading_is_stale_after_ten_seconds() -> None:
    samples = fold({}, frame(0, reading(FAST)), NONE)
    assert kinds(fold(samples, frame(10 * S - 1), NONE)) == {GpuFast}
    assert kinds(fold(samples, frame(10 * S), NONE)) == set()


def test_a_slow_reading_is_stale_after_three_periods() -> None:
    samples = fold({}, frame(0, reading(FAST, period_ns=10 * S)), NONE)
    assert kinds(fold(samples, frame(30 * S - 1), NONE)) == {GpuFast}
    assert kinds(fold(samples, frame(30 * S), NONE)) == set()


def test_identity_outlives_everything_but_its_lane() -> None:
    samples = fold({}, frame(0, reading(FAST, IDENTITY)), NONE)
    assert kinds(fold(samples, frame(3600 * S, gap="silent"), NONE)) == {GpuIdentity}
    assert kinds(fold(samples, frame(S), frozenset({GPU0}))) == {GpuIdentity}
    assert kinds(fold(samples, frame(S, withdrawn=(GPU0,)), NONE)) == set()


def test_a_gpu_that_no_longer_says_who_it_is_is_still_known() -> None:
    samples = fold({}, frame(0, reading(IDENTITY, DRIVER)), NONE)
    after = fold(samples, frame(S, reading(at_ns=S)), NONE)
    assert kinds(after) == {GpuIdentity}


def test_another_board_on_the_same_lane_replaces_the_one_before() -> None:
    other = GpuIdentity(gpu=GpuKey(GpuUuid("GPU-9")), index=0)
    samples = fold({}, frame(0, reading(IDENTITY)), NONE)
    after = fold(samples, frame(S, reading(other, at_ns=S)), NONE)
    assert set(after[GpuIdentity]) == {other.gpu}


def test_readings_of_a_stuck_or_ended_lane_and_of_a_silent_probe_are_withdrawn_at_once() -> None:
    samples = fold({}, frame(0, reading(FAST)), NONE)
    assert kinds(fold(samples, frame(S), frozenset({GPU0}))) == set()
    assert kinds(fold(samples, frame(S, withdrawn=(GPU0,)), NONE)) == set()
    assert kinds(fold(samples, frame(S, gap="silent"), NONE)) == set()
    assert kinds(fold({}, frame(S, reading(FAST, at_ns=S)), frozenset({GPU0}))) == set()


def test_a_reading_replaces_what_its_lane_and_group_had_before() -> None:
    one, two = (IbPort(port=IbPortKey("mlx5_0", port), state_id=4) for port in (1, 2))
    samples = fold({}, frame(0, reading(one, two), reading(FAST, group="other")), NONE)
    after = fold(samples, frame(S, reading(one, at_ns=S)), NONE)
    assert set(after[IbPort]) == {one.port}
    assert after[IbPort][one.port].read_at_ns == S
    assert after[GpuFast] is samples[GpuFast]


def test_of_two_readings_of_one_group_in_a_frame_the_last_counts() -> None:
    newer = GpuFast(gpu=KEY, power_w=200.0)
    samples = fold({}, frame(S, reading(FAST, at_ns=0), reading(newer, at_ns=S)), NONE)
    assert samples[GpuFast][KEY].sample == newer
