# SPDX-License-Identifier: Apache-2.0
"""What an alert condition is, and what makes one wrong. Two evaluators read it: Prometheus' and our own."""

import re
import string
from dataclasses import dataclass
from typing import Final, Literal, get_args

from gpufeed.catalogue import METRICS
from gpufeed.history.statistics import Statistic

Severity = Literal["page", "ticket", "info"]
Evaluator = Literal["prometheus", "node", "both"]
Comparison = Literal[">", ">=", "<", "<="]
Operator = Literal["=", "!=", "=~", "!~"]
Outcome = Literal["fires", "silent", "planned"]

IN_USE: Final = {"gpu": "gpufeed_gpu_in_use_recently", "host": "gpufeed_host_in_use_recently"}
"""What decides between `severity` and `severity_idle`."""
STEP_S: Final = 60
"""Between two samples, and two evaluations, of an example."""
MAX_LOCAL_WINDOW_S: Final = 1800
"""Our own history of seconds is no longer than this."""
ACTIONS: Final = ("app", "gpu_reset", "node_reboot", "drain", "replace", "tune", "investigate")
TEXT_ONLY: Final = "gpu"
"""The NVML index may change over a boot: it stands in the text of an alert, never among its labels."""
MAY_LABEL: Final = frozenset({"uuid", "device", "port", "kind", "target", "check", "class"})
"""Labels of series that may label an alert. Everything else is aggregated away, or stands in the text only."""

FORMS: Final = ("percent", "duration", "number")
"""How a value can be written in a text."""

_NAME: Final = re.compile(r"([A-Z][a-z0-9]+)+\Z")


