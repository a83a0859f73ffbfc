# SPDX-License-Identifier: Apache-2.0
"""The host of a judged node as a whole: what readers of /proc/stat, /proc/pressure and other mounts see."""

from collections.abc import Sequence
from typing import Final

from gpufeed.simulate.pipeline.calendar import Calendar
from gpufeed.simulate.pipeline.meter import CALM_CPU_WAITING, Crowd, Meter
from gpufeed.simulate.pipeline.neighbour import NeighbourWork

BACKGROUND_CPU: Final = 0.3
"""Cores that the operating system and its services use."""


class JudgedHost:
    """Everybody on the node: the ranks of all jobs, and the neighbours."""

    def __init__(
        self,
        calendar: Calendar,
        crowd: Crowd,
        ranks: Sequence[Meter],
        neighbours: Sequence[NeighbourWork],
        cpus: int,
    ) -> None:
        self.neighbours = neighbours
        self._crowd = crowd
        self._meters = (*ranks, *(work.meter for work in neighbours))
        self.cpus = cpus
        self._calendar = calendar

    @property
    def elapsed_s(self) -> float:
        """Since the start."""
        return self._calendar.now / 1e9

    @property
    def busy_s(self) -> float:
        """Of all processors."""
        used = sum(meter.trainer_cpu_s + meter.loader_cpu_s for meter in self._settled())
        used += BACKGROUND_CPU * self.elapsed_s
        return min(used, self.cpus * self.elapsed_s)

    @property
    def iowait_s(self) -> float:
        """Of processors that were idle while a task waited for input or output."""
        return min(sum(meter.blocked_s for meter in self._settled()), self.cpus * self.elapsed_s - self.busy_s)

    @property
    def waiting_s(self) -> dict[str, float]:
        """Pressure of all tasks together, by its name in HOST_INTEGRALS."""
        crowd = self._crowd
        crowd.settle(self._calendar.now)
        return {
            "io_waiting_s": crowd.io_waiting_s,
            "io_stalled_s": crowd.io_stalled_s,
            "cpu_waiting_s": crowd.cpu_waiting_s + CALM_CPU_WAITING * self.elapsed_s,
            "memory_waiting_s": crowd.memory_waiting_s,
            "memory_stalled_s": crowd.memory_stalled_s,
        }

    @property
    def blocked_tasks(self) -> int:
        """In uninterruptible sleep now."""
        return sum(meter.blocked + meter.swapping for meter in self._meters)

    def neighbour_total(self, name: str) -> float:
        """Of all neighbours, by the names of their sums."""
        return sum(work.sums()[name] for work in self.neighbours)

    def _settled(self) -> Sequence[Meter]:
        for meter in self._meters:
            meter.settle(self._calendar.now)
        return self._meters
