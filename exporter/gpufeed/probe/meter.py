# SPDX-License-Identifier: Apache-2.0
"""What the reads of one lane cost: driver time where a driver was called, processor time elsewhere."""

from dataclasses import dataclass, field
from typing import Final

from gpufeed.model.ids import GroupName

MAX_READ_COST_NS: Final = 100_000_000
"""A read that takes longer hangs: a fault to be reported, not a cost to be saved elsewhere."""

_WEIGHT: Final = 0.2


@dataclass(slots=True, kw_only=True)
class Meter:
    """Smoothed cost of one read, in nanoseconds, by group. Written by the lane's thread, read by the governor."""

    groups: tuple[GroupName, ...]
    read_cost_ns: dict[GroupName, float] = field(default_factory=dict)
    cpu_ns: int = 0  # all jobs so far
    _nvml_calls: int = 0

    def __post_init__(self) -> None:
        """Every group costs nothing so far: the dictionary keeps its size, so that another thread may read it."""
        self.read_cost_ns = dict.fromkeys(self.groups, 0.0)

    def add(self, group: GroupName, wall_ns: int, cpu_ns: int, nvml_calls: int) -> None:
        """A read took this long; `nvml_calls` is the lane's running count. A driver call may hold a lock of jobs."""
        has_called_driver = nvml_calls != self._nvml_calls
        self._nvml_calls = nvml_calls
        cost_ns = min(wall_ns if has_called_driver else cpu_ns, MAX_READ_COST_NS)
        known_ns = self.read_cost_ns[group]
        self.read_cost_ns[group] = known_ns + _WEIGHT * (cost_ns - known_ns) if known_ns else float(cost_ns)
