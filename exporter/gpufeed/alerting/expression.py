# SPDX-License-Identifier: Apache-2.0
"""PURE. A condition as PromQL, laid out for people."""

from typing import Final

from gpufeed.alerting.define import IN_USE, Condition, Matcher, Select
from gpufeed.history.statistics import Statistic

_FUNCTIONS: Final[dict[Statistic, str]] = {
    "min": "min_over_time",
    "max": "max_over_time",
    "mean": "avg_over_time",
    "rate": "rate",
    "increase": "increase",
}
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def expression(condition: Condition, *, used: bool | None) -> str:
    """The PromQL of a condition; `used` is the state of in-use that it is for, None where that does not matter."""
    parts = [_over(condition, condition.window_s)]
    if condition.short_window_s is not None:
        parts += ["and", _over(condition, condition.short_window_s)]
    if condition.in_use is not None and used is not None:
        on = "instance, uuid" if condition.in_use == "gpu" else "instance"
        parts.append(f"{'and' if used else 'unless'} on ({on}) {IN_USE[condition.in_use]} == 1")
    return "\n".join(parts)


def duration(length_s: int) -> str:
    """Seconds in Prometheus' notation, in the largest unit that has no remainder: 90 is `90s`, 1800 is `30m`."""
    for unit_s, unit in _UNITS:
        if length_s and length_s % unit_s == 0:
            return f"{length_s // unit_s}{unit}"
    return "0s"


def exactly(number: float) -> str:
    """A number in as few digits as give it back: 0.1, 100, 123456789."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def selector(metric: str, matchers: tuple[Matcher, ...]) -> str:
    """A PromQL selector."""
    inside = ", ".join(f'{m.label}{m.operator}"{quoted(m.value)}"' for m in matchers)
    return f"{metric}{{{inside}}}" if inside else metric


def quoted(value: str) -> str:
    """A label value as it stands between double quotes."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _over(condition: Condition, window_s: int) -> str:
    limit = f"{condition.comparison} {exactly(condition.threshold)}"
    reduced = [_reduced(select, condition.statistic, window_s) for select in condition.selects]
    if len(reduced) == 1:
        return f"{_worst(condition, reduced[0])} {limit}"
    sums = [f"sum{_without(select)}({one})" for select, one in zip(condition.selects, reduced, strict=True)]
    return f"(\n    {sums[0]}\n  /\n    {sums[1]}\n) {limit}"


def _reduced(select: Select, statistic: Statistic, window_s: int) -> str:
    text = selector(select.metric, select.matchers)
    return text if statistic == "last" else f"{_FUNCTIONS[statistic]}({text}[{duration(window_s)}])"


def _worst(condition: Condition, reduced: str) -> str:
    select = condition.selects[0]
    if not select.without:
        return reduced
    return f"{'max' if condition.comparison in {'>', '>='} else 'min'}{_without(select)}({reduced})"


def _without(select: Select) -> str:
    return f" without ({', '.join(select.without)}) " if select.without else ""
