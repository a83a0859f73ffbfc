# SPDX-License-Identifier: Apache-2.0
"""Each instant decided once: faults from their start, gaps unknown, recovery by itself."""

from dataclasses import replace

import pytest

from gpufeed.model.frame import Frame, XidEvent
from gpufeed.model.gpu import GpmInterval, GpuFast
from gpufeed.model.ids import GpuKey
from gpufeed.model.state import GpuStateName, StateCause
from gpufeed.signals.ledger import split
from gpufeed.step import acknowledge, step
from signals.story import COMPUTING, HALF, WAITING, Gpu, Host, S, Story, uuid

BUSY = StateCause("busy", "tensor")


def pair(state: GpuStateName, cause: str) -> StateCause:
    return StateCause(state, cause)


def test_a_decision_waits_two_seconds_so_that_both_sides_are_known() -> None:
    story = Story()
    story.run(10)
    assert story.now_ns - story.attribution().decided_until_ns == 2 * S


def test_confidence_and_evidence_come_with_the_label() -> None:
    story = Story()
    story.run(10, WAITING, Host(running=2, blocked=8, cores=1.0, io=0.8, outstanding=8.0))
    found = story.attribution()
    assert found.current == pair("starved", "storage")
    assert found.confidence_ratio is not None
    assert found.confidence_ratio > 0.9
    assert {item.input for item in found.evidence} >= {"active", "io pressure", "tasks in uninterruptible sleep"}


def test_a_gap_is_unknown_and_then_all_is_as_before() -> None:
    story = Story()
    story.run(10)
    story.gap(10)
    before = story.attribution()
    story.run(10)
    gained = story.gained(before)
    assert gained[BUSY] == pytest.approx(8, abs=0.6)
    assert set(gained) == {BUSY, pair("unknown", "no_data")}


def test_a_lane_that_comes_back_before_it_is_stuck_leaves_no_fault() -> None:
    story = Story()
    story.run(5)
    story.silent, story.busy_since_ns = frozenset({"gpu0"}), {"gpu0": story.now_ns}
    story.run(5)
    story.silent, story.busy_since_ns = frozenset(), {}
    story.run(10)
    assert not any(cause.state == "fault" for cause in story.seconds())
    assert story.attribution().current == BUSY


def test_a_gpu_that_returns_is_judged_by_its_readings_again() -> None:
    story = Story()
    story.run(5)
    story.run(5, replace(COMPUTING, condition="lost"), others=COMPUTING)
    before = story.attribution()
    story.run(10, COMPUTING)
    gained = story.gained(before)
    assert gained[BUSY] == pytest.approx(7.5, abs=1.1)
    assert gained[pair("fault", "lost")] == pytest.approx(2, abs=0.6)


@pytest.mark.parametrize(
    ("gpu", "cause"),
    [
        (replace(COMPUTING, condition="reset_required"), pair("fault", "recovery_pending")),
        (replace(COMPUTING, condition="released"), pair("unknown", "no_data")),
        (replace(COMPUTING, condition="error"), pair("unknown", "no_data")),
        (replace(COMPUTING, condition="denied"), pair("unknown", "unsupported")),
        (replace(COMPUTING, recovery_action=3), BUSY),  # drain: works until then
        (replace(COMPUTING, fabric_state=3, fabric_status=0), BUSY),
        (replace(COMPUTING, fabric_state=3, fabric_status=999), pair("fault", "fabric_state")),
        (replace(COMPUTING, fabric_state=0), BUSY),
    ],
)
def test_what_a_gpu_says_of_itself_overrides_its_readings(gpu: Gpu, cause: StateCause) -> None:
    story = Story()
    story.run(11)
    story.run(15, gpu, others=COMPUTING)
    before = story.attribution()
    story.run(5)
    assert story.gained(before) == {cause: 5.0}


