# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/stat and /proc/PID/task/TID/stat. Source: proc_pid_stat(5).

The name in parentheses is the program's own choice and may hold anything, blanks and parentheses too: the fields are
counted from the last parenthesis.
"""

import re
from dataclasses import dataclass
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.parse.number import MAX_COUNT
from gpufeed.parse.text import clean_text

_STAT: Final = re.compile(
    rb"(?P<id>\d{1,10}) \((?P<comm>.*)\) (?P<state>[A-Za-z]) (?P<ppid>\d{1,10})"
    rb"(?: -?\d{1,20}){9}"  # pgrp … cmajflt
    rb" (?P<utime>\d{1,20}) (?P<stime>\d{1,20})"
    rb"(?: -?\d{1,20}){4}"  # cutime … nice
    rb" (?P<threads>\d{1,10}) -?\d{1,20} (?P<start>\d{1,20})(?:\s.*)?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStat:
    """A thread, or in /proc/PID/stat a process: its processor time is then that of all its threads, ended ones too."""

    id: int
    comm: str
    state: str  # R running, S sleeping, D uninterruptible, …; of a process: its first thread's
    parent: int
    cpu_s: float
    threads: int
    start_ticks: int  # since boot: with the id it names one task for ever


def parse_task_stat(data: bytes, ticks_per_s: int) -> TaskStat:
    """One task; `ticks_per_s` is USER_HZ. Raises ParseError."""
    found = _STAT.fullmatch(data)
    if found is None:
        raise ParseError("a line of /proc/PID/stat", data.strip(), "stat")
    start_ticks = int(found["start"])
    if start_ticks > MAX_COUNT:
        raise ParseError("a start time of 64 bits", found["start"], "stat")
    return TaskStat(
        id=int(found["id"]),
        comm=clean_text(found["comm"]),
        state=found["state"].decode(),
        parent=int(found["ppid"]),
        cpu_s=(int(found["utime"]) + int(found["stime"])) / ticks_per_s,
        threads=int(found["threads"]),
        start_ticks=start_ticks,
    )
