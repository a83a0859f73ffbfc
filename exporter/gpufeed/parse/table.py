# SPDX-License-Identifier: Apache-2.0
"""What a table of many things gives: the rows that could be read, and those that could not, each by itself."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from gpufeed.errors import ParseError

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed(Generic[Row]):
    """Rows in the order of the file; one bad row never takes the others with it."""

    rows: tuple[Row, ...]
    rejects: tuple[ParseError, ...] = ()


def parse_rows(lines: Iterable[bytes], parse: Callable[[bytes], Row]) -> Parsed[Row]:
    """`parse` over every line that is not blank."""
    rows: list[Row] = []
    rejects: list[ParseError] = []
    for line in lines:
        if not line.strip():
            continue
        try:
            rows.append(parse(line))
        except ParseError as error:
            rejects.append(error)
    return Parsed(rows=tuple(rows), rejects=tuple(rejects))
