# SPDX-License-Identifier: Apache-2.0
"""What has changed: bounded, kept over a restart, and without changes that only a restart makes."""

import pytest

from gpufeed.errors import ParseError
from gpufeed.history.events import MAX_EVENTS, MAX_LEVELS, Event, Events


def event(number: int) -> Event:
    return Event(wall_ns=number, kind="health", name="xid", of="GPU 3", to="failed")


def test_the_newest_come_first_and_the_oldest_are_forgotten() -> None:
    events = Events()
    events.add(event(number) for number in range(MAX_EVENTS + 10))
    told = events.newest()
    assert (len(told), told[0].wall_ns, told[-1].wall_ns) == (MAX_EVENTS, MAX_EVENTS + 9, 10)


def test_a_level_that_is_another_than_before_is_a_change_and_a_first_zero_is_none() -> None:
    events = Events()
    assert events.changed({"a": 0, "b": 2}) == ("b",)
    assert events.changed({"a": 0, "b": 2}) == ()
    assert events.changed({"b": 1}) == ("b",)
    assert events.changed({}) == ()
    assert events.changed({"b": 0}) == ("b",)
    assert events.changed({"b": 0}) == ()


def test_over_a_restart_nothing_is_told_twice_and_nothing_is_lost() -> None:
    before, after = Events(), Events()
    before.add([event(1)])
    before.changed({"a": 2, "b": 1})
    after.add([event(2)])
    after.restore(before.save())
    assert [one.wall_ns for one in after.newest()] == [2, 1]
    assert after.changed({}) == ()
    assert after.changed({"a": 2, "b": 0, "c": 1}) == ("b", "c")


def test_more_faults_than_fit_are_told_and_take_no_memory() -> None:
    events = Events()
    many = {str(number): 2 for number in range(MAX_LEVELS + 1)}
    assert len(events.changed(many)) == MAX_LEVELS + 1
    assert len(events.changed(many)) == 1


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x80"])
def test_what_is_no_history_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError):
        Events().restore(data)
