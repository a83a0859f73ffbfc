# SPDX-License-Identifier: Apache-2.0
"""How often the threads of a job left their processors, at a bounded price: /proc/PID/task/TID/status.

The file of a process has the count of its first thread alone. Threads are read in turn, those never seen first; what a
thread had counted when it was read last stands for it until its next turn, and stays when it ends.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from gpufeed.errors import ParseError, SourceError
from gpufeed.parse.task_status import parse_switches
from gpufeed.sources.files import Tree
from gpufeed.sources.running_sum import RunningSum

MAX_THREADS: Final = 256
"""Of one job, at one read."""

Thread = tuple[int, int]  # process, thread


@dataclass(slots=True)
class SwitchWatch:
    """Of one job. Until every thread was seen once nothing is known: a sum that only fills up is no rate."""

    voluntary: RunningSum = field(default_factory=RunningSum)
    involuntary: RunningSum = field(default_factory=RunningSum)
    is_known: bool = False
    _seen: dict[Thread, None] = field(default_factory=dict)  # the one whose turn is next first

    def read(self, proc: Tree, pids: Collection[int]) -> tuple[int, ...]:
        """Take some of the threads of `pids` further; the processes that are there."""
        listed = {pid: numbers for pid in pids if (numbers := _threads(proc, pid))}
        threads = dict.fromkeys((pid, thread) for pid, numbers in listed.items() for thread in numbers)
        self._seen = {thread: None for thread in self._seen if thread in threads}
        turns = [*(thread for thread in threads if thread not in self._seen), *self._seen]
        for thread in turns[:MAX_THREADS]:
            self._look(proc, thread)
        for counted in (self.voluntary, self.involuntary):
            counted.keep(threads)
        self.is_known = self.is_known or (bool(self._seen) and threads.keys() <= self._seen.keys())
        return tuple(listed)

    def _look(self, proc: Tree, thread: Thread) -> None:
        self._seen.pop(thread, None)
        self._seen[thread] = None  # also where it ended meanwhile: the next list has it no more
        try:
            found = parse_switches(proc.attribute(f"{thread[0]}/task/{thread[1]}/status"))
        except (SourceError, ParseError):
            return
        self.voluntary.see(thread, found.voluntary)
        self.involuntary.see(thread, found.involuntary)


def _threads(proc: Tree, pid: int) -> tuple[int, ...]:
    try:
        return tuple(int(name) for name in proc.names(f"{pid}/task") if name.isascii() and name.isdecimal())
    except SourceError:
        return ()  # it ended, or is not for us to see
