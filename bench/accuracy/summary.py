# SPDX-License-Identifier: Apache-2.0
"""From results of shards to a row per scenario and view, and from all rows to whether the standard is met."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from bench.accuracy.plans import MISSING, NO_GPM, View, is_healthy
from bench.accuracy.standard import Bars, Standard
from gpufeed.simulate.pipeline.scenarios import JUDGED
from gpufeed.simulate.sensors.settings import ALL

LEAST_STARVED: Final = 0.01
"""Share of the time below which a scenario by itself has too few starved seconds to divide by."""
_95TH: Final = 0.95


@dataclass(slots=True, kw_only=True)
class Row:
    """One scenario in one view, over all seeds and GPUs. Seconds, but for `errors`."""

    scenario: str
    view: View
    is_day: bool = False  # of the healthy days
    errors: list[float] = field(default_factory=list)
    total: float = 0.0
    starved: float = 0.0
    wrong: float = 0.0
    false: float = 0.0
    unknown: float = 0.0
    confusion: dict[str, float] = field(default_factory=dict)
    alarms: list[str] = field(default_factory=list)
    is_conserving: bool = True

    def add(self, view: Mapping[str, Any]) -> None:
        """One shard's view of this scenario."""
        for gpu in view["gpus"]:
            self.errors += gpu["errors"]
            for name in ("total", "starved", "wrong", "false", "unknown"):
                setattr(self, name, getattr(self, name) + gpu[name])
            _add(self.confusion, gpu["confusion"])
        self.alarms += view["alarms"]
        self.is_conserving = self.is_conserving and view["is_conserving"]

    @property
    def error_median(self) -> float:
        """Of the share errors."""
        return median(self.errors) if self.errors else 0.0

    @property
    def error_p95(self) -> float:
        """Of the share errors."""
        return quantile(self.errors, _95TH)

    @property
    def wrong_ratio(self) -> float:
        """Of the starved seconds; 0 where there are too few to divide by."""
        return self.wrong / self.starved if self.starved >= LEAST_STARVED * self.total > 0 else 0.0

    @property
    def false_ratio(self) -> float:
        """Of all time: named starvation that was none, or on a healthy node another than there was."""
        healthy = is_healthy(JUDGED[self.scenario])
        return (self.false + (self.wrong if healthy else 0.0)) / self.total if self.total else 0.0

    @property
    def unknown_ratio(self) -> float:
        """Of all time."""
        return self.unknown / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One thing that was asked for."""

    name: str
    found: float
    most: float
    of: str = ""  # the scenario that is furthest from it, where the bar is for each by itself

    @property
    def title(self) -> str:
        """For people: also which scenario it is."""
        return f"{self.name}, {self.of}" if self.of else self.name

    @property
    def is_met(self) -> bool:
        """Whether it is no more than allowed."""
        return self.found <= self.most


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them do not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def rows_of(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """One for each scenario, view, and kind of shard, in the order of the scenarios."""
    rows: dict[tuple[str, View, bool], Row] = {}
    for result in results:
        scenario, is_day = result["shard"]["scenario"], result["shard"]["is_day"]
        for view in result["views"]:
            key = (scenario, View(view["inputs"], view["period_ms"]), is_day)
            rows.setdefault(key, Row(scenario=scenario, view=key[1], is_day=is_day)).add(view)
    order = {name: at for at, name in enumerate(JUDGED)}
    return sorted(rows.values(), key=lambda row: (order.get(row.scenario, 0), row.view))


def by_view(rows: Iterable[Row]) -> dict[tuple[bool, View], list[Row]]:
    """Rows that are looked at together: of one view, healthy days by themselves and last."""
    views: dict[tuple[bool, View], list[Row]] = defaultdict(list)
    for row in rows:
        views[row.is_day, row.view].append(row)
    return dict(sorted(views.items()))


def pooled(rows: Sequence[Row]) -> Row:
    """All scenarios of one view as if they were one."""
    whole = Row(scenario=rows[0].scenario, view=rows[0].view, is_day=rows[0].is_day)
    for row in rows:
        whole.errors += row.errors
        for name in ("total", "starved", "wrong", "false", "unknown"):
            setattr(whole, name, getattr(whole, name) + getattr(row, name))
        _add(whole.confusion, row.confusion)
        whole.is_conserving = whole.is_conserving and row.is_conserving
    return whole


def bars(rows: Iterable[Row], standard: Standard) -> list[Bar]:
    """Everything the standard asks for, with what was found."""
    found: list[Bar] = []
    for (is_day, view), of in by_view(rows).items():
        factor, whole = standard.factor(view.period_ms), pooled(of)
        if not is_day and view.inputs in MISSING:
            found += _of_missing(of, standard.missing_wrong_cause * factor)
        elif not is_day:
            asked = standard.with_gpm if view.inputs == ALL else standard.without_gpm
            found += _of_view(whole, asked.scaled(factor))
        found += _of_healthy([row for row in of if is_healthy(JUDGED[row.scenario])], standard, factor)
        found.append(Bar(f"{said(whole)}: time that was lost or counted twice", float(not whole.is_conserving), 0))
    return found


def said(row: Row) -> str:
    """Its view in words."""
    view = row.view
    name = {ALL: "all inputs", NO_GPM: "no GPM"}.get(view.inputs, view.inputs.replace("_", " "))
    return f"{name}, {view.period_ms} ms{', healthy days' if row.is_day else ''}"


def _add(to: dict[str, float], parts: Mapping[str, float]) -> None:
    for name, seconds in parts.items():
        to[name] = to.get(name, 0.0) + seconds


def _of_view(whole: Row, asked: Bars) -> Iterator[Bar]:
    name = said(whole)
    yield Bar(f"{name}: share error, median", whole.error_median, asked.share_error_median)
    yield Bar(f"{name}: share error, 95 %", whole.error_p95, asked.share_error_p95)
    yield Bar(f"{name}: wrong cause of starved", whole.wrong_ratio, asked.wrong_cause)
    if asked.unknown is not None:
        yield Bar(f"{name}: unknown", whole.unknown_ratio, asked.unknown)


def _of_missing(rows: Sequence[Row], most: float) -> Iterator[Bar]:
    """Only the worst scenario: it must meet the bar, and then all do."""
    worst = max(rows, key=lambda row: row.wrong_ratio)
    yield Bar(f"{said(worst)}: wrong cause of starved, each", worst.wrong_ratio, most, worst.scenario)


def _of_healthy(rows: Sequence[Row], standard: Standard, factor: float) -> Iterator[Bar]:
    if not rows:
        return
    worst = max(rows, key=lambda row: row.false_ratio)
    name = said(worst)
    most = standard.false_starvation * factor
    yield Bar(f"{name}: false starvation, each", worst.false_ratio, most, worst.scenario)
    yield Bar(f"{name}: alerts on healthy nodes", float(sum(len(row.alarms) for row in rows)), float(standard.alerts))
