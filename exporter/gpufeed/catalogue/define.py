# SPDX-License-Identifier: Apache-2.0
"""What a metric definition is, and the rules a name must keep to be one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, get_args

from gpufeed.model.ids import CollectorName

PREFIX: Final = "gpufeed_"

MetricType = Literal["counter", "gauge", "info", "histogram"]
Profile = Literal["minimal", "default", "full"]
Stability = Literal["stable", "experimental"]
Unit = Literal[
    "seconds", "bytes", "bytes_per_second", "ratio", "celsius", "watts", "joules", "hertz", "flops_per_second",
    "boolean", "count", "timestamp_seconds", "id", "info", "ticks",
]  # fmt: skip

GPU_LABELS: Final = ("gpu", "uuid")
INSTANCE_LABELS: Final = ("gpu_instance", "compute_instance")
SLICE_LABELS: Final = (*GPU_LABELS, *INSTANCE_LABELS)
"""Of what a board has, or each of its MIG instances: on a board the last two are empty, and then not written."""

PROFILES: Final[tuple[Profile, ...]] = get_args(Profile)
"""Each has all that the one before it has."""

SHED_ORDER: Final[Mapping[str, str]] = MappingProxyType(
    {
        "link": "every single NVLink",
        "operation": "storage by operation",
        "disk": "block devices",
        "extension": "third-party sources",
        "mount": "file systems and mounts",
        "port": "detail of fabric ports",
        "detail": "detail of GPUs and host",
    }
)
"""What `max_series` drops, first to last, whole groups at a time. State, health and XIDs are in none."""

_SUFFIX_OF_UNIT: Final[dict[Unit, str]] = {
    "seconds": "_seconds",
    "bytes": "_bytes",
    "bytes_per_second": "_bytes_per_second",
    "ratio": "_ratio",
    "celsius": "_celsius",
    "watts": "_watts",
    "joules": "_joules",
    "hertz": "_hertz",
    "flops_per_second": "_flops_per_second",
    "timestamp_seconds": "_timestamp_seconds",
    "info": "_info",
}
_NAME: Final = re.compile(r"(gpufeed|process)(_[a-z0-9]+)+\Z")  # process_: the standard names of any exporter
_LABEL: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
_PROMETHEUS_OWNS: Final = frozenset(
    {"job", "instance", "namespace", "pod", "container", "node", "cluster", "le", "quantile"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowProfile:
    """Rows whose `label` has none of the values `kept` stand only in profile `others` and wider."""

    label: str
    kept: tuple[str, ...]
    others: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDef:
    """A promise: a series of this name has this type, unit and these labels, and comes from there.

    `profile` is the smallest profile that has it. `collector` names the chunk it is encoded in, and the word for
    `collect[]`; where one family has rows of several, `collector_label` is the label that names a row's.
    `sheds` is the group in which `max_series` drops it; empty: never.
    """

    name: str
    type: MetricType
    unit: Unit
    help: str
    labels: tuple[str, ...] = ()
    source: str
    profile: Profile
    collector: CollectorName
    stability: Stability = "stable"
    sheds: str = ""
    buckets: tuple[float, ...] = ()
    zero_rows: tuple[tuple[str, ...], ...] = ()  # label values that stand from the start
    row_profile: RowProfile | None = None  # None: all rows are in `profile`
    collector_label: str = ""

    def __post_init__(self) -> None:
        """Reject what Prometheus' naming rules, or ours, forbid. Raises ValueError."""
        problems = [text for wrong, text in self._rules() if wrong]
        if problems:
            raise ValueError(f"{self.name}: {'; '.join(problems)}")

    def profile_of(self, values: tuple[str, ...]) -> Profile:
        """The smallest profile that has the row with these label values."""
        rule = self.row_profile
        if rule is None or values[self.labels.index(rule.label)] in rule.kept:
            return self.profile
        return rule.others

    def collector_of(self, values: tuple[str, ...]) -> str:
        """The collector that gives the row with these label values."""
        return values[self.labels.index(self.collector_label)] if self.collector_label else self.collector

    def _rules(self) -> tuple[tuple[bool, str], ...]:
        base = self.name.removesuffix("_total")
        suffix = _SUFFIX_OF_UNIT.get(self.unit, "")
        picked = {self.collector_label} | ({self.row_profile.label} if self.row_profile else set())
        return (
            (_NAME.match(self.name) is None, "not a lower-case gpufeed_ name"),
            ((self.type == "counter") != self.name.endswith("_total"), "_total stands on counters, and only there"),
            (not base.endswith(suffix), f"unit {self.unit} wants the suffix {suffix}"),
            ((self.type == "info") != (self.unit == "info"), "type info and unit info go together"),
            (any(_LABEL.match(label) is None for label in self.labels), "a label is not a lower-case word"),
            (bool(_PROMETHEUS_OWNS.intersection(self.labels)), "a label that Prometheus owns"),
            (len(set(self.labels)) != len(self.labels), "a label twice"),
            (not self.help.endswith("."), "help is a sentence"),
            ((self.type == "histogram") != bool(self.buckets), "buckets stand on histograms, and only there"),
            (not picked <= {"", *self.labels}, "a rule about a label it does not have"),
            (self.sheds not in {"", *SHED_ORDER}, "no such group to shed"),
            (any(len(row) != len(self.labels) for row in self.zero_rows), "a zero row does not fit the labels"),
        )
