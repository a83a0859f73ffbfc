# SPDX-License-Identifier: Apache-2.0
"""Verdicts over time: what continues, what waits for its input, what vanishes."""

from gpufeed.health.fold import fold
from gpufeed.health.latches import Latches
from gpufeed.model.ids import GpuKey
from health.states import MINUTE, ONE, START, fast, levels, node, slow

GPU = GpuKey(ONE)
HOT, COOL, BLANK = node(fast(clock_events=0x40)), node(fast(clock_events=0)), node()


def test_a_zero_vanishes_with_its_input() -> None:
    assert levels(GPU, "hw_thermal", COOL, BLANK) == [0, None]


def test_a_one_stays_until_an_answer_clears_it() -> None:
    assert levels(GPU, "hw_thermal", HOT, BLANK, BLANK, COOL) == [1, 1, 1, 0]


def test_a_two_stays_until_an_answer_clears_it() -> None:
    asked, well = node(slow(recovery_action=1)), node(slow(recovery_action=0))
    assert levels(GPU, "recovery_action", asked, BLANK, well) == [2, 2, 0]


def test_the_same_level_has_held_since_it_began() -> None:
    verdicts, latches = fold({}, HOT, Latches())
    verdicts, latches = fold(verdicts, node(fast(clock_events=0x40), at_ns=START + MINUTE), latches)
    assert verdicts[GPU, "hw_thermal"].since_ns == START
    verdicts, _ = fold(verdicts, node(fast(clock_events=0), at_ns=START + 2 * MINUTE), latches)
    assert verdicts[GPU, "hw_thermal"].since_ns == START + 2 * MINUTE


def test_folding_changes_nothing_that_was_handed_in() -> None:
    before, latches = fold({}, HOT, Latches())
    copy = dict(before)
    fold(before, COOL, latches)
    assert before == copy
