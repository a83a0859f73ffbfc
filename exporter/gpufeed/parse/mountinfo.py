# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/mountinfo: which mounts are one file system. Source: Documentation/filesystems/proc.rst §3.5."""

import re
from dataclasses import dataclass
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.parse.table import Parsed, parse_rows
from gpufeed.parse.text import PATH_LIMIT, clean_text, unescape_octal

OPTIONS_LIMIT: Final = 4096

_LINE: Final = re.compile(
    rb"\d+ \d+ (?P<device>\d+:\d+) (?P<root>[^ ]+) (?P<mountpoint>[^ ]+) (?P<here>[^ ]+)"
    rb"(?: [^ ]+)*? - (?P<fstype>[^ ]+) (?P<source>[^ ]+)(?: (?P<options>.*))?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MountEntry:
    """One mount. Two entries with one `device` are one superblock: they share all counters."""

    device: str  # major:minor
    root: str
    mountpoint: str
    fstype: str
    source: str
    options: str = ""  # of this mount, then of the superblock: `ro,relatime,rw,vers=4.2`


def parse_mountinfo(data: bytes) -> Parsed[MountEntry]:
    """One row per mount, in the order of the mount table, which mountstats has too."""
    return parse_rows(data.split(b"\n"), _parse_line)


def _parse_line(line: bytes) -> MountEntry:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ParseError("a line of a mount table", line, "mountinfo")
    root, mountpoint, source = (
        clean_text(unescape_octal(found[key]), PATH_LIMIT) for key in ("root", "mountpoint", "source")
    )
    return MountEntry(
        device=found["device"].decode(),
        root=root,
        mountpoint=mountpoint,
        fstype=clean_text(found["fstype"]),
        source=source,
        options=clean_text(b",".join((found["here"], found["options"] or b"")), OPTIONS_LIMIT),
    )
