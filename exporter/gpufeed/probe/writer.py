# SPDX-License-Identifier: Apache-2.0
"""The one thread that writes to the socket: a frame a tick, at once when an event comes.

Back-pressure: nothing is taken from the slots before the bytes of the frame before are gone. While the server does
not read, readings merge in their slots and events queue, and the probe does not grow.
"""

import contextlib
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from gpufeed.clock import Clock
from gpufeed.errors import WireError
from gpufeed.model.frame import Failure, Frame, FrameTime, Reading
from gpufeed.probe.clean import clean_log
from gpufeed.probe.slots import Slots
from gpufeed.units import NS_PER_MS, NS_PER_S, seconds
from gpufeed.wire.framing import encode
from gpufeed.wire.messages import Log, Message

EVENT_SPACING_NS: Final = 20 * NS_PER_MS
"""Frames for events come no closer than this: a storm of events shares frames."""

_NO_TIME: Final = FrameTime(monotonic_ns=0, boottime_ns=0, wall_ns=0)


class Writer:
    """Owns the sending side of the socket, which must not block."""

    def __init__(self, link: socket.socket, clock: Clock, slots: Slots, make_frame: Callable[[], Frame]) -> None:
        self.tick_ns = NS_PER_S
        self._link = link
        self._clock = clock
        self._slots = slots
        self._make_frame = make_frame
        self._queue: deque[Message] = deque()
        self._unsent = memoryview(b"")
        self._wake = threading.Event()
        self._is_ending = False
        self._is_broken = False
        self._frames_on = False
        self._framed_ns = 0
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def wake(self) -> None:
        """Something is urgent. Any thread may call."""
        self._wake.set()

    def begin_frames(self) -> None:
        """From now on frames are sent: there is a configuration."""
        self._frames_on = True
        self.wake()

    def send(self, message: Message) -> None:
        """Queue a message that is no frame. Any thread may call."""
        self._queue.append(message)
        self.wake()

    def end(self, timeout_s: float) -> None:
        """Send what is queued and a last frame, for at most `timeout_s`."""
        self._is_ending = True
        self.wake()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._is_broken:
            is_last = self._is_ending
            self._wake.clear()
            self._flush()
            if not self._unsent and not self._is_broken:
                self._compose(is_last=is_last)
                self._flush()
            if is_last and not self._unsent:
                return
            self._wait()

    def _wait(self) -> None:
        if self._is_broken:
            return
        if self._unsent:
            select.select([], [self._link], [], 1.0)
            return
        is_urgent = self._slots.has_events and self._frames_on
        left_ns = self._framed_ns + (EVENT_SPACING_NS if is_urgent else self.tick_ns) - self._clock.monotonic_ns()
        if left_ns > 0 and not self._is_ending:
            self._wake.wait(seconds(left_ns))

    def _compose(self, *, is_last: bool) -> None:
        """Encode what waits: messages, log lines, and a frame if one is due."""
        parts = [self._encoded(message) for message in self._queued()]
        parts += [encode(_clean(line)) for line in self._slots.take_logs()]
        if self._frames_on and (is_last or self._is_frame_due()):
            self._framed_ns = self._clock.monotonic_ns()
            parts.append(encode_frame(self._make_frame()))
        self._unsent = memoryview(b"".join(parts))

    def _queued(self) -> list[Message]:
        return [self._queue.popleft() for _ in range(len(self._queue))]

    def _is_frame_due(self) -> bool:
        spacing_ns = EVENT_SPACING_NS if self._slots.has_events else self.tick_ns
        return self._clock.monotonic_ns() - self._framed_ns >= spacing_ns

    def _encoded(self, message: Message) -> bytes:
        return encode(_clean(message) if isinstance(message, Log) else message)

    def _flush(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[self._link.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._is_broken = True  # the server is gone: the reading side sees it too, and ends the probe


def encode_frame(frame: Frame) -> bytes:
    """The frame, framed; readings that cannot cross the wire are left out, each of them a failure instead."""
    while True:
        try:
            return encode(frame)
        except WireError as error:
            frame = _without(frame, _culprits(frame), str(error))


def _culprits(frame: Frame) -> frozenset[int]:
    """Positions of the readings that cannot be encoded; else of the one with most samples."""
    if not frame.readings:
        raise WireError("a frame without readings cannot be encoded")
    faulty = frozenset(position for position, reading in enumerate(frame.readings) if not _is_sound(reading))
    largest = max(range(len(frame.readings)), key=lambda position: len(frame.readings[position].samples))
    return faulty or frozenset({largest})


def _is_sound(reading: Reading) -> bool:
    with contextlib.suppress(WireError):
        encode(Frame(sequence=0, time=_NO_TIME, readings=(reading,)))
        return True
    return False


def _without(frame: Frame, culprits: frozenset[int], problem: str) -> Frame:
    kept = tuple(reading for position, reading in enumerate(frame.readings) if position not in culprits)
    failures = tuple(
        Failure(
            lane=reading.lane,
            group=reading.group,
            collector=reading.collector,
            at_ns=reading.ended_ns,
            reason="broken",
            detail=f"{len(reading.samples)} samples left out: {problem}",
        )
        for reading in (frame.readings[position] for position in sorted(culprits))
    )
    return msgspec.structs.replace(frame, readings=kept, failures=frame.failures + failures)


def _clean(line: Log) -> Log:
    return Log(level=line.level, logger=line.logger, text=clean_log(line.text))
