# SPDX-License-Identifier: Apache-2.0
"""Discrete events: processes that sleep, and gates they wait at. Nothing happens between two events."""

from collections.abc import Callable, Generator
from heapq import heappop, heappush


class Gate:
    """Where processes wait until another opens it; it shuts behind them."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: list[Process] = []


Process = Generator[int | Gate, None, None]
"""Yields how many nanoseconds it sleeps, or the gate it waits at."""


class Calendar:
    """Runs processes in the order of time; those of one instant in the order in which they were put there."""

    __slots__ = ("_due", "_turn", "now")

    def __init__(self) -> None:
        self.now = 0
        self._due: list[tuple[int, int, Process]] = []
        self._turn = 0

    @property
    def events(self) -> int:
        """How many were put there so far."""
        return self._turn

    def start(self, process: Process, after_ns: int = 0) -> None:
        """Let a process begin."""
        self._turn += 1
        heappush(self._due, (self.now + after_ns, self._turn, process))

    def open(self, gate: Gate) -> None:
        """Let everybody at the gate go on, at this instant."""
        if gate.waiting:
            waiting, gate.waiting = gate.waiting, []
            for process in waiting:
                self.start(process)

    def run_until(self, end_ns: int) -> None:
        """Everything up to and at this instant happens."""
        due = self._due
        while due and due[0][0] <= end_ns:
            now, _, process = heappop(due)
            self.now = now
            try:
                wait = process.send(None)
            except StopIteration:
                continue
            if isinstance(wait, int):
                self._turn += 1
                heappush(due, (now + wait, self._turn, process))
            else:
                wait.waiting.append(process)
        self.now = end_ns


def once(function: Callable[[], None]) -> Process:
    """A process that does one thing and ends."""
    function()
    yield from ()
