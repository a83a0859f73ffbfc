# SPDX-License-Identifier: Apache-2.0
"""Window statistics against worked numbers; promtool is the oracle for the rest (tests/rules)."""

from typing import Literal

import pytest

from gpufeed.history.statistics import Run, extrapolate, summarise


def increase(times_s: list[int], first: float, increase: float) -> float | None:
    """Over a minute, of samples at `times_s`."""
    run = Run(times_s[0], times_s[-1], len(times_s), first, increase)
    return extrapolate(run, (0, 60), per_second=False)


@pytest.mark.parametrize(("statistic", "expected"), [("min", 1), ("max", 5), ("mean", 3)])
def test_gauges_are_summed_up_over_their_samples(statistic: Literal["min", "max", "mean"], expected: float) -> None:
    assert summarise(statistic, [5, 1, 3]) == expected
    assert summarise(statistic, []) is None


def test_one_sample_has_no_rate() -> None:
    assert increase([30], 7, 0) is None


def test_a_window_that_is_covered_is_counted_as_it_is() -> None:
    assert increase([0, 30, 60], 100, 60) == 60
    assert extrapolate(Run(0, 60, 3, 100, 60), (0, 60), per_second=True) == 1


def test_an_end_near_a_sample_is_extrapolated_to() -> None:
    # samples 5 to 55: 5 s to each end, less than 1.1 distances of 10 s, so 50 in 50 s become 60 in 60 s
    assert increase([5, 15, 25, 35, 45, 55], 1000, 50) == 60


def test_an_end_far_from_a_sample_is_extrapolated_to_by_half_a_distance() -> None:
    # last sample 20 s before the end, distance 10 s: half a distance counts
    assert increase([0, 10, 20, 30, 40], 1000, 40) == 45


def test_a_counter_is_not_extrapolated_to_before_it_was_zero() -> None:
    # 5 s to the start, but at 2 per second it was zero 1 s before the first sample: 56 s at 2 per second
    assert increase([5, 15, 25, 35, 45, 55, 60], 2, 110) == pytest.approx(112)


def test_a_counter_that_stands_still_has_not_grown() -> None:
    assert increase([5, 15], 7, 0) == 0
