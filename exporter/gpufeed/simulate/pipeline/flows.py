# SPDX-License-Identifier: Apache-2.0
"""Bytes under way: rates that stand still between changes, with what has passed so far."""

from collections import deque
from typing import Final

from gpufeed.simulate.pipeline.track import RECENT_NS

READINGS: Final = ("bytes", "operations", "round_trip_s", "queue_s")


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
    """Reads or writes of one kind of storage by one rank, as the client counts them."""

    __slots__ = ("_rates", "_since_ns", "_totals", "under_way")

    def __init__(self) -> None:
        self.under_way = 0
        self._since_ns = 0
        self._totals = [0.0] * len(READINGS)
        self._rates = [0.0] * len(READINGS)

    def begin(self, now_ns: int, rates: tuple[float, ...]) -> None:
        """One more runs; its share of each of READINGS per nanosecond."""
        self._settle(now_ns)
        self.under_way += 1
        self._rates = [have + more for have, more in zip(self._rates, rates, strict=True)]

    def end(self, now_ns: int, rates: tuple[float, ...]) -> None:
        """One that began with these rates is done."""
        self._settle(now_ns)
        self.under_way -= 1
        if self.under_way:
            self._rates = [have - less for have, less in zip(self._rates, rates, strict=True)]
        else:
            self._rates = [0.0] * len(READINGS)

    def totals(self, now_ns: int) -> list[float]:
        """Since the start, in the order of READINGS. What never ends within the run counts as it goes."""
        self._settle(now_ns)
        return self._totals

    def _settle(self, now_ns: int) -> None:
        spent_ns = now_ns - self._since_ns
        if spent_ns:
            if self.under_way:
                self._totals = [total + rate * spent_ns for total, rate in zip(self._totals, self._rates, strict=True)]
            self._since_ns = now_ns
