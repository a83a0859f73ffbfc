# SPDX-License-Identifier: Apache-2.0
"""Unit tests for `promtool test rules`, from series: what our own evaluator makes of them is what promtool must too.

promtool compares floats for equality, and versions differ in the last digit: values should be exact binary fractions.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpufeed.alerting.define import STEP_S, Condition, ExampleSeries
from gpufeed.alerting.evaluator import Alert, Alerts, evaluate
from gpufeed.alerting.prometheus import alert_labels, runbook
from gpufeed.alerting.text import filled
from gpufeed.errors import ParseError
from gpufeed.history.ring import Resolution
from gpufeed.history.rings import FINE, Rings
from gpufeed.model.frame import FrameTime
from gpufeed.units import NS_PER_S

TARGET: Final = (("instance", "node1:9937"), ("job", "gpufeed"))
"""What Prometheus adds to every series it scrapes."""
_START_S: Final = 86_400
"""Monotonic time of an example's first sample: late enough that every window begins after boot."""
_RUN: Final = re.compile(r"(?P<first>_|-?\d+(?:\.\d+)?)(?P<step>[+-]\d+(?:\.\d+)?)?(?:x(?P<times>\d+))?\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Series, and moments at which to look at the alerts, `step_s` being the time between two samples."""

    says: str
    series: Sequence[ExampleSeries]
    looks_s: Sequence[int]
    step_s: int = STEP_S


def cases(conditions: Iterable[Condition]) -> Iterator[tuple[Condition, Case]]:
    """The worked examples."""
    for condition in conditions:
        for example in condition.examples:
            says = f"{condition.name} {example.outcome}: {example.says}"
            yield condition, Case(says=says, series=example.series, looks_s=(example.at_s,))


def unit_tests(pairs: Iterable[tuple[Condition, Case]], rule_file: str, step_s: int = STEP_S) -> str:
    """A unit test file for `rule_file`; all cases must have this step."""
    head = [f"rule_files: [{json.dumps(rule_file)}]", f"evaluation_interval: {step_s}s", "tests:"]
    return "\n".join([*head, *(line for condition, case in pairs for line in _test(condition, case)), ""])


def replay(condition: Condition, case: Case) -> Mapping[int, tuple[Alert, ...]]:
    """The alerts that fire by our own evaluator, by seconds since the first sample."""
    longest_s = max(condition.window_s, condition.short_window_s or 0, FINE.slots)
    history, alerts, firing = Rings(fine=Resolution(1, longest_s + 1)), Alerts(), {}
    expanded = [(series, expand(series.values)) for series in case.series]
    for number in range(max(case.looks_s) // case.step_s + 1):
        at_ns = (_START_S + number * case.step_s) * NS_PER_S
        rows = [
            ((series.metric, series.labels), value)
            for series, values in expanded
            if number < len(values) and (value := values[number]) is not None
        ]
        history.append(at_ns, rows)
        time = FrameTime(monotonic_ns=at_ns, boottime_ns=at_ns, wall_ns=at_ns)
        alerts, _ = evaluate(alerts, (condition,), time, history)
        firing[number * case.step_s] = tuple(alert for alert in alerts.on if alert.state == "firing")
    return {at_s: firing[at_s] for at_s in case.looks_s}


def expand(text: str) -> list[float | None]:
    """The samples that a values text stands for: `0+2x3` is 0 2 4 6, `1x2` is 1 1 1, `_x2` and `stale` are none.

    Raises ParseError.
    """
    samples: list[float | None] = []
    for word in text.split():
        run = _RUN.match(word)
        if word in {"stale", "_"}:
            samples.append(None)
        elif run is None or (run["first"] == "_" and run["step"]):
            raise ParseError("a run of samples", word)
        elif run["first"] == "_":
            samples += [None] * int(run["times"])
        else:
            first, step = float(run["first"]), float(run["step"] or 0)
            samples += [first + step * number for number in range(int(run["times"] or 0) + 1)]
    return samples


def _test(condition: Condition, case: Case) -> Iterator[str]:
    yield f"  - name: {json.dumps(case.says)}"
    yield f"    interval: {case.step_s}s"
    yield "    input_series:"
    for series in case.series:
        labels = ",".join(f"{name}={json.dumps(value)}" for name, value in (*TARGET, *series.labels))
        yield f"      - series: {json.dumps(f'{series.metric}{{{labels}}}')}"
        yield f"        values: {json.dumps(series.values)}"
    yield "    alert_rule_test:"
    for at_s, firing in replay(condition, case).items():
        yield f"      - eval_time: {at_s}s"
        yield f"        alertname: {condition.name}"
        yield f"        exp_alerts: {json.dumps([_expected(condition, alert) for alert in firing])}"


def _expected(condition: Condition, alert: Alert) -> dict[str, dict[str, str]]:
    name, value = runbook(condition, None)
    labels = dict((*alert.labels, *alert.text))
    return {
        "exp_labels": {**dict(TARGET), **alert_labels(condition, alert.severity), **dict(alert.labels)},
        "exp_annotations": {
            "summary": filled(condition.summary, labels, alert.value),
            "description": filled(condition.description, labels, alert.value),
            name: value,
        },
    }
