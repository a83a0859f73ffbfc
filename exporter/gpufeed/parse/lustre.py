# SPDX-License-Identifier: Apache-2.0
"""Statistics of a Lustre client: `llite/*/stats`, `osc/*/stats`. Source: obdclass/lprocfs_status.c, lproc_llite.c.

A line is a name, how many samples, the unit in brackets, and, where more than events are counted, least, most, sum
and since 2.14 the sum of squares. Names are compared whole: `readdir` is no `read`, and `read` (how long calls took)
is not `read_bytes`. A line appears with its first sample; until then the counter stands at zero.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.parse.number import MAX_COUNT
from gpufeed.units import US_PER_S

_HEADERS: Final = frozenset({b"snapshot_time", b"start_time", b"elapsed_time"})
"""The first is in every version, the others since 2.15. What they count in changed with 2.9; nobody needs them."""

_COUNTER: Final = re.compile(
    rb"(?P<name>[A-Za-z][A-Za-z0-9_]{0,63})\s+(?P<samples>\d{1,20}) samples \[(?P<unit>[A-Za-z]{1,16})\]"
    rb"(?:\s+-?\d{1,20}\s+-?\d{1,20}\s+(?P<total>\d{1,20})(?:\s.*)?)?\s*"
)
_PER_SECOND: Final[Mapping[str, int]] = MappingProxyType({"usec": US_PER_S, "usecs": US_PER_S})
"""Units of time. 2.13 and several vendors say `usec`."""

_EVENTS: Final = frozenset({"regs", "reqs"})
_NO_OPERATIONS: Final = frozenset({"opencount", "openclosetime", "dirty_pages_hits", "dirty_pages_misses"})
"""How many had a file open and how long they kept it, and what the cache did: no work of the file system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreCounter:
    """One line since mount or since somebody cleared it."""

    samples: int
    unit: str
    total: int | None  # in `unit`; None where only events are counted

    @property
    def total_s(self) -> float | None:
        """The sum in seconds; None where the unit is another one."""
        scale = _PER_SECOND.get(self.unit)
        return None if scale is None or self.total is None else self.total / scale


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreStats:
    """One file."""

    counters: Mapping[str, LustreCounter]
    rejects: tuple[ParseError, ...] = ()

    @property
    def is_timed(self) -> bool:
        """Whether this version measures how long operations take."""
        return any(counter.unit in _PER_SECOND for counter in self.counters.values())

    @property
    def operations(self) -> Mapping[str, LustreCounter]:
        """Calls by name, with their time where it is measured."""
        kinds = _EVENTS | _PER_SECOND.keys()
        return {
            name: counter
            for name, counter in self.counters.items()
            if counter.unit in kinds and name not in _NO_OPERATIONS
        }

    def transferred(self, name: str) -> int | None:
        """The sum of a counter of bytes. None: its line could be one of those that made no sense."""
        counter = self.counters.get(name)
        if counter is not None:
            return counter.total
        return None if self.rejects else 0

    def samples(self, name: str) -> int | None:
        """How often something happened. None as for `transferred`."""
        counter = self.counters.get(name)
        if counter is not None:
            return counter.samples
        return None if self.rejects else 0


def parse_lustre_stats(data: bytes, where: str = "lustre stats") -> LustreStats:
    """All counters of one file. Raises ParseError where it is no such file at all."""
    counters: dict[str, LustreCounter] = {}
    rejects: list[ParseError] = []
    has_header = False
    for line in data.split(b"\n"):
        words = line.split(None, 1)
        if not words:
            continue
        if words[0].rstrip(b":") in _HEADERS:
            has_header = True
            continue
        try:
            name, counter = _parse_counter(line.strip(), where)
        except ParseError as error:
            rejects.append(error)
        else:
            counters.setdefault(name, counter)
    if not (has_header or counters):
        raise ParseError("statistics of Lustre", data, where)
    return LustreStats(counters=counters, rejects=tuple(rejects))


def _parse_counter(line: bytes, where: str) -> tuple[str, LustreCounter]:
    found = _COUNTER.fullmatch(line)
    if found is None:
        raise ParseError("'name N samples [unit] …'", line, where)
    samples = int(found["samples"])
    total = None if found["total"] is None else int(found["total"])
    if max(samples, total or 0) > MAX_COUNT:
        raise ParseError("counts of 64 bits", line, where)
    return found["name"].decode(), LustreCounter(samples=samples, unit=found["unit"].decode(), total=total)
