# SPDX-License-Identifier: Apache-2.0
"""The writer under back-pressure, and frames that hold what cannot be sent."""

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from gpufeed.clock import SystemClock
from gpufeed.model.frame import Frame, FrameTime, GpuEvent, Reading
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.sample import Extension
from gpufeed.probe.report import Reporter
from gpufeed.probe.slots import Slots, Ticket
from gpufeed.probe.writer import Writer, encode_frame
from gpufeed.units import NS_PER_MS, NS_PER_S
from gpufeed.wire.framing import Decoder, decode
from gpufeed.wire.messages import MAX_MESSAGE_BYTES, Applied, Log, Message, Shutdown
from running import poll

TICKET = Ticket(LaneId("a"))


def reading(number: int, *values: Any, metric: str = "m") -> Reading:
    samples = tuple(Extension(source="s", metric=metric, labels=(), value=value) for value in values or (number,))
    return Reading(
        lane=LaneId(f"a{number}"),
        group=GroupName("host.fast"),
        collector="extra",
        began_ns=number,
        ended_ns=number,
        period_ns=1,
        samples=samples,
    )


class Wired:
    """A writer, its slots, and the other end of its socket."""

    def __init__(self) -> None:
        clock = SystemClock()
        self.ours, self.theirs = socket.socketpair()
        self.ours.settimeout(0)
        self.theirs.settimeout(0)
        self.slots = Slots(self.wake)
        reporter = Reporter(clock, self.slots, 1, lambda: (0, 0))
        self.writer = Writer(self.ours, clock, self.slots, lambda: reporter.frame(()))
        self.writer.tick_ns = NS_PER_MS
        self.decoder = Decoder()
        self.heard: list[Message] = []

    def wake(self) -> None:
        self.writer.wake()

    def listen(self) -> list[Message]:
        with contextlib.suppress(BlockingIOError):
            self.heard += self.decoder.feed(self.theirs.recv(1 << 20))
        return self.heard

    def frames(self) -> list[Frame]:
        return [message for message in self.listen() if isinstance(message, Frame)]

    def fill(self) -> None:
        """Send until the socket takes no more."""
        big = reading(0, *range(200), metric="x" * 500)

        def is_full() -> bool:
            self.slots.put_reading(TICKET, big)
            return len(self.writer._unsent) > 0

        poll(is_full, 10, "a full socket")


@pytest.fixture
def wired() -> Iterator[Wired]:
    wiring = Wired()
    wiring.writer.start()
    with wiring.ours, wiring.theirs:
        yield wiring
        wiring.writer.end(5)


def test_nothing_but_messages_is_sent_before_there_is_a_configuration(wired: Wired) -> None:
    wired.slots.put_event(GpuEvent(at_ns=1, kind="early", uuid=None))
    wired.writer.send(Applied(generation=1))
    poll(lambda: Applied(generation=1) in wired.listen(), 5, "the message")
    assert wired.frames() == []
    wired.writer.begin_frames()
    poll(lambda: wired.frames() and wired.frames()[0].events, 5, "the event")


def test_a_server_that_does_not_listen_loses_state_frames_but_no_event(wired: Wired) -> None:
    wired.writer.begin_frames()
    wired.fill()
    for number in range(1000):
        wired.slots.put_reading(TICKET, reading(0, number))
        wired.slots.put_event(GpuEvent(at_ns=number, kind="test", uuid=None))
    poll(lambda: sum(len(frame.events) for frame in wired.frames()) >= 1000, 10, "all events")
    assert [event.at_ns for frame in wired.frames() for event in frame.events] == list(range(1000))
    numbers = [value for frame in wired.frames() for value in values(frame)]
    assert len(numbers) < 1000
    assert numbers[-1] == 999


def values(frame: Frame) -> list[float]:
    return [
        sample.value
        for entry in frame.readings
        for sample in entry.samples
        if isinstance(sample, Extension) and sample.metric == "m"
    ]


def is_last(frame: Frame) -> bool:
    return 999 in values(frame)


def test_log_lines_are_cleaned_and_sent(wired: Wired) -> None:
    wired.slots.log(30, "gpufeed.probe", "bad\x00\nline \udcff")
    poll(lambda: any(isinstance(message, Log) for message in wired.listen()), 5, "the line")
    (line,) = [message for message in wired.heard if isinstance(message, Log)]
    assert line.text == "bad\N{REPLACEMENT CHARACTER}\nline \N{REPLACEMENT CHARACTER}"


def test_the_last_words_are_sent_before_the_end(wired: Wired) -> None:
    wired.writer.tick_ns = 60 * NS_PER_S
    wired.writer.begin_frames()
    poll(wired.frames, 5, "the first frame")
    wired.slots.put_reading(TICKET, reading(0, 999))
    wired.writer.send(Shutdown(reason="stop"))
    wired.writer.end(5)
    frames = wired.frames()
    assert Shutdown(reason="stop") in wired.heard
    assert is_last(frames[-1])


def test_a_server_that_is_gone_ends_the_writer(wired: Wired) -> None:
    wired.theirs.close()
    wired.writer.begin_frames()
    poll(lambda: not wired.writer._thread.is_alive(), 5, "the end of the writer")


def frame_of(*readings: Reading) -> Frame:
    return Frame(sequence=1, time=FrameTime(monotonic_ns=1, boottime_ns=1, wall_ns=1), readings=readings)


def sent(frame: Frame) -> Frame:
    found = decode(encode_frame(frame)[4:])
    assert isinstance(found, Frame)
    return found


@pytest.mark.parametrize("value", [object(), 2**70, "\udcff"], ids=["an object", "a huge integer", "half a character"])
def test_a_reading_that_cannot_be_encoded_costs_itself_and_is_named(value: Any) -> None:
    found = sent(frame_of(reading(1, 1.0), reading(2, value), reading(3, 3.0)))
    assert [entry.lane for entry in found.readings] == ["a1", "a3"]
    assert [(failure.lane, failure.reason) for failure in found.failures] == [("a2", "broken")]


def test_a_frame_over_the_cap_goes_without_its_largest_reading() -> None:
    large = reading(2, *range(100_000), metric="x" * 100)
    found = sent(frame_of(reading(1), large, reading(3)))
    assert [entry.lane for entry in found.readings] == ["a1", "a3"]
    assert f"over the cap of {MAX_MESSAGE_BYTES}" in found.failures[0].detail
