# SPDX-License-Identifier: Apache-2.0
"""The host as a whole: what its processors do, and how long its tasks waited, from what each GPU's share does."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from gpufeed.simulate.activity import LOADERS, Activity
from gpufeed.simulate.levels import HOST_INTEGRALS, Levels

PRESSURES: Final[Mapping[str, Callable[[Iterable[float]], float]]] = MappingProxyType(
    {
        "io_waiting_s": max,
        "io_stalled_s": min,
        "cpu_waiting_s": max,
        "memory_waiting_s": max,
        "memory_stalled_s": min,
    }
)
"""Pressure of all tasks together, from that of each GPU's: the ranks of a job wait at the same time where they wait
at all. Some task waits while the worst of them does, every task waits while the best of them does."""

_BACKGROUND_CPU: Final = 0.3
"""Cores that the operating system and its services use."""


class HostTruth:
    """Processors and pressure of the node."""

    def __init__(self, gpus: int) -> None:
        self.cpus = gpus * LOADERS
        self.elapsed_s = 0.0
        self.busy_s = 0.0  # of all processors
        self.iowait_s = 0.0  # of processors that were idle while a task waited for input or output
        self.waiting_s = dict.fromkeys(PRESSURES, 0.0)
        self.blocked_tasks = 0

    def advance(self, duration_s: float, shares: Sequence[tuple[Activity, Levels]]) -> None:
        """Time passes during which no GPU's share changes."""
        busy = min(self.cpus, _BACKGROUND_CPU + sum(_rate(levels, *_CPU) for _, levels in shares))
        self.blocked_tasks = sum(activity.host.loaders_blocked for activity, _ in shares)
        self.elapsed_s += duration_s
        self.busy_s += busy * duration_s
        self.iowait_s += min(self.cpus - busy, self.blocked_tasks) * duration_s
        for name, choose in PRESSURES.items():
            self.waiting_s[name] += choose(_rate(levels, name) for _, levels in shares) * duration_s


_CPU: Final = ("trainer_cpu_s", "loader_cpu_s")


def _rate(levels: Levels, *names: str) -> float:
    return sum(levels.host[HOST_INTEGRALS.index(name)] for name in names)
