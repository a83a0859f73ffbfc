# SPDX-License-Identifier: Apache-2.0
"""Counters of several parts as those of one target. Pure."""

from collections.abc import Iterable
from typing import TypeVar

from gpufeed.parse.number import MAX_COUNT

N = TypeVar("N", int, float)


def total(values: Iterable[N | None]) -> N | None:
    """The sum, or None where any part is not known: one that loses a part looks like a counter that was reset.

    No more than fits a counter, whatever the files say: more could not cross the wire.
    """
    found = list(values)
    known = [value for value in found if value is not None]
    return min(sum(known), MAX_COUNT) if len(known) == len(found) else None


def by_name(values: Iterable[tuple[str, N]]) -> dict[str, N]:
    """The sum of each name, in the order of their first appearance."""
    sums: dict[str, N] = {}
    for name, value in values:
        sums[name] = min(sums[name] + value, MAX_COUNT) if name in sums else value
    return sums
