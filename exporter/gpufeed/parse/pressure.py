# SPDX-License-Identifier: Apache-2.0
"""Files of /proc/pressure and of cgroups. Source: Documentation/accounting/psi.rst.

Which lines there are depends on the kernel: `cpu` has no `full` before 5.13, `irq` has no `some`.
"""

import re
from dataclasses import dataclass
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.units import US_PER_S

_LINE: Final = re.compile(rb"(?P<kind>some|full)(?:\s+\S+)*?\s+total=(?P<total_us>\d{1,20})(?:\s.*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class PressureTotals:
    """Seconds since boot in which at least one task, or all tasks that are not idle, waited for the resource."""

    some_s: float | None = None
    full_s: float | None = None


def parse_pressure(data: bytes, where: str = "") -> PressureTotals:
    """The totals; the averages are not read, rates are ours to compute. Raises ParseError where neither is there."""
    totals: dict[bytes, float] = {}
    for line in data.split(b"\n"):
        if found := _LINE.fullmatch(line.strip()):
            totals[found["kind"]] = int(found["total_us"]) / US_PER_S
    if not totals:
        raise ParseError("'some' or 'full' with a total", data.strip(), where)
    return PressureTotals(some_s=totals.get(b"some"), full_s=totals.get(b"full"))
