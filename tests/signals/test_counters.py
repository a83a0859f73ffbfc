# SPDX-License-Identifier: Apache-2.0
"""Differences of counters: never negative, never invented."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.signals.counters import counted, unwrap

COUNTER = st.none() | st.integers(0, 2**64 - 1)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [(5, 12, 7), (5, 5, 0), (None, 12, None), (12, None, None), (12, 3, None)],
)
def test_an_increase_is_known_where_both_sides_are_and_nothing_was_reset(
    old: int | None, new: int | None, expected: int | None
) -> None:
    assert counted(old, new) == expected


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


@given(COUNTER, COUNTER)
def test_no_increase_is_negative(old: int | None, new: int | None) -> None:
    assert (counted(old, new) or 0) >= 0


@given(COUNTER, COUNTER, st.integers(-3, 80), st.floats(0, 1e12))
def test_no_unwrapped_increase_is_negative_or_implausible(
    old: int | None, new: int | None, bits: int, plausible: float
) -> None:
    increase = unwrap(old, new, bits, plausible)
    assert increase is None or 0 <= increase <= plausible
