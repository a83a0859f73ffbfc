# SPDX-License-Identifier: Apache-2.0
"""`cpu.stat` of a control group: processor time, and how long its quota kept its tasks from running.

Sources: Documentation/admin-guide/cgroup-v2.rst (microseconds), Documentation/scheduler/sched-bwc.rst (nanoseconds).
"""

import re
from dataclasses import dataclass
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.parse.number import MAX_COUNT
from gpufeed.units import NS_PER_S, US_PER_S

_LINE: Final = re.compile(rb"(?P<name>[a-z_.]{1,40}) (?P<value>[0-9]{1,20})")


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupCpu:
    """Since the group was made. A group without a quota is not throttled: all zero, or not there at all."""

    used_s: float | None = None  # by groups below too; version 1 has it elsewhere
    throttled_periods: int | None = None  # in which the quota was used up
    throttled_s: float | None = None  # of this group's own quota


def parse_cgroup_cpu(data: bytes) -> CgroupCpu:
    """Of either version. Raises ParseError where there is no line of this file at all."""
    found = {line["name"]: int(line["value"]) for line in map(_LINE.fullmatch, data.split(b"\n")) if line is not None}
    if not found or max(found.values()) > MAX_COUNT:
        raise ParseError("lines 'name count'", data[:80], "cpu.stat")
    throttled_s = None
    if b"throttled_usec" in found:
        throttled_s = found[b"throttled_usec"] / US_PER_S
    elif b"throttled_time" in found:
        throttled_s = found[b"throttled_time"] / NS_PER_S
    return CgroupCpu(
        used_s=found[b"usage_usec"] / US_PER_S if b"usage_usec" in found else None,
        throttled_periods=found.get(b"nr_throttled"),
        throttled_s=throttled_s,
    )
