# SPDX-License-Identifier: Apache-2.0
"""What has changed lately: alerts that began or ended, verdicts that became worse or better. Kept over restarts."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec
from msgspec import Struct

from gpufeed.errors import ParseError

MAX_EVENTS: Final = 500
MAX_LEVELS: Final = 5_000


class Event(Struct, frozen=True, array_like=True):
    """One change."""

    wall_ns: int
    kind: Literal["alert", "health"]
    name: str  # of the alert or check
    of: str  # what it is about, for people
    to: str  # firing, resolved; ok, degraded, failed
    severity: str = ""
    text: str = ""


class _Saved(Struct, frozen=True):
    events: list[Event]
    levels: dict[str, int]


class Events:
    """The newest changes, and the last known verdicts that they are told by."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=MAX_EVENTS)
        self._levels: dict[str, int] = {}

    def add(self, events: Iterable[Event]) -> None:
        """These have happened, the oldest first."""
        self._events.extend(events)

    def newest(self) -> tuple[Event, ...]:
        """All that is remembered, the newest first."""
        return tuple(reversed(self._events))

    def changed(self, levels: Mapping[str, int]) -> tuple[str, ...]:
        """Names whose level is another than when it was last known; one that is not known at all was well.

        A verdict that is gone says nothing: after a restart all of them are, for a while.
        """
        found = tuple(name for name, level in levels.items() if level != self._levels.get(name, 0))
        for name in found:
            self._levels.pop(name, None)
            if levels[name] and len(self._levels) < MAX_LEVELS:
                self._levels[name] = levels[name]
        return found

    def save(self) -> bytes:
        """To keep over a restart."""
        return msgspec.msgpack.encode(_Saved(list(self._events), self._levels))

    def restore(self, data: bytes) -> None:
        """Take over what an earlier server knew; what has happened since stays the newer. Raises ParseError."""
        try:
            saved = msgspec.msgpack.decode(data, type=_Saved)
        except msgspec.DecodeError as error:
            raise ParseError("saved events", str(error)) from error
        since = list(self._events)
        self._events = deque((*saved.events, *since), maxlen=MAX_EVENTS)
        self._levels = {**saved.levels, **self._levels}
