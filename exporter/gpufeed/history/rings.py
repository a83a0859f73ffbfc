# SPDX-License-Identifier: Apache-2.0
"""Bounded memory of selected series: every second for half an hour, every minute for a day.

A series that is not in an append has a gap there, as a stale marker is in Prometheus. Memory is bounded by the number
of series: 26 kB each. What does not fit is refused and counted; a series gone for a day gives up its place.
"""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Final

from gpufeed.history.statistics import Statistic, summarise
from gpufeed.units import NS_PER_S

SeriesKey = tuple[str, tuple[tuple[str, str], ...]]
"""Metric name and labels."""

MAX_SERIES: Final = 400


@dataclass(frozen=True, slots=True)
class Resolution:
    """A sample every `step_s`, and so many of them."""

    step_s: int
    slots: int


FINE: Final = Resolution(1, 30 * 60 + 1)  # one more than 30 min: a window is closed at both ends
COARSE: Final = Resolution(60, 24 * 60 + 1)


@dataclass(slots=True)
class Ring:
    """One series at one resolution. The value of slot n stands at n modulo its length until a later one needs it."""

    resolution: Resolution
    values: "array[float]" = field(init=False)
    last_slot: int | None = None

    def __post_init__(self) -> None:
        self.values = array("d", [nan]) * self.resolution.slots

    def write(self, slot: int, value: float) -> None:
        """Put `value` in `slot`; what lies between it and the slot before is a gap. Earlier slots are not rewritten."""
        if self.last_slot is not None:
            if slot < self.last_slot:
                return
            for gap in range(max(self.last_slot + 1, slot - self.resolution.slots + 1), slot):
                self.values[gap % self.resolution.slots] = nan
        self.values[slot % self.resolution.slots] = value
        self.last_slot = slot

    def read(self, first: int, last: int) -> list[tuple[int, float]]:
        """Slots and values from `first` to `last`, both included; gaps are left out."""
        if self.last_slot is None:
            return []
        first, last = max(first, self.last_slot - self.resolution.slots + 1), min(last, self.last_slot)
        if first > last:
            return []
        begin, end = first % self.resolution.slots, last % self.resolution.slots + 1
        values = self.values[begin:end] if begin < end else self.values[begin:] + self.values[:end]
        return [(slot, value) for slot, value in enumerate(values, first) if not isnan(value)]


@dataclass(slots=True)
class Series:
    """One series at both resolutions."""

    fine: Ring = field(default_factory=lambda: Ring(FINE))
    coarse: Ring = field(default_factory=lambda: Ring(COARSE))

    @property
    def seen_slot(self) -> int:
        """The last second it had a value in."""
        return self.fine.last_slot or 0


class Rings:
    """Recent history of selected series. Not thread-safe: it belongs to the server's loop."""

    def __init__(self, max_series: int = MAX_SERIES) -> None:
        self._max_series = max_series
        self._series: dict[str, dict[SeriesKey, Series]] = {}
        self._size = 0
        self._now_slot: int | None = None
        self.refused = 0

    def __len__(self) -> int:
        return self._size

    def append(self, monotonic_ns: int, rows: Iterable[tuple[SeriesKey, float]]) -> None:
        """The values of one moment. Of several moments within a second the last counts."""
        slot = monotonic_ns // NS_PER_S
        self._now_slot = slot if self._now_slot is None else max(slot, self._now_slot)
        for key, value in rows:
            series = self._series.get(key[0], {}).get(key) or self._admitted(key, slot)
            if series is None:
                self.refused += 1
            else:
                series.fine.write(slot, value)
                series.coarse.write(slot // COARSE.step_s, value)

    def select(self, metric: str) -> Iterable[SeriesKey]:
        """The series of a metric that had a value lately."""
        return tuple(self._series.get(metric, ()))

    def window(self, key: SeriesKey, statistic: Statistic, window_s: int = 0) -> float | None:
        """`statistic` over the last `window_s` seconds, or None where there are too few samples.

        `last` is the value of the newest append, and None when the series was not in it.
        """
        series = self._series.get(key[0], {}).get(key)
        if series is None or self._now_slot is None:
            return None
        if statistic == "last":
            window_s = 0
        samples = series.fine.read(self._now_slot - window_s, self._now_slot)
        if statistic == "last":
            return samples[0][1] if samples else None
        slots = [slot for slot, _ in samples]
        values = [value for _, value in samples]
        return summarise(statistic, slots, values, (self._now_slot - window_s, self._now_slot))

    def points(self, key: SeriesKey, resolution: Resolution = FINE) -> tuple[tuple[int, float], ...]:
        """All that is remembered of a series at FINE or COARSE: monotonic seconds and values, oldest first."""
        series = self._series.get(key[0], {}).get(key)
        if series is None or self._now_slot is None:
            return ()
        ring = series.fine if resolution is FINE else series.coarse
        last = self._now_slot // resolution.step_s
        samples = ring.read(last - resolution.slots + 1, last)
        return tuple((slot * resolution.step_s, value) for slot, value in samples)

    def _admitted(self, key: SeriesKey, slot: int) -> Series | None:
        if self._size >= self._max_series:
            self._drop_before(slot - COARSE.step_s * COARSE.slots)
        if self._size >= self._max_series:
            return None
        self._size += 1
        series = self._series.setdefault(key[0], {})[key] = Series()
        return series

    def _drop_before(self, slot: int) -> None:
        for of_metric in self._series.values():
            for key in [key for key, series in of_metric.items() if series.seen_slot < slot]:
                del of_metric[key]
                self._size -= 1
