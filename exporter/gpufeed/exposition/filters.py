# SPDX-License-Identifier: Apache-2.0
"""`collect[]` and `exclude[]` of a scrape: some collectors only, or all but some."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpufeed.errors import GpufeedError

_ALWAYS: Final = ("self",)


class FilterError(GpufeedError):
    """A query that names no collector of ours, or filters both ways. The text is for the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which collectors' rows are wanted. `collect` None: all but `exclude`."""

    collect: frozenset[str] | None = None
    exclude: frozenset[str] = field(default_factory=frozenset)

    def admits(self, collector: str) -> bool:
        """Whether the rows of a collector are wanted."""
        return collector not in self.exclude if self.collect is None else collector in self.collect


EVERYTHING: Final = Filter()


def parse(collect: Sequence[str], exclude: Sequence[str], enabled: Collection[str]) -> Filter:
    """The filter of a query. `enabled`: collectors that run; `self` always does. Raises FilterError."""
    if collect and exclude:
        raise FilterError("collect[] and exclude[] cannot be used together")
    known = {*enabled, *_ALWAYS}
    unknown = sorted({*collect, *exclude} - known)
    if unknown:
        raise FilterError(
            f"not a collector that is enabled: {', '.join(unknown)}; there are {', '.join(sorted(known))}"
        )
    return Filter(collect=frozenset(collect) if collect else None, exclude=frozenset(exclude))
