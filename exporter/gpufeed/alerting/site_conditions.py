# SPDX-License-Identifier: Apache-2.0
"""PURE. A condition that a site wrote into its configuration, in the form of those that ship."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpufeed.alerting.define import MAY_LABEL, TEXT_ONLY, Condition, Matcher, Ratio, Select, fields_of
from gpufeed.catalogue import METRICS
from gpufeed.config.alerting import SiteCondition, SiteSeries
from gpufeed.config.decode import suggest

Problems = tuple[tuple[str, str], ...]
"""Keys below the condition's own (empty: the whole of it), and what is wrong with them."""

NO_RUNBOOK: Final = "alerting.conditions of this site's configuration"


def built(given: SiteCondition) -> Condition | Problems:
    """The condition, or what is wrong with it.

    Labels that cannot tell alerts apart are aggregated away: of several series left with the same labels the worst
    counts, in a ratio their sum.
    """
    found = (*_series_problems(given), *_text_problems(given))
    if found:
        return found
    try:
        return Condition(
            name=given.alert,
            series=_series(given),
            statistic=given.statistic,
            window_s=0 if given.statistic == "last" else round(given.window.seconds),
            short_window_s=None if given.short_window is None else round(given.short_window.seconds),
            comparison=given.comparison,
            threshold=given.threshold,
            for_s=round(given.for_.seconds),
            keep_firing_for_s=round(given.keep_firing_for.seconds),
            severity=given.severity,
            severity_idle=given.severity_idle,
            in_use=given.in_use,
            layer=given.layer,
            action=given.action,
            evaluator=given.evaluator,
            **_words(given),
        )
    except ValueError as error:
        return (("", str(error).removeprefix(f"{given.alert}: ")),)


def _words(given: SiteCondition) -> dict[str, Any]:
    summary = given.summary or f"{given.metric} is {{value}}"
    return {
        "summary": summary,
        "description": given.description or f"{summary} (limit: {given.comparison} {given.threshold:g}).",
        "runbook": given.runbook_url or NO_RUNBOOK,
    }


def _series(given: SiteCondition) -> Select | Ratio:
    if given.over is None:
        return _select(given.metric, given.labels, _left(given))
    return Ratio(
        numerator=_select(given.metric, given.labels, _left(given)),
        denominator=_select(given.over.metric, given.over.labels, _left(given)),
    )


def _select(metric: str, labels: Mapping[str, str], left: frozenset[str]) -> Select:
    return Select(
        metric=metric,
        matchers=tuple(Matcher(name, "=", value) for name, value in labels.items()),
        without=tuple(label for label in METRICS[metric].labels if label not in left),
    )


def _left(given: SiteCondition) -> frozenset[str]:
    """Labels that the alert has, and the GPU's index for its text."""
    left = frozenset(METRICS[given.metric].labels) & (MAY_LABEL | {TEXT_ONLY})
    if given.over is not None:
        left &= frozenset(METRICS[given.over.metric].labels)
    return left - frozenset(given.without)


def _series_problems(given: SiteCondition) -> Iterator[tuple[str, str]]:
    parts = [("", SiteSeries(metric=given.metric, labels=given.labels)), ("over.", given.over)]
    for at, series in parts:
        if series is None:
            continue
        definition = METRICS.get(series.metric)
        if definition is None:
            yield f"{at}metric", f"there is no metric {series.metric}{suggest(series.metric, tuple(METRICS))}"
            continue
        asked = [*((f"{at}labels.{name}", name) for name in series.labels)]
        asked += [] if at else [(f"without.{index}", name) for index, name in enumerate(given.without)]
        for key, name in asked:
            if name not in definition.labels:
                yield key, f"{series.metric} has no label {name}{suggest(name, definition.labels)}"


def _text_problems(given: SiteCondition) -> Iterator[tuple[str, str]]:
    for key, text in (("summary", given.summary), ("description", given.description)):
        try:
            fields_of(text)
        except ValueError as error:
            yield key, f"braces that do not fit: {error}"
