# SPDX-License-Identifier: Apache-2.0
"""Bytes under way: rates that stand still between changes, with what has passed so far."""

from collections import deque
from typing import Final

from gpufeed.simulate.pipeline.sharing import Shared
from gpufeed.simulate.pipeline.track import RECENT_NS

_NOTHING: Final = 1e-6


class Copies:
    """Copies over PCIe in one direction, several at a time."""

    __slots__ = ("_recent", "_since_ns", "_total", "_under_way", "bytes_per_ns")

    def __init__(self) -> None:
        self.bytes_per_ns = 0.0
        self._under_way = 0
        self._since_ns = 0
        self._total = 0.0
        self._recent: deque[tuple[int, int, float]] = deque()

    def begin(self, now_ns: int, bytes_per_ns: float) -> None:
        """One more copy runs."""
        self._settle(now_ns)
        self._under_way += 1
        self.bytes_per_ns += bytes_per_ns

    def end(self, now_ns: int, bytes_per_ns: float) -> None:
        """A copy that began with this rate is done."""
        self._settle(now_ns)
        self._under_way -= 1
        # what rounding leaves must not grow over millions of copies
        self.bytes_per_ns = self.bytes_per_ns - bytes_per_ns if self._under_way else 0.0

    def total(self, now_ns: int) -> float:
        """Bytes since the start."""
        self._settle(now_ns)
        return self._total

    def window(self, began_ns: int, ended_ns: int) -> float:
        """Bytes between two instants, at most RECENT_NS ago."""
        parts = (*self._recent, (self._since_ns, ended_ns, self.bytes_per_ns))
        return sum(max(0, min(until, ended_ns) - max(since, began_ns)) * rate for since, until, rate in parts)

    def _settle(self, now_ns: int) -> None:
        spent_ns = now_ns - self._since_ns
        if not spent_ns:
            return
        if self.bytes_per_ns:
            self._total += self.bytes_per_ns * spent_ns
            recent = self._recent
            recent.append((self._since_ns, now_ns, self.bytes_per_ns))
            while recent[0][1] < now_ns - RECENT_NS:
                recent.popleft()
        self._since_ns = now_ns


class Transfers:
    """Reads or writes of one rank at one server, as its client counts them."""

    __slots__ = ("_at", "_bytes", "_each", "_on_wire", "_outstanding", "_queue_s", "_queued", "_round_trip_s",
                 "_server", "_since_ns", "operation_bytes")  # fmt: skip

    def __init__(self, server: Shared, operation_bytes: float) -> None:
        self.operation_bytes = operation_bytes
        self._server = server
        self._at = 0.0  # what the server had given each user when last looked
        self._since_ns = 0
        self._each = 0.0  # bytes for one unit that the server gives each user
        self._outstanding = 0.0  # operations on the wire
        self._queued = 0.0  # operations that wait for a slot of the client
        self._bytes = self._round_trip_s = self._queue_s = 0.0

    def change(self, now_ns: int, each: float, outstanding: float, queued: float = 0.0) -> None:
        """One more transfer runs; or, with what it began with negative, one fewer."""
        self._settle(now_ns)
        self._each += each
        self._outstanding += outstanding
        self._queued += queued
        if abs(self._outstanding) < _NOTHING:
            # what rounding leaves must not grow over millions of transfers
            self._each = self._outstanding = self._queued = 0.0

    def add(self, size: float) -> None:
        """So much moves in no time."""
        self._bytes += size

    def totals(self, now_ns: int) -> tuple[float, float, float, float]:
        """Since the start: bytes, operations, and the seconds that operations were on the wire and in the queue.

        An operation under way counts as far as it is.
        """
        self._settle(now_ns)
        return self._bytes, self._bytes / self.operation_bytes, self._round_trip_s, self._queue_s

    def _settle(self, now_ns: int) -> None:
        if self._outstanding:
            at = self._server.received(now_ns)
            self._bytes += self._each * (at - self._at)
            self._at = at
            spent_s = (now_ns - self._since_ns) * 1e-9
            self._round_trip_s += self._outstanding * spent_s
            self._queue_s += self._queued * spent_s
        else:
            self._at = self._server.received(now_ns)
        self._since_ns = now_ns
