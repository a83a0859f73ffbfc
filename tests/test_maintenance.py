# SPDX-License-Identifier: Apache-2.0
"""Maintenance ends by itself, over steps of the clock and restarts."""

from hypothesis import given
from hypothesis import strategies as st

from gpufeed.daemon.maintenance import LONGEST_S, Maintenance
from gpufeed.simulate.clock import SteppedClock

SECOND = 1_000_000_000


def test_it_ends_when_its_time_has_come_and_not_before() -> None:
    clock = SteppedClock()
    maintenance = Maintenance(clock)
    assert (maintenance.is_on, maintenance.until_wall_s) == (False, None)
    maintenance.begin(60 * SECOND)
    assert maintenance.until_wall_s == clock.wall_ns() / SECOND + 60
    clock.advance(59 * SECOND)
    assert maintenance.is_on
    clock.advance(SECOND)
    assert not maintenance.is_on


def test_it_can_be_ended_and_moved() -> None:
    clock = SteppedClock()
    maintenance = Maintenance(clock)
    maintenance.begin(60 * SECOND)
    maintenance.begin(10 * SECOND)
    assert maintenance.left_ns == 10 * SECOND
    maintenance.end()
    assert not maintenance.is_on


def test_a_restart_keeps_its_end() -> None:
    clock = SteppedClock()
    first, second = Maintenance(clock), Maintenance(clock)
    first.begin(60 * SECOND)
    saved = first.save()
    clock.advance(20 * SECOND)
    second.restore(saved)
    assert second.left_ns == 40 * SECOND
    clock.advance(40 * SECOND)
    third = Maintenance(clock)
    third.restore(saved)
    assert not third.is_on


def test_a_saved_end_in_a_far_future_is_no_maintenance_for_ever() -> None:
    clock = SteppedClock()
    ahead = Maintenance(clock)
    ahead.begin(10**17)
    here = Maintenance(clock)
    here.restore(ahead.save())
    assert here.left_ns == LONGEST_S * SECOND


def test_what_was_said_since_the_start_is_not_replaced() -> None:
    clock = SteppedClock()
    old, new = Maintenance(clock), Maintenance(clock)
    old.begin(600 * SECOND)
    new.begin(10 * SECOND)
    new.restore(old.save())
    assert new.left_ns == 10 * SECOND


@given(st.binary(max_size=40) | st.none())
def test_what_cannot_be_read_is_no_maintenance(data: bytes | None) -> None:
    maintenance = Maintenance(SteppedClock())
    maintenance.restore(data)
    assert maintenance.left_ns <= LONGEST_S * SECOND
