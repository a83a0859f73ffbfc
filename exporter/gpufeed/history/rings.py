# SPDX-License-Identifier: Apache-2.0
"""Bounded memory of selected series: every second for half an hour, every minute for a day.

A series that is not in an append has a gap there, as a stale marker is in Prometheus. Memory is bounded by the number
of series: 40 kB each. A series that is gone gives up its place to a new one; what does not fit is refused and counted.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isnan
from typing import Final

from gpufeed.history.ring import CounterRing, Resolution, Ring
from gpufeed.history.statistics import Statistic, extrapolate, summarise
from gpufeed.units import NS_PER_S

SeriesKey = tuple[str, tuple[tuple[str, str], ...]]
"""Metric name and labels."""

MAX_SERIES: Final = 800
"""What the conditions read over windows on a node with 16 GPUs, every state met, and some room: 32 MB at most."""
MAX_LATEST: Final = 5_000
"""Series of which the newest value alone is asked for; less than a kilobyte each."""


GONE_S: Final = 300
"""A series without a value for so long is gone, as for Prometheus: mounts of pods come and go by the hundred."""
FINE: Final = Resolution(1, 30 * 60 + 1)  # one more than 30 min: a window is closed at both ends
COARSE: Final = Resolution(60, 24 * 60 + 1)
LATEST: Final = Resolution(1, 2)


@dataclass(slots=True)
class Series:
    """One series at both resolutions."""

    fine: CounterRing = field(default_factory=lambda: CounterRing(FINE))
    coarse: Ring = field(default_factory=lambda: Ring(COARSE))

    @property
    def seen_slot(self) -> int:
        """The last second it had a value in."""
        return self.fine.last_slot or 0


class Rings:
    """Recent history of selected series. Not thread-safe: it belongs to the server's loop."""

    def __init__(self, max_series: int = MAX_SERIES, fine: Resolution = FINE) -> None:
        self._max_series = max_series
        self._fine = fine
        self._latest_only: frozenset[str] = frozenset()
        self._series: dict[str, dict[SeriesKey, Series]] = {}
        self._size = 0
        self._now_slot: int | None = None
        self.refused = 0

    def __len__(self) -> int:
        return self._size

    def keep_latest_only(self, metrics: frozenset[str]) -> None:
        """Of these metrics nobody asks for more than the newest value: nothing else of them is kept from now on."""
        for metric in metrics ^ self._latest_only:
            self._size -= len(self._series.pop(metric, ()))
        self._latest_only = metrics

    def append(self, monotonic_ns: int, rows: Iterable[tuple[SeriesKey, float]]) -> None:
        """The values of one moment. Of several moments within a second the last counts."""
        slot = monotonic_ns // NS_PER_S
        self._now_slot = slot if self._now_slot is None else max(slot, self._now_slot)
        for key, value in rows:
            if isnan(value):
                continue
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
        now, ring = self._now_slot, series.fine
        if statistic == "last":
            newest = ring.read(now, now)
            return newest[0][1] if newest else None
        if statistic in {"rate", "increase"}:
            run = ring.run(now - window_s, now)
            return extrapolate(run, (now - window_s, now), per_second=statistic == "rate") if run else None
        return summarise(statistic, [value for _, value in ring.read(now - window_s, now)])

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
        is_brief = key[0] in self._latest_only
        if self._is_full(is_brief=is_brief):
            self._drop_before(slot - GONE_S)
        if self._is_full(is_brief=is_brief):
            return None
        self._size += 1
        made = (
            Series(fine=CounterRing(LATEST), coarse=Ring(LATEST)) if is_brief else Series(fine=CounterRing(self._fine))
        )
        self._series.setdefault(key[0], {})[key] = made
        return made

    def _is_full(self, *, is_brief: bool) -> bool:
        brief = sum(len(self._series.get(metric, ())) for metric in self._latest_only)
        return brief >= MAX_LATEST if is_brief else self._size - brief >= self._max_series

    def _drop_before(self, slot: int) -> None:
        for of_metric in self._series.values():
            for key in [key for key, series in of_metric.items() if series.seen_slot < slot]:
                del of_metric[key]
                self._size -= 1
