# SPDX-License-Identifier: Apache-2.0
"""Slots: newest reading wins, no event and no input status is dropped without a word."""

from gpufeed.model.frame import Failure, GpuEvent, InputStatus, Reading
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.probe.slots import MAX_FAILURES, MAX_LOGS, Slots, Ticket


def reading(lane: str, ended_ns: int, group: str = "host.fast") -> Reading:
    return Reading(
        lane=LaneId(lane),
        group=GroupName(group),
        collector="host",
        began_ns=ended_ns,
        ended_ns=ended_ns,
        period_ns=1,
        samples=(),
    )


def event(number: int) -> GpuEvent:
    return GpuEvent(at_ns=number, kind="test", uuid=None)


def failure(number: int, reason: str = "broken") -> Failure:
    return Failure(
        lane=LaneId("a"),
        group=GroupName("host.fast"),
        collector="host",
        at_ns=number,
        reason=reason,
        detail=f"{number % 7_000}",
    )


def test_the_newest_reading_of_a_group_wins() -> None:
    slots, ticket = Slots(), Ticket(LaneId("a"))
    for ended_ns in (1, 2, 3):
        slots.put_reading(ticket, reading("a", ended_ns))
    slots.put_reading(ticket, reading("a", 2, "host.slow"))
    assert [(found.group, found.ended_ns) for found in slots.take(0).readings] == [("host.fast", 3), ("host.slow", 2)]
    assert slots.take(0).readings == ()


def test_events_keep_their_order_and_wake_the_writer() -> None:
    woken: list[bool] = []
    slots = Slots(lambda: woken.append(True))
    for number in range(3):
        slots.put_event(event(number))
    assert slots.has_events
    assert slots.take(0).events == (event(0), event(1), event(2))
    assert not slots.has_events
    assert woken == [True, True, True]


def test_events_beyond_the_bound_are_counted_and_said() -> None:
    slots = Slots(max_events=2)
    for number in range(5):
        slots.put_event(event(number))
    batch = slots.take(99)
    assert batch.events == (event(0), event(1), GpuEvent(at_ns=99, kind="events_lost", uuid=None, detail="3"))
    slots.put_event(event(7))
    assert slots.take(100).events == (event(7),)


def test_failures_are_bounded_and_equal_ones_merge() -> None:
    slots, ticket = Slots(), Ticket(LaneId("a"))
    for number in range(10_000):
        slots.put_failure(ticket, failure(number))
    found = slots.take(0).failures
    assert len(found) == MAX_FAILURES
    assert {entry.detail: entry.at_ns for entry in found}["3"] == 7_003


def test_log_lines_beyond_the_bound_are_counted_and_said() -> None:
    slots = Slots()
    for number in range(MAX_LOGS + 5):
        slots.log(20, "test", str(number))
    lines = slots.take_logs()
    assert len(lines) == MAX_LOGS + 1
    assert lines[-1].text == "log_lines_lost=5"
    assert slots.take_logs() == ()


def test_a_withdrawn_lane_takes_its_readings_along_but_not_its_events() -> None:
    slots, gone, other = Slots(), Ticket(LaneId("gone")), Ticket(LaneId("other"))
    slots.put_reading(gone, reading("gone", 1))
    slots.put_reading(other, reading("other", 1))
    slots.put_event(event(1))
    slots.withdraw(gone)
    batch = slots.take(0)
    assert batch.withdrawn == ("gone",)
    assert [found.lane for found in batch.readings] == ["other"]
    assert batch.events == (event(1),)


def test_what_a_withdrawn_lane_reads_later_counts_for_nothing() -> None:
    slots, ticket = Slots(), Ticket(LaneId("a"))
    slots.withdraw(ticket)
    slots.put_reading(ticket, reading("a", 2))
    slots.put_failure(ticket, failure(1))
    slots.put_input(ticket, InputStatus(input="gpm", scope="", state="available"))
    batch = slots.take(0)
    assert (batch.readings, batch.failures, batch.inputs) == ((), (), ())


def test_a_lane_that_began_anew_is_heard_after_its_predecessor_was_withdrawn() -> None:
    slots, before, after = Slots(), Ticket(LaneId("a")), Ticket(LaneId("a"))
    slots.withdraw(before)
    slots.put_reading(after, reading("a", 2))
    batch = slots.take(0)
    assert batch.withdrawn == ("a",)
    assert len(batch.readings) == 1
