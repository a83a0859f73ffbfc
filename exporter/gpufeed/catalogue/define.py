# SPDX-License-Identifier: Apache-2.0
"""What a metric definition is, and the rules a name must keep to be one."""

import re
from dataclasses import dataclass
from typing import Final, Literal

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
_NAME: Final = re.compile(r"gpufeed(_[a-z0-9]+)+\Z")
_LABEL: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
_PROMETHEUS_OWNS: Final = frozenset(
    {"job", "instance", "namespace", "pod", "container", "node", "cluster", "le", "quantile"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDef:
    """A promise: a series of this name has this type, unit and these labels, and comes from there.

    `profile` is the smallest profile that has it. `collector` names the chunk it is encoded in, and the word for
    `collect[]`. `sheds` is the group in which `max_series` drops it; empty: never.
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

    def __post_init__(self) -> None:
        """Reject what Prometheus' naming rules, or ours, forbid. Raises ValueError."""
        problems = [text for wrong, text in self._rules() if wrong]
        if problems:
            raise ValueError(f"{self.name}: {'; '.join(problems)}")

    def _rules(self) -> tuple[tuple[bool, str], ...]:
        base = self.name.removesuffix("_total")
        suffix = _SUFFIX_OF_UNIT.get(self.unit, "")
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
            (any(len(row) != len(self.labels) for row in self.zero_rows), "a zero row does not fit the labels"),
        )