def test_a_latched_fault_outlasts_the_probe_and_ends_with_an_acknowledgement() -> None:
    story = Story()
    story.run(5)
    story.run(3, events=(XidEvent(at_ns=story.now_ns, xid=79, uuid=uuid(0)),))
    before = story.attribution()
    story.gap(5)
    assert story.gained(before) == {pair("fault", "xid"): 5.0}
    story.node = acknowledge(story.node, uuid(0))
    story.run(3)
    before = story.attribution()
    story.run(5)
    assert story.gained(before) == {BUSY: 5.0}


def test_a_hang_that_is_found_locked_by_a_new_probe_goes_on() -> None:
    story = Story()
    story.run(5)
    story.silent, story.busy_since_ns = frozenset({"gpu0"}), {"gpu0": story.now_ns}
    story.run(10)
    story.gap(4)
    before = story.attribution()
    story.run(10)
    assert story.gained(before) == {pair("fault", "hung"): 10.0}


def test_without_gpm_two_gpus_that_poll_for_long_wait_for_a_peer() -> None:
    story = Story()
    spin = Gpu(active=1.0, has_gpm=False, power=0.2)
    story.run(8, spin)
    assert set(story.seconds()) == {pair("busy", "other")}
    story.run(4)
    story.run(5)
    before = story.attribution()
    story.run(5)
    assert story.gained(before) == {pair("starved", "peer"): 5.0}
    story.run(5, spin, others=replace(spin, power=0.9))
    before = story.attribution()
    story.run(5)
    assert story.gained(before) == {pair("busy", "other"): 5.0}


def test_gpm_that_ends_gives_way_to_utilization() -> None:
    story = Story()
    story.run(5)
    story.run(10, replace(COMPUTING, has_gpm=False))
    before = story.attribution()
    story.run(5)
    assert story.gained(before) == {pair("busy", "other"): 5.0}


def test_readings_that_never_come_again_are_stale_then_no_data() -> None:
    story = Story()
    story.run(5)
    story.silent = frozenset({"gpu0"})
    story.run(30)
    before = story.attribution()
    story.run(3)
    assert story.gained(before) == {pair("unknown", "no_data"): 3.0}
    assert 0 < story.seconds()[pair("unknown", "stale")] <= 9


def test_a_gpu_without_gpm_that_says_nothing_for_a_while_is_stale() -> None:
    story = Story()
    story.run(5, replace(COMPUTING, has_gpm=False))
    story.silent = frozenset({"gpu0"})
    story.run(6)
    assert story.seconds()[pair("unknown", "stale")] == pytest.approx(3, abs=0.6)


def test_a_reading_from_the_future_does_not_blind_the_gpu() -> None:
    story = Story()
    story.run(5)
    key = GpuKey(uuid(0))
    future = GpmInterval(gpu=key, began_ns=story.now_ns, ended_ns=story.now_ns + 10**15, graphics_ratio=0.0)
    reading = story.reading("gpu0", "gpm.fast", future, GpuFast(gpu=key, utilization_ratio=0.0))
    story.node = step(story.node, Frame(sequence=9, time=story.time, readings=(reading,), probe_pid=7))
    before = story.attribution()
    story.run(10)
    assert story.gained(before)[BUSY] >= 9


@pytest.mark.parametrize("active", [0.0, 0.25, 0.6, 1.0])
def test_an_interval_is_split_in_proportion_never_labelled_whole(active: float) -> None:
    story = Story()
    gpu = replace(COMPUTING, active=active, sm=0.9 * active, tensor=0.5 * active, dram=0.3 * active)
    story.run(12, gpu, Host(running=2, blocked=8, io=0.8, outstanding=8.0))
    before = story.attribution()
    story.run(10)
    gained = story.gained(before)
    assert gained.get(BUSY, 0.0) == pytest.approx(10 * active)
    assert gained.get(pair("starved", "storage"), 0.0) == pytest.approx(10 * (1 - active))


def test_an_interval_needs_a_state() -> None:
    with pytest.raises(ValueError, match="needs a state"):
        split(HALF, [])
    assert split(5, [(BUSY, 0.0), (pair("idle_free", ""), 0.0)]) == [(BUSY, 0), (pair("idle_free", ""), 5)]
