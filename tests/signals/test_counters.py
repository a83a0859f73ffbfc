# SPDX-License-Identifier: Apache-2.0
"""Differences of counters: never negative, never invented."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.signals.counters import Advance, advance, counted, unwrap

COUNTER = st.none() | st.integers(0, 2**64 - 1)


@pytest.mark.parametrize(
    ("old", "new", "ceiling", "expected"),
    [
        (5, 12, None, Advance(7, "counted")),
        (5, 5, None, Advance(0, "counted")),
        (None, 12, None, Advance(0, "first")),
        (12, None, None, Advance(0, "first")),
        (12, 3, None, Advance(0, "reset")),
        (255, 255, 255, Advance(0, "saturated")),
        (250, 255, 255, Advance(5, "counted")),
        (254, 254, 255, Advance(0, "counted")),
    ],
)
def test_a_counter_advances(old: int | None, new: int | None, ceiling: int | None, expected: Advance) -> None:
    assert advance(old, new, ceiling) == expected


def test_an_interval_with_a_reset_is_not_known() -> None:
    assert counted(10, 3) is None
    assert counted(10, 13) == 3


@pytest.mark.parametrize(
    ("old", "new", "bits", "plausible", "expected"),
    [
        (100, 400, 32, 1e6, 300),
        (2**32 - 100, 50, 32, 1e6, 150),  # wrapped
        (400, 100, 32, 1e6, None),  # a wrap would mean 4 GB: a restart
        (100, 400, 32, 2.0**32, None),  # might have wrapped twice
        (None, 400, 32, 1e6, None),
        (100, None, 32, 1e6, None),
        (2**40, 400, 32, 1e6, None),  # wider than it says
        (-1, 400, 32, 1e6, None),
        (100, 400, 0, 0.5, None),
        (100, 400, 10**9, 1e6, None),
    ],
)
def test_a_wrapping_counter_is_unwrapped_only_where_it_can_be_known(
    old: int | None, new: int | None, bits: int, plausible: float, expected: int | None
) -> None:
    assert unwrap(old, new, bits, plausible) == expected


@given(COUNTER, COUNTER, st.none() | st.just(255))
def test_no_increase_is_negative(old: int | None, new: int | None, ceiling: int | None) -> None:
    assert advance(old, new, ceiling).amount >= 0


@given(COUNTER, COUNTER, st.integers(-3, 80), st.floats(0, 1e12))
def test_no_unwrapped_increase_is_negative_or_implausible(
    old: int | None, new: int | None, bits: int, plausible: float
) -> None:
    increase = unwrap(old, new, bits, plausible)
    assert increase is None or 0 <= increase <= plausible
