# SPDX-License-Identifier: Apache-2.0
"""/proc/meminfo. Source: Documentation/filesystems/proc.rst."""

import re
from dataclasses import dataclass
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.units import KIBIBYTE

_LINE: Final = re.compile(rb"^(?P<name>MemTotal|MemAvailable):[ \t]*(?P<kib>\d{1,16})[ \t]*kB", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemInfo:
    """Memory of the node in bytes."""

    total_bytes: int
    available_bytes: int | None  # since 3.14


def parse_meminfo(data: bytes) -> MemInfo:
    """Total and available memory. Raises ParseError where the total is missing."""
    found = {line["name"]: int(line["kib"]) * KIBIBYTE for line in _LINE.finditer(data)}
    if b"MemTotal" not in found:
        raise ParseError("a line 'MemTotal'", data[:80], "meminfo")
    return MemInfo(total_bytes=found[b"MemTotal"], available_bytes=found.get(b"MemAvailable"))
