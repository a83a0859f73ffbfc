# SPDX-License-Identifier: Apache-2.0
"""/proc/driver/nvidia-fs/stats: GPUDirect Storage. Source: NVIDIA/gds-nvidia-fs src/nvfs-stat.c.

With IO statistics on, `Reads` and `Writes` have two lines each: counts, and means of the last seconds. Off, which is
the driver's default, they have one, with errors only: how much was read is then unknown, not nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.parse.number import MAX_COUNT, parse_count
from gpufeed.parse.text import clean_text
from gpufeed.units import MEBIBYTE

_WHERE: Final = "nvidia-fs/stats"
_LINE: Final = re.compile(rb"\s*(?P<name>Reads|Writes|Ops)\s*:(?P<values>.*)", re.DOTALL)
_VALUE: Final = re.compile(rb"([A-Za-z][A-Za-z_-]*)=(\S*)")
_DRIVER: Final = re.compile(rb"NVFS Driver\(version: *([^)]{1,40})\)")
_IO_STATS: Final = re.compile(rb"^\s*IO stats: *(Enabled|Disabled)", re.MULTILINE)

_Values = Mapping[tuple[str, str], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class GdsStats:
    """Since the driver was loaded or its statistics were reset. None: not counted."""

    has_io_stats: bool
    driver: str = ""
    reads: int | None = None  # that went well
    read_bytes: int | None = None  # whole MiB: the driver keeps bytes and prints no more of them
    writes: int | None = None
    write_bytes: int | None = None
    errors: int | None = None
    inflight: int | None = None


def parse_gds_stats(data: bytes) -> GdsStats:
    """The whole file. Raises ParseError where it is another one, or a value of ours is no count."""
    values = _values(data)
    if not values:
        raise ParseError("statistics of nvidia-fs", data, _WHERE)
    driver = _DRIVER.search(data)
    switch = _IO_STATS.search(data)  # versions before 2.17 have none, and always count
    has_io_stats = values.get(("Reads", "n")) is not None and (switch is None or switch[1] == b"Enabled")
    counted = values if has_io_stats else {}
    return GdsStats(
        has_io_stats=has_io_stats,
        driver="" if driver is None else clean_text(driver[1]),
        reads=counted.get(("Reads", "ok")),
        read_bytes=_bytes(counted, ("Reads", "readmib"), ("Reads", "readmb")),
        writes=counted.get(("Writes", "ok")),
        write_bytes=_bytes(counted, ("Writes", "writemib"), ("Writes", "writemb")),
        errors=_sum(values, ("Reads", "err"), ("Writes", "err")),
        inflight=_sum(values, ("Ops", "read"), ("Ops", "write")),
    )


def _values(data: bytes) -> _Values:
    """By line and key, keys in lower case: versions differ in it."""
    found: dict[tuple[str, str], int | None] = {}
    for line in data.split(b"\n"):
        match = _LINE.fullmatch(line)
        if match is not None:
            name = match["name"].decode()
            for key, value in _VALUE.findall(match["values"]):
                found.setdefault((name, key.decode().lower()), parse_count(value, f"{_WHERE} {name}"))
    return found


def _bytes(values: _Values, *spellings: tuple[str, str]) -> int | None:
    """Old versions say mb and mean MiB too."""
    for key in spellings:
        mebibytes = values.get(key)
        if mebibytes is not None:
            if mebibytes > MAX_COUNT // MEBIBYTE:
                raise ParseError("MiB that can have been moved", str(mebibytes), _WHERE)
            return mebibytes * MEBIBYTE
    return None


def _sum(values: _Values, *keys: tuple[str, str]) -> int | None:
    known = [value for key in keys if (value := values.get(key)) is not None]
    return min(sum(known), MAX_COUNT) if len(known) == len(keys) else None
