# SPDX-License-Identifier: Apache-2.0
"""Scores of answers that were made up, against arithmetic that can be followed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.accuracy.alarm import Rule, alarms
from bench.accuracy.score import confusion, scored, share_error
from bench.accuracy.timeline import Bin, Seconds
from bench.accuracy.verdicts import Right

BUSY, STORAGE, CPU, PEER = ("busy", "tensor"), ("starved", "storage"), ("starved", "host_cpu"), ("starved", "peer")
UNDECIDED = ("starved", "unknown")


def score(bins: list[Bin], right: Right | None = None, *, is_visible: bool = True) -> tuple[float, float, float]:
    """Wrong, false and unknown seconds."""
    found = scored(bins, right or Right(), is_visible=is_visible, margin=0.12)
    return found.wrong, found.false, found.unknown


def cured_by(starved_s: float = 100.0, until_s: float = 600.0, **gained_s: float) -> Right:
    return Right(until_s=until_s, starved_s=starved_s, gained_s=gained_s)


def test_the_share_error_is_that_of_the_state_that_is_furthest_off() -> None:
    bins = [Bin({BUSY: 3.0, STORAGE: 2.0}, {BUSY: 4.0, CPU: 1.0}), Bin({BUSY: 5.0}, {BUSY: 4.5, UNDECIDED: 0.5})]
    # starved: 2 s of 10 in truth, 1.5 said, whatever the cause
    assert share_error(bins) == pytest.approx(0.05)
    assert share_error([]) == 0.0


def test_every_ten_minutes_have_an_error_of_their_own() -> None:
    right, off = Bin({BUSY: 5.0}, {BUSY: 5.0}), Bin({BUSY: 5.0}, {STORAGE: 5.0})
    found = scored([right] * 120 + [off] * 120, Right(), is_visible=True, margin=0.12)
    assert found.errors == [0.0, 1.0]


def test_a_cause_is_right_where_the_item_was() -> None:
    assert score([Bin({BUSY: 3.0, STORAGE: 2.0}, {BUSY: 3.0, STORAGE: 2.0})]) == (0.0, 0.0, 0.0)


def test_another_cause_is_wrong() -> None:
    assert score([Bin({BUSY: 3.0, STORAGE: 2.0}, {BUSY: 3.0, CPU: 2.0})]) == (2.0, 0.0, 0.0)


def test_named_starvation_while_nothing_starved_is_false() -> None:
    assert score([Bin({BUSY: 5.0}, {BUSY: 3.0, CPU: 2.0})]) == (0.0, 2.0, 0.0)


def test_what_is_said_a_bin_late_is_right_and_two_bins_late_is_not() -> None:
    quiet, starved, said = (
        Bin({BUSY: 5.0}, {BUSY: 5.0}),
        Bin({STORAGE: 5.0}, {BUSY: 5.0}),
        Bin({BUSY: 5.0}, {STORAGE: 5.0}),
    )
    assert score([starved, said]) == (0.0, 0.0, 0.0)
    assert score([starved, quiet, said]) == (0.0, 5.0, 0.0)


def test_what_alone_would_have_cured_the_waiting_is_right_whatever_stage_an_item_was_in() -> None:
    bins = [Bin({CPU: 5.0}, {STORAGE: 5.0})] * 20
    assert score(bins, cured_by(storage=95.0, host_cpu=90.0)) == (0.0, 0.0, 0.0)
    assert score(bins, cured_by(storage=10.0, host_cpu=90.0)) == (100.0, 0.0, 0.0)


def test_a_peer_is_right_and_so_is_what_the_peer_waited_for() -> None:
    root = cured_by(storage=98.0, peer=97.0)
    assert score([Bin({PEER: 5.0}, {STORAGE: 5.0})] * 20, root) == (0.0, 0.0, 0.0)
    assert score([Bin({PEER: 5.0}, {PEER: 5.0})] * 20, root) == (0.0, 0.0, 0.0)


def test_mixed_causes_may_be_named_as_far_as_curing_them_helps_and_a_little_more() -> None:
    right = cured_by(storage=30.0, host_cpu=10.0)
    even = [Bin({CPU: 5.0}, {STORAGE: 2.0, CPU: 1.0, UNDECIDED: 2.0})] * 20
    assert score(even, right) == (0.0, 0.0, 0.0)  # 40 s of storage: 30 and 12 % of 100 are allowed; nothing is unknown
    lopsided = [Bin({CPU: 5.0}, {CPU: 5.0})] * 20
    assert score(lopsided, right)[0] == pytest.approx(100 - 10 - 12)


def test_waiting_that_was_in_vain_is_judged_by_where_items_were() -> None:
    right = cured_by(starved_s=50.0, until_s=50.0, storage=5.0)
    hung = [Bin({PEER: 5.0}, {PEER: 5.0})] * 10
    before = [Bin({CPU: 5.0}, {UNDECIDED: 5.0})] * 10
    assert score(before + hung, right) == (0.0, 0.0, 0.0)


def test_unknown_counts_where_there_is_one_right_answer_and_it_can_be_seen() -> None:
    bins = [Bin({STORAGE: 5.0}, {UNDECIDED: 4.0, ("unknown", "stale"): 1.0})] * 20
    assert score(bins, cured_by(storage=99.0)) == (0.0, 0.0, 100.0)
    assert score(bins, cured_by(storage=99.0, host_cpu=99.0)) == (0.0, 0.0, 20.0)
    assert score(bins, cured_by(storage=99.0), is_visible=False) == (0.0, 0.0, 0.0)


def test_the_confusion_matrix_holds_all_time_once() -> None:
    cells = confusion([Bin({BUSY: 3.0, STORAGE: 2.0}, {BUSY: 4.0, CPU: 1.0})])
    assert cells == {"busy>busy": 3.0, "starved/storage>busy": 1.0, "starved/storage>starved/host_cpu": 1.0}


CAUSES = st.sampled_from([BUSY, STORAGE, CPU, PEER, UNDECIDED])


@st.composite
def bins(draw: st.DrawFn) -> Bin:
    def five_seconds() -> Seconds:
        parts = draw(st.dictionaries(CAUSES, st.floats(0.01, 1.0), min_size=1))
        return {cause: 5.0 * part / sum(parts.values()) for cause, part in parts.items()}

    truth = {cause: spent_s for cause, spent_s in five_seconds().items() if cause != UNDECIDED}
    truth[BUSY] = truth.get(BUSY, 0.0) + 5.0 - sum(truth.values())
    return Bin(truth, five_seconds())


@given(st.lists(bins(), min_size=1, max_size=12), st.sets(st.sampled_from(["storage", "host_cpu", "peer"])))
def test_no_second_is_counted_twice(of: list[Bin], sufficient: set[str]) -> None:
    right = cured_by(until_s=1e6, **dict.fromkeys(sufficient, 100.0)) if sufficient else Right()
    found = scored(of, right, is_visible=True, margin=0.12)
    named_s = sum(s for b in of for cause, s in b.answer.items() if cause[0] == "starved" and cause != UNDECIDED)
    assert -1e-9 <= found.wrong <= found.starved + 1e-9
    assert found.false >= -1e-9
    assert found.wrong + found.false <= named_s + 1e-9
    assert math.isclose(sum(found.confusion.values()), 5.0 * len(of), rel_tol=1e-6)
    perfect = scored([Bin(b.truth, b.truth) for b in of], right, is_visible=True, margin=0.12)
    assert (perfect.wrong, perfect.false, max(perfect.errors)) == (0.0, 0.0, 0.0)


RULE = Rule(threshold=0.1, windows_s=(1800.0, 300.0), for_s=900.0)


def node(starved_s: float, minutes: int, rest: Seconds | None = None) -> list[Seconds]:
    part = rest or {BUSY: 5.0 - starved_s}
    return [{**part, STORAGE: starved_s}] * (12 * minutes)


def test_an_alarm_is_raised_when_both_windows_hold_for_long_enough() -> None:
    assert alarms([node(0.6, 60)], RULE) == ["storage"]
    assert alarms([node(0.4, 60)], RULE) == []
    assert alarms([node(0.6, 44)], RULE) == []  # 30 minutes for the window, 15 for the rule


def test_time_without_work_does_not_dilute_an_alarm_and_unknown_raises_none() -> None:
    assert alarms([node(0.6, 60, {("idle_held", ""): 4.0, BUSY: 0.4})], RULE) == ["storage"]
    assert alarms([[{BUSY: 2.0, UNDECIDED: 3.0}] * 720], RULE) == []


def test_a_spell_that_is_over_is_no_alarm() -> None:
    assert alarms([node(3.0, 20) + node(0.0, 60)], RULE) == []
