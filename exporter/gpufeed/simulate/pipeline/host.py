# SPDX-License-Identifier: Apache-2.0
"""The host of a judged node as a whole: what readers of /proc/stat, /proc/pressure and other mounts see."""

from collections.abc import Sequence
from typing import Final

from gpufeed.simulate.pipeline.calendar import Calendar
from gpufeed.simulate.pipeline.meter import CALM_CPU_WAITING, Meter
from gpufeed.simulate.pipeline.neighbour import NeighbourWork

BACKGROUND_CPU: Final = 0.3
"""Cores that the operating system and its services use."""


class JudgedHost:
    """The node's own meter counts the tasks of all jobs and of the neighbours."""

    def __init__(self, calendar: Calendar, meter: Meter, neighbours: Sequence[NeighbourWork], cpus: int) -> None:
        self.meter = meter
        self.neighbours = neighbours
        self.cpus = cpus
        self._calendar = calendar

    @property
    def elapsed_s(self) -> float:
        """Since the start."""
        return self._calendar.now / 1e9

    @property
    def busy_s(self) -> float:
        """Of all processors."""
        meter = self._settled()
        used = meter.trainer_cpu_s + meter.loader_cpu_s + BACKGROUND_CPU * self.elapsed_s
        return min(used, self.cpus * self.elapsed_s)

    @property
    def iowait_s(self) -> float:
        """Of processors that were idle while a task waited for input or output."""
        return min(self._settled().blocked_s, self.cpus * self.elapsed_s - self.busy_s)

    @property
    def waiting_s(self) -> dict[str, float]:
        """Pressure of all tasks together, by its name in HOST_INTEGRALS."""
        meter = self._settled()
        return {
            "io_waiting_s": meter.io_waiting_s,
            "io_stalled_s": meter.io_stalled_s,
            "cpu_waiting_s": meter.cpu_waiting_s + CALM_CPU_WAITING * self.elapsed_s,
            "memory_waiting_s": meter.memory_waiting_s,
            "memory_stalled_s": meter.memory_stalled_s,
        }

    @property
    def blocked_tasks(self) -> int:
        """In uninterruptible sleep now."""
        return self.meter.blocked + self.meter.swapping

    def neighbour_total(self, name: str) -> float:
        """Of all neighbours, by the names of their sums."""
        return sum(work.sums()[name] for work in self.neighbours)

    def _settled(self) -> Meter:
        self.meter.settle(self._calendar.now)
        return self.meter
