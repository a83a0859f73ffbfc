# SPDX-License-Identifier: Apache-2.0
"""The host of a judged node as a whole: processors, pressure, and the tasks that nothing with a GPU belongs to."""

from collections.abc import Sequence
from typing import Final

from gpufeed.simulate.pipeline.calendar import Calendar
from gpufeed.simulate.pipeline.gpu import CALM_CPU_WAITING, JudgedGpu
from gpufeed.simulate.pipeline.meter import Meter

_BACKGROUND_CPU: Final = 0.3
"""Cores that the operating system and its services use."""


class JudgedHost:
    """All that a reader of /proc/stat and /proc/pressure sees."""

    def __init__(self, calendar: Calendar, gpus: Sequence[JudgedGpu], jobs: Sequence[Meter]) -> None:
        self._calendar = calendar
        self._gpus = gpus
        self._jobs = jobs
        self.cpus = 4 * len(gpus)

    @property
    def elapsed_s(self) -> float:
        """Since the start."""
        return self._calendar.now / 1e9

    @property
    def busy_s(self) -> float:
        """Of all processors."""
        used = sum(m.trainer_cpu_s + m.loader_cpu_s for m in self._settled())
        return _BACKGROUND_CPU * self.elapsed_s + used

    @property
    def iowait_s(self) -> float:
        """Of processors that were idle while a task waited for input or output."""
        return min(sum(m.blocked_s for m in self._settled()), self.cpus * self.elapsed_s - self.busy_s)

    @property
    def waiting_s(self) -> dict[str, float]:
        """Pressure of all tasks together, by its name in HOST_INTEGRALS."""
        meters = self._settled()
        return {
            "io_waiting_s": max((m.io_waiting_s for m in meters), default=0.0),
            "io_stalled_s": min((m.io_stalled_s for m in meters), default=0.0),
            "cpu_waiting_s": max((m.cpu_waiting_s for m in meters), default=0.0) + CALM_CPU_WAITING * self.elapsed_s,
            "memory_waiting_s": max((m.memory_waiting_s for m in meters), default=0.0),
            "memory_stalled_s": min((m.memory_stalled_s for m in meters), default=0.0),
        }

    @property
    def blocked_tasks(self) -> int:
        """In uninterruptible sleep now."""
        return sum(m.blocked + m.swapping for m in self._jobs)

    def _settled(self) -> Sequence[Meter]:
        for meter in self._jobs:
            meter.settle(self._calendar.now)
        return self._jobs
