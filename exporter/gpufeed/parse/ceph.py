# SPDX-License-Identifier: Apache-2.0
"""Counters of the CephFS client: `metrics`, or `metrics/latency` and `metrics/size`. Source: fs/ceph/debugfs.c.

Tables with a header, and the same rows in several of them: what a column means is told by the header above it. Most
kernels print a mean latency since mount, cut to microseconds. Times count it is as good as the time spent only while
little was read, and later would run ahead and fall back: the time spent is taken from a sum, or not at all.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.parse.number import counts
from gpufeed.units import US_PER_S

_TITLE: Final = b"item"
_COUNT: Final = b"total"
_SUM_OF_LATENCY: Final = b"sum_lat(us)"
_SUM_OF_SIZE: Final = b"total_sz(bytes)"
_OF_OPERATIONS: Final = (b"avg_lat", b"sum_lat", b"avg_sz", b"total_sz")
_WANTED: Final = frozenset({_COUNT, _SUM_OF_LATENCY, _SUM_OF_SIZE})
_NAME: Final = re.compile(rb"[a-z][a-z_]{0,31}")  # and not the line below a header


@dataclass(frozen=True, slots=True, kw_only=True)
class CephOperation:
    """One row since mount: requests to the servers. None: no table of this kernel says."""

    calls: int | None = None
    took_s: float | None = None
    moved_bytes: int | None = None


def parse_ceph_metrics(*files: bytes) -> Mapping[str, CephOperation]:
    """Operations by name (read, write, metadata, copyfrom), from one file or several. Raises ParseError."""
    operations: dict[str, CephOperation] = {}
    for data in files:
        columns: list[bytes] = []
        for line in data.split(b"\n"):
            words = line.split()
            if not words:
                columns = []
            elif words[0] == _TITLE:
                columns = words[1:] if _is_of_operations(words) else []
            elif columns and _NAME.fullmatch(words[0]):
                name = words[0].decode()
                operations[name] = _merged(operations.get(name, CephOperation()), columns, words[1:], name)
    if not operations:
        raise ParseError("tables of the CephFS client", b" ".join(files), "ceph metrics")
    return operations


def _is_of_operations(words: list[bytes]) -> bool:
    return words[1:2] == [_COUNT] and any(word.startswith(_OF_OPERATIONS) for word in words)


def _merged(known: CephOperation, columns: list[bytes], words: list[bytes], name: str) -> CephOperation:
    """What the tables say of one operation. A count that has grown between two tables is taken as it was first."""
    where = f"ceph metrics {name}"
    if len(words) < len(columns):
        raise ParseError(f"{len(columns)} columns", b" ".join(words), where)
    wanted = {column: word for column, word in zip(columns, words, strict=False) if column in _WANTED}
    values = dict(zip(wanted, counts(list(wanted.values()), 1, where), strict=True))
    latency_us = values.get(_SUM_OF_LATENCY)
    return CephOperation(
        calls=values[_COUNT] if known.calls is None else known.calls,
        took_s=known.took_s if latency_us is None else latency_us / US_PER_S,
        moved_bytes=values.get(_SUM_OF_SIZE, known.moved_bytes),
    )
