# SPDX-License-Identifier: Apache-2.0
"""The gate that a third-party source reads through: its samples are `Extension`s under its own name, with clean labels.

What does not pass is named as a failure; the rest goes on. A source can so neither speak for a GPU, nor take the name
of another's metric, nor make the page invalid.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from msgspec import Struct

from gpufeed.model.frame import InputStatus
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.sample import Extension
from gpufeed.parse.text import clean_text
from gpufeed.sources.contract import Desk, DeviceFailure, LanePlan, Outcome, Reader
from gpufeed.units import NS_PER_MS

MAX_SAMPLES: Final = 1000
MAX_LABELS: Final = 16
SHORTEST_PERIOD_NS: Final = 100 * NS_PER_MS

_METRIC: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_LABEL: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_PROMETHEUS_OWNS: Final = frozenset(
    {"job", "instance", "namespace", "pod", "container", "node", "cluster", "le", "quantile"}
)


class GateSpec(Struct, frozen=True):
    """A third-party lane as its source planned it."""

    source: str
    plan: LanePlan


def gated(source: str, plan: LanePlan) -> LanePlan:
    """The plan as ours: in the source's own name space, in collector `extra`, no faster than is decent.

    Raises TypeError or AttributeError where it is no plan.
    """
    if not isinstance(plan, LanePlan) or not plan.groups:
        raise TypeError(f"{plan!r:.80} is no lane plan with groups")
    groups = tuple(
        replace(group, collector="extra", period_ns=max(group.period_ns, SHORTEST_PERIOD_NS)) for group in plan.groups
    )
    return replace(
        plan,
        lane=LaneId(f"extra:{source}:{clean_text(plan.lane.encode())}"),
        groups=groups,
        open=open_gated,
        spec=GateSpec(source, plan),
    )


def open_gated(spec: GateSpec, desk: Desk) -> "GatedReader":
    """Open the source's own reader, and stand before it. Raises what that raises."""
    return GatedReader(spec.source, spec.plan.open(spec.plan.spec, desk))


class GatedReader:
    """Passes on what a third-party reader may say."""

    def __init__(self, source: str, reader: Reader) -> None:
        self._source = source
        self._reader = reader

    def read(self, group: GroupName) -> Outcome:
        """The extensions that pass, and a failure for each reason why others do not. Raises what the reader raises."""
        outcome = self._reader.read(group)
        passed: dict[object, Extension] = {}
        refused: dict[str, str] = {}
        for sample in outcome.samples:
            try:
                clean = self._admit(sample, passed)
                passed[clean.subject] = clean
            except ValueError as error:
                refused.setdefault(str(error), f"{sample!r:.120}")
        failures = [
            DeviceFailure(device=self._source, reason="broken", detail=f"{why}: {what}")
            for why, what in refused.items()
        ]
        return Outcome(
            samples=tuple(passed.values()),
            inputs=tuple(self._renamed(outcome.inputs)),
            failures=(*outcome.failures, *failures),
            lanes=None if outcome.lanes is None else tuple(gated(self._source, plan) for plan in outcome.lanes),
        )

    def close(self) -> None:
        """Close the reader behind."""
        self._reader.close()

    def _admit(self, sample: object, passed: dict[object, Extension]) -> Extension:
        """The sample, cleaned. Raises ValueError with the reason why it may not pass."""
        if not isinstance(sample, Extension):
            raise ValueError("a sample that is no Extension")  # noqa: TRY004 - one of many reasons, all for the same ear
        _refuse(self._objections(sample))
        clean = _cleaned(sample)
        _refuse(
            (
                (clean.subject in passed, "the same metric and labels twice"),
                (len(passed) >= MAX_SAMPLES, f"more than {MAX_SAMPLES} samples"),
            )
        )
        return clean

    def _objections(self, sample: Extension) -> Iterable[tuple[bool, str]]:
        names = [name for name, _ in sample.labels]
        return (
            (sample.source != self._source, "another source's name"),
            (_METRIC.fullmatch(sample.metric) is None, "not a lower-case metric name"),
            (sample.is_counter != sample.metric.endswith("_total"), "_total stands on counters, and only there"),
            (len(names) > MAX_LABELS, f"more than {MAX_LABELS} labels"),
            (any(_LABEL.fullmatch(name) is None for name in names), "a label that is not a lower-case word"),
            (not _PROMETHEUS_OWNS.isdisjoint(names), "a label that Prometheus owns"),
            (len(set(names)) != len(names), "a label twice"),
            (not _is_number(sample.value), "a value that is no finite number"),
        )

    def _renamed(self, inputs: Iterable[InputStatus]) -> Iterable[InputStatus]:
        for status in inputs:
            yield InputStatus(f"extra:{self._source}", status.input, status.state, status.reason, status.fix)


def _refuse(objections: Iterable[tuple[bool, str]]) -> None:
    for is_wrong, reason in objections:
        if is_wrong:
            raise ValueError(reason)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _cleaned(sample: Extension) -> Extension:
    """With its labels in order and their values as text that is fit to be shown."""
    labels = tuple(sorted((name, clean_text(str(value).encode("utf-8", "replace"))) for name, value in sample.labels))
    return Extension(
        source=sample.source,
        metric=sample.metric,
        labels=labels,
        value=float(sample.value),
        help=clean_text(str(sample.help).encode("utf-8", "replace")),
        is_counter=bool(sample.is_counter),
    )
