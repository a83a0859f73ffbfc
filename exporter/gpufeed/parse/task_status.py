# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/status: where a task may run, who runs it, how often it stopped. Source: proc_pid_status(5)."""

import re
from dataclasses import dataclass
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.parse.number import MAX_COUNT

_ALLOWED: Final = re.compile(rb"^Cpus_allowed:[ \t]*(?P<mask>[0-9a-fA-F]{1,8}(?:,[0-9a-fA-F]{1,8})*)\s*$", re.MULTILINE)

_USER: Final = re.compile(rb"^Uid:[ \t]*(?P<real>\d{1,10})[ \t]", re.MULTILINE)

_SWITCHES: Final = re.compile(
    rb"^voluntary_ctxt_switches:[ \t]*(?P<voluntary>\d{1,20})\s+"
    rb"^nonvoluntary_ctxt_switches:[ \t]*(?P<forced>\d{1,20})\s*$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """Times one thread left its processor: to wait for something, or because others wanted it too."""

    voluntary: int
    involuntary: int


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


def parse_switches(data: bytes) -> Switches:
    """Of the thread whose file this is; of a process, its first. Raises ParseError where there are no such lines."""
    found = _SWITCHES.search(data)
    if found is None or max(values := (int(found["voluntary"]), int(found["forced"]))) > MAX_COUNT:
        raise ParseError("lines 'voluntary_ctxt_switches'", data[-80:], "status")
    return Switches(voluntary=values[0], involuntary=values[1])
