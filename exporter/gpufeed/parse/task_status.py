# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/status: how many processors a process may run on, and who runs it. Source: proc_pid_status(5)."""

import re
from typing import Final

from gpufeed.errors import ParseError

_ALLOWED: Final = re.compile(rb"^Cpus_allowed:[ \t]*(?P<mask>[0-9a-fA-F]{1,8}(?:,[0-9a-fA-F]{1,8})*)\s*$", re.MULTILINE)

_USER: Final = re.compile(rb"^Uid:[ \t]*(?P<real>\d{1,10})[ \t]", re.MULTILINE)


def parse_cpus_allowed(data: bytes) -> int:
    """Processors in the mask `Cpus_allowed` (`ff,ffffffff`: 40). Raises ParseError where there is no such line."""
    found = _ALLOWED.search(data)
    if found is None:
        raise ParseError("a line 'Cpus_allowed'", data[:80], "status")
    return sum(int(word, 16).bit_count() for word in found["mask"].split(b","))


def parse_user_id(data: bytes) -> int:
    """The real user. Raises ParseError where there is no such line."""
    found = _USER.search(data)
    if found is None:
        raise ParseError("a line 'Uid'", data[:80], "status")
    return int(found["real"])
