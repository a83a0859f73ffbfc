# SPDX-License-Identifier: Apache-2.0
"""Means over any interval, of segments that never line up."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.signals.timeline import REMEMBERED_NS, Segment, Timeline, extended, lowest, mean, mean_of

LINE: Timeline = (Segment(0, 10, {"a": 1.0}), Segment(10, 20, {"a": 0.0, "b": 4.0}), Segment(30, 40, {"a": 0.5}))


def test_a_mean_weighs_by_overlap_and_leaves_out_what_is_not_known() -> None:
    assert mean(LINE, 5, 20) == {"a": pytest.approx(5 / 15), "b": 4.0}
    assert mean(LINE, 15, 35) == {"a": pytest.approx(0.25), "b": 4.0}
    assert mean(LINE, 32, 34) == {"a": 0.5}
    assert mean(LINE, 20, 30) == {}
    assert mean((), 0, 1) == {}


def test_a_mean_of_one_value_is_the_same() -> None:
    assert mean_of(LINE, "a", 5, 20) == pytest.approx(5 / 15)
    assert mean_of(LINE, "b", 0, 10) is None


def test_the_lowest_is_of_every_segment_touched() -> None:
    assert lowest(LINE, "a", 5, 15) == 0.0
    assert lowest(LINE, "b", 0, 10) is None
    assert lowest(LINE, "a", 20, 30) is None


def test_what_is_covered_already_stays_as_it_is() -> None:
    line = extended(LINE, Segment(35, 50, {"a": 1.0}), now_ns=50)
    assert line[-1] == Segment(40, 50, {"a": 1.0})
    assert extended(LINE, Segment(31, 39, {"a": 1.0}), now_ns=50) == LINE


def test_a_segment_without_values_or_from_the_future_is_refused() -> None:
    assert extended(LINE, Segment(40, 50, {}), now_ns=50) == LINE
    assert extended(LINE, Segment(40, 60, {"a": 1.0}), now_ns=50) == LINE


def test_what_is_long_past_is_forgotten() -> None:
    now_ns = REMEMBERED_NS + 20
    assert extended(LINE, Segment(now_ns - 1, now_ns, {"a": 1.0}), now_ns) == (
        LINE[2],
        Segment(now_ns - 1, now_ns, {"a": 1.0}),
    )


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100), st.floats(0, 1)), max_size=12), st.integers(0, 100))
def test_segments_never_overlap_and_means_stay_between_extremes(
    segments: list[tuple[int, int, float]], cut: int
) -> None:
    line: Timeline = ()
    for began, ended, value in segments:
        line = extended(line, Segment(began, ended, {"a": value}), now_ns=100)
    assert all(one.ended_ns <= other.began_ns for one, other in pairwise(line))
    found = mean(line, 0, cut).get("a")
    if found is not None:
        low = lowest(line, "a", 0, cut)
        assert low is not None
        assert low - 1e-9 <= found <= max(segment.values["a"] for segment in line) + 1e-9
