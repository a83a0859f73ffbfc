# SPDX-License-Identifier: Apache-2.0
"""Families → bytes, at most once a second, from prefixes that are rendered once a series.

Rendering `name{labels} ` is most of the cost of a scrape and never changes for a series, so it is kept; what is not
used in one encoding is forgotten, which bounds the cache by the series there are. Not for use by two threads.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from gpufeed.catalogue.define import MetricDef, Profile
from gpufeed.exposition.family import Family, Histogram, Labels, label_pairs
from gpufeed.exposition.page import Block, Exposition
from gpufeed.exposition.selection import select
from gpufeed.exposition.text import label_value, number
from gpufeed.units import NS_PER_S

ENCODE_AT_MOST_EVERY_NS: Final = NS_PER_S

_Prefixes = dict[str, dict[Labels, str]]


class Encoder:
    """Keeps the last exposition and the prefixes of its series."""

    def __init__(self, *, profile: Profile, drop: Collection[str] = (), max_series: int = 6000) -> None:
        self._profile: Final = profile
        self._drop: Final = frozenset(drop)
        self._max_series: Final = max_series
        self._prefixes: _Prefixes = {}
        self._last: Exposition | None = None
        self._encoded_at_ns = 0

    def exposition(self, families: Callable[[], Iterable[Family]], monotonic_ns: int) -> Exposition:
        """The exposition of now, or that of the last second; `families` is asked only for a new one."""
        if self._last is None or monotonic_ns - self._encoded_at_ns >= ENCODE_AT_MOST_EVERY_NS:
            self._last = self.encode(families())
            self._encoded_at_ns = monotonic_ns
        return self._last

    def encode(self, families: Iterable[Family]) -> Exposition:
        """A new exposition, whatever the time."""
        selection = select(families, self._profile, self._drop, self._max_series)
        used: _Prefixes = {}
        blocks = tuple(self._block(family, used) for family in selection.families)
        self._prefixes = used
        return Exposition(blocks)

    def _block(self, family: Family, used: _Prefixes) -> Block:
        definition = family.definition
        known = self._prefixes.get(definition.name, {})
        mine = used.setdefault(definition.name, {})
        chunks: dict[str, list[str]] = {}  # lines by collector
        seen: set[str] = set()
        for values, value in family.rows:
            prefix = mine[values] = known.get(values) or _prefix(definition.name, definition, values)
            if prefix not in seen:  # of a series that comes twice, the first counts
                seen.add(prefix)
                chunks.setdefault(definition.collector_of(values), []).append(f"{prefix}{number(value)}\n")
        for values, histogram in dict(family.histograms).items():
            chunks.setdefault(definition.collector, []).extend(_histogram(definition, values, histogram))
        return Block(definition=definition, chunks={name: "".join(lines) for name, lines in chunks.items()})


def _prefix(name: str, definition: MetricDef, values: Labels, more: str = "") -> str:
    pairs = [f'{label}="{label_value(value)}"' for label, value in label_pairs(definition, values)]
    inside = ",".join([*pairs, more] if more else pairs)
    return f"{name}{{{inside}}} " if inside else f"{name} "


def _histogram(definition: MetricDef, values: Labels, histogram: Histogram) -> Iterator[str]:
    cumulative = 0
    for bound, count in zip((*definition.buckets, float("inf")), histogram.counts, strict=True):
        cumulative += count
        edge = f'le="{number(float(bound))}"'
        yield f"{_prefix(f'{definition.name}_bucket', definition, values, edge)}{cumulative}\n"
    yield f"{_prefix(f'{definition.name}_count', definition, values)}{cumulative}\n"
    yield f"{_prefix(f'{definition.name}_sum', definition, values)}{number(histogram.total)}\n"
