# SPDX-License-Identifier: Apache-2.0
"""Rings against a plain list of everything that was appended."""

from itertools import pairwise
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.history.ring import CounterRing, Resolution, Ring
from gpufeed.history.rings import COARSE, FINE, MAX_LATEST, Rings, SeriesKey
from gpufeed.units import NS_PER_S

KEY: SeriesKey = ("gpufeed_x", (("gpu", "0"),))
OTHER: SeriesKey = ("gpufeed_x", (("gpu", "1"),))


def filled(*points: tuple[float, float | None], key: SeriesKey = KEY) -> Rings:
    rings = Rings()
    for at_s, value in points:
        rings.append(round(at_s * NS_PER_S), [] if value is None else [(key, value)])
    return rings


def test_last_is_the_value_of_the_newest_append() -> None:
    assert filled((10, 1), (11, 2)).window(KEY, "last") == 2


def test_a_series_that_is_not_in_the_newest_append_has_no_last() -> None:
    assert filled((10, 1), (11, None)).window(KEY, "last") is None


def test_last_takes_no_window() -> None:
    assert filled((10, 1), (11, 2)).window(KEY, "last", 60) == 2


def test_of_several_moments_in_a_second_the_last_counts() -> None:
    assert filled((10.0, 1), (10.25, 2), (10.5, 3)).points(KEY) == ((10, 3.0),)


def test_a_window_is_closed_at_both_ends() -> None:
    rings = filled((100, 1), (110, 2), (160, 3))
    assert rings.window(KEY, "min", 60) == 1
    assert rings.window(KEY, "min", 59) == 2
    assert rings.window(KEY, "max", 60) == 3
    assert rings.window(KEY, "mean", 60) == 2


def test_a_gap_is_no_sample() -> None:
    assert filled((100, 4), (110, None), (120, nan), (130, 8)).window(KEY, "mean", 60) == 6


def test_a_rate_runs_over_gaps() -> None:
    assert filled((100, 0), (110, None), (160, 60)).window(KEY, "rate", 60) == 1
    assert filled((100, 0), (110, None), (160, 60)).window(KEY, "increase", 60) == 60


def test_a_reset_loses_nothing_that_was_counted_before() -> None:
    points = [(100 + 15 * number, value) for number, value in enumerate([100, 110, 5, 10, 20])]
    assert filled(*points).window(KEY, "increase", 60) == 10 + 5 + 5 + 10
    assert filled(*points).window(KEY, "increase", 30) == 5 + 10


def test_a_value_that_is_written_over_within_its_second_resets_nothing() -> None:
    rings = filled((100, 50), (130, 10), (130.5, 60), (160, 70))
    assert rings.window(KEY, "increase", 60) == 20
    rings = filled((100, 50), (130, 60), (130.5, 10), (160, 20))
    assert rings.window(KEY, "increase", 60) == 20


def test_a_run_begins_and_ends_with_a_sample() -> None:
    ring = CounterRing(FINE)
    for slot, value in ((10, 1.0), (20, 5.0)):
        ring.write(slot, value)
    assert ring.run(5, 25) == (10, 20, 2, 1.0, 4.0)
    assert ring.run(5, 19) == (10, 10, 1, 1.0, 0.0)
    assert ring.run(11, 19) is None


def test_one_sample_or_none_has_no_rate() -> None:
    assert filled((100, 50)).window(KEY, "rate", 60) is None
    assert filled((100, 50), (200, None)).window(KEY, "rate", 60) is None


def test_a_series_nobody_appended_has_no_window() -> None:
    assert Rings().window(KEY, "last") is None
    assert filled((1, 1)).window(OTHER, "mean", 60) is None
    assert filled((1, 1)).points(OTHER) == ()


