# SPDX-License-Identifier: Apache-2.0
"""What lanes have to say, until the writer takes it: readings newest wins, events and input statuses all."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gpufeed.model.frame import Event, Failure, GpuEvent, InputStatus, Reading
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.wire.messages import Log

MAX_EVENTS: Final = 4096
MAX_FAILURES: Final = 2048
MAX_LOGS: Final = 256


def nobody_waits() -> None:
    """The wake of a caller who looks by himself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Everything that is new since the batch before."""

    readings: tuple[Reading, ...] = ()
    failures: tuple[Failure, ...] = ()
    inputs: tuple[InputStatus, ...] = ()
    events: tuple[Event, ...] = ()
    withdrawn: tuple[LaneId, ...] = ()


@dataclass(slots=True)
class Ticket:
    """A lane's right to be heard. Void once the lane is withdrawn: a read that ends later counts for nothing."""

    lane: LaneId
    is_void: bool = False


class Slots:
    """Any lane may put, one writer takes. Bounded: nothing here grows while the server does not listen.

    What has to be left out is said: lost events by a `GpuEvent` of kind `events_lost`, lost log lines by a line.
    """

    def __init__(self, wake: Callable[[], None] = nobody_waits, max_events: int = MAX_EVENTS) -> None:
        self._wake = wake
        self._max_events = max_events
        self._lock = threading.Lock()
        self._readings: dict[tuple[LaneId, GroupName], Reading] = {}
        self._failures: dict[tuple[LaneId, GroupName, str, str], Failure] = {}
        self._inputs: dict[tuple[str, str], InputStatus] = {}
        self._said: dict[tuple[str, str], InputStatus] = {}
        self._events: deque[Event] = deque()
        self._withdrawn: dict[LaneId, None] = {}
        self._logs: deque[Log] = deque()
        self._lost_events = 0
        self._lost_logs = 0

    def put_reading(self, ticket: Ticket, reading: Reading) -> None:
        """Replace the lane's reading of the same group, if the writer has not taken it yet."""
        with self._lock:
            if not ticket.is_void:
                self._readings[reading.lane, reading.group] = reading

    def put_failure(self, ticket: Ticket, failure: Failure) -> None:
        """Keep a failure; of equal ones only the last."""
        key = (failure.lane, failure.group, failure.reason, failure.detail)
        with self._lock:
            if not ticket.is_void and (key in self._failures or len(self._failures) < MAX_FAILURES):
                self._failures[key] = failure

    def put_input(self, ticket: Ticket, status: InputStatus) -> None:
        """Keep what became known of an input, unless it was said already."""
        key = (status.input, status.scope)
        with self._lock:
            if not ticket.is_void and self._said.get(key) != status:
                self._said[key] = self._inputs[key] = status

    def put_event(self, event: Event) -> None:
        """Queue an event, of a withdrawn lane too, and wake the writer.

        Where there is no room the oldest are kept: the first of many is most often the cause.
        """
        with self._lock:
            if len(self._events) < self._max_events:
                self._events.append(event)
            else:
                self._lost_events += 1
        self._wake()

    def log(self, level: int, logger: str, text: str) -> None:
        """Queue a line for the daemon's log."""
        with self._lock:
            if len(self._logs) < MAX_LOGS:
                self._logs.append(Log(level=level, logger=logger, text=text))
            else:
                self._lost_logs += 1

    def withdraw(self, ticket: Ticket) -> None:
        """A lane ended: forget what it read and say so. Events it has seen stay."""
        with self._lock:
            ticket.is_void = True
            for key in [key for key in self._readings if key[0] == ticket.lane]:
                del self._readings[key]
            self._withdrawn[ticket.lane] = None

    @property
    def has_events(self) -> bool:
        """Whether a frame is due at once."""
        return bool(self._events)

    def take(self, now_ns: int) -> Batch:
        """All that is new, at `now_ns`; it is gone here."""
        with self._lock:
            if self._lost_events:
                detail = str(self._lost_events)
                self._events.append(GpuEvent(at_ns=now_ns, kind="events_lost", uuid=None, detail=detail))
            batch = Batch(
                readings=tuple(self._readings.values()),
                failures=tuple(self._failures.values()),
                inputs=tuple(self._inputs.values()),
                events=tuple(self._events),
                withdrawn=tuple(self._withdrawn),
            )
            for kept in (self._readings, self._failures, self._inputs, self._events, self._withdrawn):
                kept.clear()
            self._lost_events = 0
        return batch

    def take_logs(self) -> tuple[Log, ...]:
        """Log lines that wait; they are gone here."""
        with self._lock:
            if self._lost_logs:
                text = f"log_lines_lost={self._lost_logs}"
                self._logs.append(Log(level=30, logger="gpufeed.probe", text=text))
            lines = tuple(self._logs)
            self._logs.clear()
            self._lost_logs = 0
        return lines
