# SPDX-License-Identifier: Apache-2.0
"""What a job's computing looks like: its highest levels, and what goes on behind it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.signals.footprint import BUCKET_NS, UNKNOWN, Footprint, Levels
from gpufeed.units import NS_PER_S

COMPUTING = Levels(active=1.0, sm=0.9, tensor=0.5, power=0.8, memory=0.4, nvlink=0.2, fabric=0.1)
MIXED = replace(COMPUTING, sm=0.5, tensor=0.25, power=0.6, memory=0.2, nvlink=0.4)


def after(*levels: Levels, of: Footprint = UNKNOWN, began_ns: int = 0) -> Footprint:
    """One second each."""
    for number, one in enumerate(levels, 1):
        of = of.after(one, began_ns + number * NS_PER_S, 1.0)
    return of


def test_the_highest_levels_are_the_jobs_own() -> None:
    job = after(MIXED, COMPUTING, MIXED)
    assert (job.sm, job.tensor, job.power, job.memory, job.seen_s) == (0.9, 0.5, 0.8, 0.4, 3.0)


def test_levels_are_of_the_active_time_and_little_of_it_says_nothing() -> None:
    half = Levels(active=0.5, sm=0.45, tensor=0.25)
    assert after(half).sm == pytest.approx(0.9)
    assert after(replace(half, active=0.4)) == UNKNOWN


def test_another_job_is_known_after_two_buckets() -> None:
    first = after(COMPUTING)
    second = after(MIXED, of=first, began_ns=BUCKET_NS)
    assert second.sm == 0.9
    assert after(MIXED, of=second, began_ns=2 * BUCKET_NS).sm == 0.5


def test_even_is_what_has_no_interval_of_its_own() -> None:
    assert after(MIXED, MIXED).is_even
    assert not after(COMPUTING, MIXED, MIXED).is_even
    by_power = replace(COMPUTING, sm=None, tensor=None)
    assert after(by_power, by_power).is_even
    assert not after(by_power, *[replace(by_power, power=0.3)] * 9).is_even


def test_what_runs_behind_the_computing_is_learned_where_all_is_computing() -> None:
    job = after(*[COMPUTING] * 300)
    assert (job.hidden_nvlink, job.hidden_fabric) == pytest.approx((0.2, 0.1), abs=1e-3)
    assert after(*[MIXED] * 5, of=job).hidden_nvlink == job.hidden_nvlink


def test_a_job_has_exchanged_as_soon_as_bytes_have_gone_anywhere() -> None:
    silent = replace(COMPUTING, nvlink=0.0, fabric=0.0)
    assert not after(silent).has_exchanged
    assert after(silent, replace(silent, fabric=0.001), silent).has_exchanged


def test_levels_of_exchanges_are_bytes_over_exposed_time_less_what_runs_behind() -> None:
    job = replace(UNKNOWN, hidden_nvlink=0.2)
    assert job.exchange_nvlink is None
    assert job.exchange_fabric is None
    for _ in range(10):
        # half exposed: 0.4 over all is 0.4 less 0.1 behind, in half of the time
        job = job.with_exchange(Levels(active=1.0, nvlink=0.4, fabric=0.05), 0.5, 0.5, 1.0)
    assert job.exchange_nvlink == pytest.approx(0.6)
    # NVLink takes 0.3 / 0.77 of each half; the port has what is left of it
    assert job.exchange_fabric == pytest.approx(0.05 / (0.5 - 0.3 / 0.77))
    assert job.moving_nvlink == pytest.approx(0.6)


def test_an_interval_of_little_exchange_sets_no_rate() -> None:
    job = UNKNOWN.with_exchange(Levels(active=1.0, nvlink=0.2), 0.1, 0.1, 1.0)
    assert (job.moving_nvlink, job.moving_fabric) == (0.0, 0.0)


RATIO = st.floats(0, 1)


@given(st.lists(st.tuples(st.builds(Levels, active=RATIO, sm=RATIO, tensor=RATIO, nvlink=RATIO, fabric=RATIO), RATIO)))
def test_nothing_learned_leaves_its_range(intervals: list[tuple[Levels, float]]) -> None:
    job = UNKNOWN
    for at, (levels, exposed) in enumerate(intervals):
        job = job.after(levels, at * NS_PER_S, 1.0).with_exchange(levels, exposed, exposed, 1.0)
        assert 0 <= job.sm <= 1
        assert 0 <= job.hidden_nvlink <= 1
        for level in (job.exchange_nvlink, job.exchange_fabric, job.moving_nvlink, job.moving_fabric):
            assert level is None or 0 <= level <= 1
