# SPDX-License-Identifier: Apache-2.0
"""Families: a definition and its rows of one moment, between projection and encoding."""

from bisect import bisect_left
from dataclasses import dataclass, field

from gpufeed.catalogue.define import INSTANCE_LABELS, MetricDef

Labels = tuple[str, ...]
"""Label values, in the order of the definition's labels."""

Row = tuple[Labels, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Observations by bucket. `counts` has one entry more than there are bounds: those above the last."""

    counts: tuple[int, ...]
    total: float = 0.0

    @classmethod
    def empty(cls, bounds: tuple[float, ...]) -> "Histogram":
        """Nothing observed yet."""
        return cls(counts=(0,) * (len(bounds) + 1))

    def observe(self, value: float, bounds: tuple[float, ...]) -> "Histogram":
        """With one observation more. A value at a bound belongs below it, as `le` says."""
        place = bisect_left(bounds, value)
        counts = (*self.counts[:place], self.counts[place] + 1, *self.counts[place + 1 :])
        return Histogram(counts=counts, total=self.total + value)


@dataclass(frozen=True, slots=True)
class Family:
    """All rows of one metric. Histogram families have `histograms` in place of rows."""

    definition: MetricDef
    rows: list[Row] = field(default_factory=list)
    full_rows: list[Row] = field(default_factory=list)  # profile full alone has them, because of their value
    histograms: list[tuple[Labels, Histogram]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Without any row."""
        return not (self.rows or self.full_rows or self.histograms)


def label_pairs(definition: MetricDef, values: Labels) -> tuple[tuple[str, str], ...]:
    """Names and values of a row as they are written: a board's row has no instance labels."""
    return tuple(
        (name, value)
        for name, value in zip(definition.labels, values, strict=True)
        if value or name not in INSTANCE_LABELS
    )