def test_half_an_hour_is_remembered_by_the_second_and_a_day_by_the_minute() -> None:
    rings = Rings()
    for at_s in range(0, 25 * 3600, 20):
        rings.append(at_s * NS_PER_S, [(KEY, at_s)])
    fine, coarse = rings.points(KEY), rings.points(KEY, COARSE)
    newest = 25 * 3600 - 20
    assert [fine[0][0], fine[-1][0]] == [newest - 30 * 60, newest]
    assert fine[0] == (newest - 30 * 60, newest - 30 * 60)
    assert [coarse[0][0], coarse[-1][0]] == [newest // 60 * 60 - 24 * 3600, newest // 60 * 60]
    assert coarse[-1][1] == newest
    assert len(coarse) == 24 * 60 + 1


def test_select_finds_the_series_of_a_metric() -> None:
    rings = Rings()
    rings.append(0, [(KEY, 1), (OTHER, 2), (("gpufeed_y", ()), 3)])
    assert set(rings.select("gpufeed_x")) == {KEY, OTHER}
    assert set(rings.select("gpufeed_z")) == set()
    assert len(rings) == 3


def test_what_does_not_fit_is_refused_and_counted() -> None:
    rings = Rings(max_series=1)
    rings.append(0, [(KEY, 1), (OTHER, 2)])
    assert [len(rings), rings.refused] == [1, 1]
    assert rings.window(OTHER, "last") is None
    assert rings.window(KEY, "last") == 1


def test_a_series_gone_for_five_minutes_gives_up_its_place_and_not_before() -> None:
    rings = Rings(max_series=1)
    rings.append(0, [(KEY, 1)])
    rings.append(299 * NS_PER_S, [(OTHER, 2)])
    assert set(rings.select("gpufeed_x")) == {KEY}
    rings.append(301 * NS_PER_S, [(OTHER, 2)])
    assert set(rings.select("gpufeed_x")) == {OTHER}
    assert len(rings) == 1


def test_a_moment_before_the_newest_one_is_not_written() -> None:
    assert filled((10, 1), (9, 5)).points(KEY) == ((10, 1.0),)


@pytest.mark.parametrize("kind", [Ring, CounterRing])
def test_an_earlier_slot_is_not_rewritten(kind: type[Ring]) -> None:
    ring = kind(FINE)
    ring.write(10, 1)
    ring.write(9, 5)
    assert ring.read(0, 20) == [(10, 1)]


def test_a_ring_without_samples_reads_nothing() -> None:
    assert Ring(FINE).read(0, 10) == []
    assert CounterRing(FINE).run(0, 10) is None


STEPS = st.lists(st.tuples(st.integers(1, 40), st.one_of(st.none(), st.integers(-5, 5))), max_size=60)


@given(STEPS, st.integers(0, 70))
def test_a_ring_holds_what_a_list_would(steps: list[tuple[int, int | None]], width: int) -> None:
    ring, written, slot = Ring(Resolution(1, 50)), [], 0
    for distance, value in steps:
        slot += distance
        if value is not None:
            ring.write(slot, value)
            written.append((slot, float(value)))
    last = written[-1][0] if written else 0
    expected = [(at, value) for at, value in written if at > last - 50 and slot - width <= at <= slot]
    assert ring.read(slot - width, slot) == expected


@given(STEPS, st.integers(0, 70))
def test_what_was_counted_between_two_slots_is_known_without_reading_them(
    steps: list[tuple[int, int | None]], width: int
) -> None:
    ring, slot = CounterRing(Resolution(1, 50)), 0
    for distance, value in steps:
        slot += distance - 1  # 0: written over
        if value is not None:
            ring.write(slot, value)
    samples = ring.read(slot - width, slot)
    run = ring.run(slot - width, slot)
    assert (run is None) == (not samples)
    if run is not None:
        values = [value for _, value in samples]
        counted = sum(later - earlier if later >= earlier else later for earlier, later in pairwise(values))
        assert run == (samples[0][0], samples[-1][0], len(samples), values[0], counted)


@given(STEPS, st.sampled_from([10, 100, 1000]))
def test_window_statistics_are_those_of_the_samples_inside(steps: list[tuple[int, int | None]], window_s: int) -> None:
    rings, inside, slot = Rings(), [], 0
    points = []
    for distance, value in steps:
        slot += distance
        rings.append(slot * NS_PER_S, [] if value is None else [(KEY, value)])
        points.append((slot, value))
    inside = [value for at, value in points if value is not None and at >= slot - window_s]
    assert rings.window(KEY, "min", window_s) == (min(inside) if inside else None)
    assert rings.window(KEY, "max", window_s) == (max(inside) if inside else None)
    mean = rings.window(KEY, "mean", window_s)
    assert mean == (pytest.approx(sum(inside) / len(inside)) if inside else None)


def test_of_a_metric_whose_newest_value_alone_is_asked_for_nothing_else_is_kept() -> None:
    rings = Rings(max_series=1)
    rings.keep_latest_only(frozenset({OTHER[0]}))
    for at_s in range(10):
        rings.append(at_s * NS_PER_S, [(OTHER, float(at_s))])
    assert rings.window(OTHER, "last") == 9
    assert [value for _, value in rings.points(OTHER)] == [8, 9]


def test_series_with_and_without_a_past_are_limited_each_by_itself() -> None:
    rings = Rings(max_series=1)
    brief = [("brief", (("n", str(number)),)) for number in range(MAX_LATEST + 1)]
    rings.keep_latest_only(frozenset({"brief"}))
    rings.append(0, [(key, 1.0) for key in (*brief, ("long", ()), ("longer", ()))])
    assert len(rings) == MAX_LATEST + 1
    assert rings.refused == 2


def test_a_metric_that_is_to_have_a_past_from_now_on_begins_anew() -> None:
    rings = Rings()
    rings.keep_latest_only(frozenset({KEY[0]}))
    rings.append(0, [(KEY, 1.0)])
    rings.keep_latest_only(frozenset())
    assert len(rings) == 0
    for at_s in range(1, 5):
        rings.append(at_s * NS_PER_S, [(KEY, float(at_s))])
    assert [value for _, value in rings.points(KEY)] == [1, 2, 3, 4]
