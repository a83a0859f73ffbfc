# SPDX-License-Identifier: Apache-2.0
"""What the threads of a job do, at a bounded price: /proc/PID/stat and /proc/PID/task/TID/stat.

A rank with its data loaders has hundreds of threads, nearly all asleep for good. Those that were seen to do something
are read every time; of the sleepers a part, in turn, which stands for the rest. Small jobs are read whole.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeVar

from gpufeed.errors import ParseError, SourceError
from gpufeed.parse.task_stat import TaskStat, parse_task_stat
from gpufeed.sources.contract import Desk
from gpufeed.sources.files import Tree
from gpufeed.units import seconds

Item = TypeVar("Item")

MAX_PROCESSES: Final = 64
MAX_THREADS: Final = 512
"""Of one cgroup, at one read."""

_SHARE_OF_AWAKE: Final = 0.75
"""Of the threads that may be read, while there are sleepers to look after as well."""


@dataclass(slots=True)
class Tally:
    """What one read saw; `threads`, `running` and `blocked` stand for those not read too."""

    processes: int = 0
    threads: float = 0
    running: float = 0
    blocked: float = 0
    busiest_cpu_s: float | None = None
    busiest_wall_s: float | None = None

    def add(self, state: str, weight: float = 1.0) -> None:
        """One thread, which stands for `weight` of them."""
        self.threads += weight
        self.running += weight * (state == "R")
        self.blocked += weight * (state == "D")

    def used(self, cpu_s: float, wall_s: float) -> None:
        """Some thread used so much: keep the one with the largest share."""
        busiest = self.busiest_cpu_s, self.busiest_wall_s
        if busiest[0] is None or busiest[1] is None or cpu_s / wall_s > busiest[0] / busiest[1]:
            self.busiest_cpu_s, self.busiest_wall_s = cpu_s, wall_s


@dataclass(slots=True)
class _Seen:
    """A thread as it was found last."""

    start_ticks: int
    cpu_s: float
    at_ns: int
    is_awake: bool = True


@dataclass(slots=True)
class _Process:
    """A process as it was found last."""

    start_ticks: int
    cpu_s: float
    threads: tuple[int, ...] = ()


@dataclass(slots=True)
class ThreadWatch:
    """Follows the threads of one cgroup from read to read."""

    proc: Tree
    desk: Desk
    ticks_per_s: int
    _processes: dict[int, _Process] = field(default_factory=dict)
    _seen: dict[tuple[int, int], _Seen] = field(default_factory=dict)  # by process and thread
    _next_process: int = 0
    _next_sleeper: int = 0

    @property
    def cpu_s(self) -> float:
        """Processor time of all processes, as far as each was read last."""
        return math.fsum(
            process.cpu_s for process in self._processes.values()
        )  # exact, so that it never falls by itself

    def read(self, pids: Sequence[int], max_threads: int = MAX_THREADS) -> Tally:
        """The threads of `pids`, of which the first ones matter most. A process that ended meanwhile is passed over."""
        self._forget(pids)
        tally = Tally()
        several: list[tuple[int, int]] = []
        chosen = self._choose(pids)
        for pid in chosen:
            process = self._read(f"{pid}/stat")
            if process is None:
                self._processes.pop(pid, None)
                continue
            tally.processes += 1
            threads = self._threads_of(pid, process)
            if len(threads) > 1:
                several.extend((pid, thread) for thread in threads)
            else:
                self._count((pid, pid), process, tally, 1.0)
        self._read_threads(several, max(0, max_threads - tally.processes), tally)
        return _scaled(tally, len(chosen), len(pids))

    def _choose(self, pids: Sequence[int]) -> Sequence[int]:
        """All, or where there are too many the first half of what may be read, and of the others some in turn."""
        if len(pids) <= MAX_PROCESSES:
            return pids
        always, others = pids[: MAX_PROCESSES // 2], pids[MAX_PROCESSES // 2 :]
        some = _in_turn(others, self._next_process, MAX_PROCESSES - len(always))
        self._next_process = (self._next_process + len(some)) % len(others)
        return [*always, *some]

    def _threads_of(self, pid: int, stat: TaskStat) -> tuple[int, ...]:
        """Thread ids; listed only when their number has changed, or one of them was gone."""
        known = self._processes.get(pid)
        threads = known.threads if known is not None and known.start_ticks == stat.start_ticks else ()
        if len(threads) != stat.threads:
            threads = self._list(pid) if stat.threads > 1 else (pid,)
        self._processes[pid] = _Process(stat.start_ticks, stat.cpu_s, threads)
        return threads

    def _list(self, pid: int) -> tuple[int, ...]:
        try:
            return tuple(int(name) for name in self.proc.names(f"{pid}/task") if name.isascii() and name.isdecimal())
        except SourceError:
            return ()

    def _read_threads(self, threads: Sequence[tuple[int, int]], budget: int, tally: Tally) -> None:
        awake = [key for key in threads if key[0] == key[1] or self._is_awake(key)]
        asleep = [key for key in threads if not (key[0] == key[1] or self._is_awake(key))]
        first = list(islice(awake, int(budget * _SHARE_OF_AWAKE) if len(threads) > budget else budget))
        some = _in_turn(asleep, self._next_sleeper, budget - len(first))
        if asleep:
            self._next_sleeper = (self._next_sleeper + len(some)) % len(asleep)
        for chosen, everyone in ((first, awake), (some, asleep)):
            for key in chosen:
                stat = self._read(f"{key[0]}/task/{key[1]}/stat")
                if stat is not None:
                    self._count(key, stat, tally, len(everyone) / len(chosen))
                elif key[0] in self._processes:
                    self._processes[key[0]].threads = ()

    def _count(self, key: tuple[int, int], stat: TaskStat, tally: Tally, weight: float) -> None:
        now_ns = self.desk.clock.monotonic_ns()
        before = self._seen.get(key)
        used_s = 0.0
        if before is not None and before.start_ticks == stat.start_ticks and now_ns > before.at_ns:
            used_s = max(0.0, stat.cpu_s - before.cpu_s)
            tally.used(used_s, seconds(now_ns - before.at_ns))
        tally.add(stat.state, weight)
        is_awake = stat.state in {"R", "D"} or used_s > 0
        self._seen[key] = _Seen(stat.start_ticks, stat.cpu_s, now_ns, is_awake)

    def _is_awake(self, key: tuple[int, int]) -> bool:
        seen = self._seen.get(key)
        return seen is None or seen.is_awake

    def _read(self, path: str) -> TaskStat | None:
        try:
            return parse_task_stat(self.proc.attribute(path), self.ticks_per_s)
        except (SourceError, ParseError):
            return None  # it ended between the list and the read

    def _forget(self, pids: Iterable[int]) -> None:
        here = set(pids)
        self._processes = {pid: process for pid, process in self._processes.items() if pid in here}
        self._seen = {key: seen for key, seen in self._seen.items() if key[0] in here}


def _in_turn(items: Sequence[Item], start: int, length: int) -> list[Item]:
    """`length` items from `start` on, round and round, each once."""
    if length >= len(items):
        return list(items)
    return [items[(start + at) % len(items)] for at in range(max(0, length))]


def _scaled(tally: Tally, read: int, there: int) -> Tally:
    """Processes that were not read count as those that were."""
    if read < there:
        factor = there / read
        tally.threads, tally.running, tally.blocked = (
            value * factor for value in (tally.threads, tally.running, tally.blocked)
        )
        tally.processes = there
    return tally