@dataclass(frozen=True, slots=True)
class Matcher:
    """One label of a series, as PromQL matches it: regular expressions are anchored."""

    label: str
    operator: Operator
    value: str

    def matches(self, value: str) -> bool:
        """Whether a label of this value is meant; a label that is missing has the empty value."""
        if self.operator in {"=", "!="}:
            return (value == self.value) == (self.operator == "=")
        return (re.fullmatch(self.value, value) is not None) == (self.operator == "=~")


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """Series of one metric. `without`: labels aggregated away, so that the worst of several is one alert."""

    metric: str
    matchers: tuple[Matcher, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def left(self) -> tuple[str, ...]:
        """Labels that are left, as far as the catalogue knows them."""
        definition = METRICS.get(self.metric)
        return tuple(label for label in definition.labels if label not in self.without) if definition else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """The sum of some series over the sum of others, each first reduced to one number by the window statistic."""

    numerator: Select
    denominator: Select


@dataclass(frozen=True, slots=True, kw_only=True)
class Inhibit:
    """While the condition fires, alerts of these names are kept silent where the labels of `equal` are the same."""

    targets: tuple[str, ...]
    equal: tuple[str, ...] = ("instance",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleSeries:
    """An input series in Prometheus' notation for unit tests: `0+1x9` is 0 to 9, `_x5` five gaps, `stale` an end."""

    metric: str
    values: str
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What must come of given series, a sample and an evaluation a minute: looked at once, `at_s` after their start."""

    says: str
    outcome: Outcome
    series: tuple[ExampleSeries, ...]
    at_s: int
    severity: Severity | None = None  # of the one alert that fires; None: none does


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A threshold on one exported series, or on a ratio of two sums of them.

    Texts take labels of the series and `{value}` with a form: `{value:percent}`, `{value:duration}`, `{value:number}`.
    With `severity_idle` the alert has `severity` only where `in_use` (the GPU's, or the host's) says that somebody
    lately used it.
    """

    name: str
    series: Select | Ratio
    statistic: Statistic = "last"
    window_s: int = 0
    short_window_s: int | None = None  # if set, the same must hold over this window too
    comparison: Comparison = ">"
    threshold: float
    for_s: int = 0
    keep_firing_for_s: int = 0
    severity: Severity
    severity_idle: Severity | None = None
    in_use: Literal["gpu", "host"] | None = None
    layer: str
    action: str
    summary: str
    description: str
    inhibits: tuple[Inhibit, ...] = ()
    evaluator: Evaluator = "prometheus"
    is_event: bool = False  # the node itself takes it over where it can send alerts
    examples: tuple[Example, ...] = ()
    runbook: str | None = None  # of a site's own: an address, or a word on where it comes from; None: one of ours

    def __post_init__(self) -> None:
        """Reject what cannot be evaluated, and what would leave a person alone. Raises ValueError."""
        problems = [*self._series_problems(), *(text for wrong, text in self._rules() if wrong)]
        if problems:
            raise ValueError(f"{self.name}: {'; '.join(problems)}")

    @property
    def selects(self) -> tuple[Select, ...]:
        """What it reads, apart from in-use."""
        return (self.series.numerator, self.series.denominator) if isinstance(self.series, Ratio) else (self.series,)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every metric it reads."""
        read = dict.fromkeys(select.metric for select in self.selects)
        return (*read, *([IN_USE[self.in_use]] if self.in_use else []))

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the series that its alerts carry."""
        return tuple(label for label in self.selects[0].left if label != TEXT_ONLY)

    def severities(self) -> tuple[tuple[Severity, bool | None], ...]:
        """Severity and the state of in-use it stands for; None: whatever in-use says."""
        if self.severity_idle is None:
            return ((self.severity, None),)
        return ((self.severity, True), (self.severity_idle, False))

    def _series_problems(self) -> list[str]:
        problems = []
        for select in self.selects:
            definition = METRICS.get(select.metric)
            if definition is None:
                problems.append(f"unknown metric {select.metric}")
                continue
            unknown = {*select.without, *(matcher.label for matcher in select.matchers)}.difference(definition.labels)
            problems += [f"{select.metric} has no label {label}" for label in sorted(unknown)]
            is_counter_statistic = self.statistic in {"rate", "increase"}
            if is_counter_statistic != (definition.type == "counter") or definition.type in {"info", "histogram"}:
                problems.append(f"{self.statistic} of a {definition.type} ({select.metric})")
            changing = set(select.left) - MAY_LABEL - {TEXT_ONLY}
            problems += [f"label {label} would change an alert's identity" for label in sorted(changing)]
        if len({select.left for select in self.selects}) > 1:
            problems.append("both sums of a ratio must be left with the same labels")
        return problems

    def _rules(self) -> tuple[tuple[bool, str], ...]:
        is_local = self.evaluator != "prometheus" or self.is_event
        windows = (self.window_s, self.short_window_s or 0)
        fields = {name for text in (self.summary, self.description) for name in fields_of(text)}
        return (
            (_NAME.match(self.name) is None, "a name is words in CamelCase"),
            (self.statistic not in get_args(Statistic), f"unknown statistic {self.statistic}"),
            (
                (self.statistic == "last") != (self.window_s == 0),
                "every statistic but last has a window, and only they",
            ),
            (is_local and max(windows) > MAX_LOCAL_WINDOW_S, "windows over 30 min are Prometheus' alone"),
            ((self.severity_idle is None) != (self.in_use is None), "severity_idle and in_use go together"),
            (self.in_use == "gpu" and "uuid" not in self.selects[0].left, "in_use of a GPU needs its uuid"),
            (self.action not in ACTIONS, f"unknown action {self.action}"),
            (bool(fields - {"value", *self.selects[0].left}), "a text names a label that the alert has lost"),
            (
                any(not _is_form(text) for text in (self.summary, self.description)),
                f"{{value}} takes {', '.join(FORMS)}",
            ),
            (not (self.summary and self.description.endswith(".")), "a summary and a description of full sentences"),
            (any("instance" not in inhibit.equal for inhibit in self.inhibits), "inhibition must match on instance"),
            *self._example_rules(),
        )

    def _example_rules(self) -> tuple[tuple[bool, str], ...]:
        return (
            (
                any(
                    (example.outcome == "fires") == (example.severity is None)
                    for example in self.examples
                    if example.outcome != "planned"
                ),
                "an example that fires has a severity, a silent one has none",
            ),
            (
                any(example.outcome == "planned" and example.severity == "page" for example in self.examples),
                "a planned event must not page",
            ),
            (any(example.at_s % STEP_S for example in self.examples), "an example is read between samples"),
        )


def _is_form(text: str) -> bool:
    """Whether every field is a label as it is, or the value in a form there is."""
    return all(
        not conversion and (not form or (name == "value" and form in FORMS))
        for _, name, form, conversion in string.Formatter().parse(text)
        if name is not None
    )


def fields_of(text: str) -> tuple[str, ...]:
    """Names in braces of an alert's text."""
    return tuple(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)
