# SPDX-License-Identifier: Apache-2.0
"""Window statistics against worked numbers; promtool is the oracle for the rest (tests/rules)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.history.statistics import summarise

MINUTE = (0, 60)


def increase(times_s: list[float], values: list[float], window_s: tuple[float, float] = MINUTE) -> float | None:
    return summarise("increase", times_s, values, window_s)


@pytest.mark.parametrize(("statistic", "expected"), [("min", 1), ("max", 5), ("mean", 3)])
def test_gauges_are_summed_up_over_their_samples(statistic: str, expected: float) -> None:
    assert summarise(statistic, [0, 15, 30], [5, 1, 3], MINUTE) == expected  # type: ignore[arg-type]  # from a table


@pytest.mark.parametrize("statistic", ["min", "max", "mean", "rate", "increase"])
def test_no_samples_give_no_number(statistic: str) -> None:
    assert summarise(statistic, [], [], MINUTE) is None  # type: ignore[arg-type]  # from a table


def test_one_sample_has_no_rate() -> None:
    assert increase([30], [7]) is None


def test_a_window_that_is_covered_is_counted_as_it_is() -> None:
    assert increase([0, 30, 60], [100, 130, 160]) == 60
    assert summarise("rate", [0, 30, 60], [100, 130, 160], MINUTE) == 1


def test_a_reset_loses_nothing_that_was_counted_before() -> None:
    assert increase([0, 15, 30, 45, 60], [100, 110, 5, 10, 20]) == 10 + 5 + 5 + 10


def test_an_end_near_a_sample_is_extrapolated_to() -> None:
    # samples 5 to 55: 5 s to each end, less than 1.1 distances of 10 s, so 50 in 50 s become 60 in 60 s
    assert increase([5, 15, 25, 35, 45, 55], [1000, 1010, 1020, 1030, 1040, 1050]) == 60


def test_an_end_far_from_a_sample_is_extrapolated_to_by_half_a_distance() -> None:
    # last sample 20 s before the end, distance 10 s: half a distance counts
    assert increase([0, 10, 20, 30, 40], [1000, 1010, 1020, 1030, 1040]) == 45


def test_a_counter_is_not_extrapolated_to_before_it_was_zero() -> None:
    # 10 s between samples, 5 s to the start, but at 2 per second it was zero 1 s before the first sample
    assert increase([5, 15, 25, 35, 45, 55, 60], [2, 22, 42, 62, 82, 102, 112]) == pytest.approx(112)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=30), st.integers(0, 1000))
def test_an_increase_is_never_negative(values: list[int], before: int) -> None:
    times = [float(before + number) for number in range(len(values))]
    found = increase(times, [float(value) for value in values], (0, 2000))
    assert found is not None
    assert found >= 0
