# SPDX-License-Identifier: Apache-2.0
"""/proc/stat. Source: Documentation/filesystems/proc.rst §1.7."""

import re
from dataclasses import dataclass
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.parse.number import counts

MODES: Final = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""Columns of the `cpu` line. Guest time stands behind them and is part of user time already: not read."""

_OLDEST_COLUMNS: Final = 4
_ONE_CPU: Final = re.compile(rb"cpu\d+\s")
_BLOCKED: Final = b"procs_blocked"


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuStat:
    """Processor time of all processors together since boot. `iowait` may fall; the kernel says so."""

    seconds: dict[str, float]
    cpus: int  # online
    blocked_tasks: int | None


def parse_cpu_stat(data: bytes, ticks_per_s: int) -> CpuStat:
    """Seconds by mode; `ticks_per_s` is USER_HZ. Raises ParseError where there is no `cpu` line."""
    ticks: tuple[int, ...] = ()
    cpus = 0
    blocked: int | None = None
    for line in data.split(b"\n"):
        if line.startswith(b"cpu "):
            ticks = counts(line.split()[1:], _OLDEST_COLUMNS, "stat cpu")
        elif _ONE_CPU.match(line):
            cpus += 1
        elif line.startswith(_BLOCKED):
            blocked = counts(line.split()[1:], 1, "stat procs_blocked")[0]
    if not ticks:
        raise ParseError("a line 'cpu'", data[:80], "stat")
    return CpuStat(
        seconds={mode: count / ticks_per_s for mode, count in zip(MODES, ticks, strict=False)},
        cpus=cpus,
        blocked_tasks=blocked,
    )
