# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/io: what a process has read. Source: Documentation/filesystems/proc.rst §3.3.

Two numbers that measure different things: what read calls returned, from page cache, pipes, sockets and network file
systems too; and what the block layer fetched for the process, which of a network file system is nothing.
"""

import re
from dataclasses import dataclass
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.parse.number import MAX_COUNT

_LINE: Final = re.compile(rb"(?P<name>rchar|read_bytes): (?P<value>[0-9]{1,20})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIo:
    """Bytes since the process began, of threads that ended too."""

    read_call_bytes: int  # rchar
    block_read_bytes: int | None  # read_bytes; kernels without block accounting have none


def parse_process_io(data: bytes) -> ProcessIo:
    """Raises ParseError. Lines that are not asked for may hold anything, a negative count among it."""
    found = {line["name"]: int(line["value"]) for line in map(_LINE.fullmatch, data.split(b"\n")) if line is not None}
    if b"rchar" not in found or max(found.values()) > MAX_COUNT:
        raise ParseError("a line 'rchar'", data[:80], "io")
    return ProcessIo(read_call_bytes=found[b"rchar"], block_read_bytes=found.get(b"read_bytes"))
