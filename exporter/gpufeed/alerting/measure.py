# SPDX-License-Identifier: Apache-2.0
"""PURE. What a condition says of the recent history: for each thing, its value and whether the condition holds.

Does what the PromQL of `expression` does, on our own series.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf, nan
from typing import Final, Protocol

from gpufeed.alerting.define import IN_USE, Comparison, Condition, Matcher, Select
from gpufeed.history.rings import SeriesKey
from gpufeed.history.statistics import Statistic

Labels = tuple[tuple[str, str], ...]

_COMPARE: Final[Mapping[Comparison, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class History(Protocol):
    """Recent series. `history.rings.Rings` is one."""

    def select(self, metric: str) -> Iterable[SeriesKey]:
        """Every series of a metric."""

    def window(self, key: SeriesKey, statistic: Statistic, window_s: int = 0) -> float | None:
        """A statistic over the seconds until now; None: too few samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One thing that a condition is about. `used`: whether it was lately in use; None: not known."""

    labels: Labels
    value: float
    holds: bool
    used: bool | None = None


def measure(condition: Condition, history: History) -> Iterator[Measurement]:
    """Every thing the condition has a value for, whether it holds there or not."""
    compare = _COMPARE[condition.comparison]
    over_short = None if condition.short_window_s is None else _values(condition, history, condition.short_window_s)
    for labels, value in _values(condition, history, condition.window_s).items():
        holds = compare(value, condition.threshold)
        if over_short is not None:
            holds = holds and compare(over_short.get(labels, nan), condition.threshold)
        yield Measurement(labels=labels, value=value, holds=holds, used=_used(condition, labels, history))


def wanted(conditions: Iterable[Condition]) -> Callable[[SeriesKey], bool]:
    """Which series the history must keep for these conditions."""
    selects = [select for condition in conditions for select in condition.selects]
    by_metric = {select.metric: [one for one in selects if one.metric == select.metric] for select in selects}
    in_use = frozenset(IN_USE.values())

    def is_wanted(key: SeriesKey) -> bool:
        return key[0] in in_use or any(_matches(select, key[1]) for select in by_metric.get(key[0], ()))

    return is_wanted


def windowed(conditions: Iterable[Condition]) -> frozenset[str]:
    """Metrics of which these conditions read more than the newest value."""
    return frozenset(select.metric for one in conditions if one.window_s for select in one.selects)


def _values(condition: Condition, history: History, window_s: int) -> dict[Labels, float]:
    grouped = [_grouped(select, condition.statistic, window_s, history) for select in condition.selects]
    if len(grouped) == 1:
        worst = max if condition.comparison in {">", ">="} else min
        return {labels: worst(values) for labels, values in grouped[0].items()}
    above, below = ({labels: sum(values) for labels, values in one.items()} for one in grouped)
    return {labels: _divided(above[labels], below[labels]) for labels in above if labels in below}


def _grouped(select: Select, statistic: Statistic, window_s: int, history: History) -> dict[Labels, list[float]]:
    grouped: dict[Labels, list[float]] = {}
    for key in history.select(select.metric):
        if not _matches(select, key[1]):
            continue
        value = history.window(key, statistic, window_s)
        if value is not None:
            left = tuple(pair for pair in key[1] if pair[1] and pair[0] not in select.without)
            grouped.setdefault(left, []).append(value)
    return grouped


def _matches(select: Select, labels: Labels) -> bool:
    return not select.matchers or _all_match(select.matchers, labels)


@lru_cache(maxsize=20_000)  # asked every second of every series, and always the same answer
def _all_match(matchers: tuple[Matcher, ...], labels: Labels) -> bool:
    of = dict(labels)
    return all(matcher.matches(of.get(matcher.label, "")) for matcher in matchers)


def _divided(above: float, below: float) -> float:
    if below:
        return above / below
    return inf if above > 0 else nan


def _used(condition: Condition, labels: Labels, history: History) -> bool | None:
    if condition.in_use is None:
        return None
    uuid = dict(labels).get("uuid")
    said = [
        history.window(key, "last")
        for key in history.select(IN_USE[condition.in_use])
        if condition.in_use == "host" or dict(key[1]).get("uuid") == uuid
    ]
    known = [value for value in said if value is not None]
    return any(value == 1 for value in known) if known else None
