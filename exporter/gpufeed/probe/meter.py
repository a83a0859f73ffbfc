# SPDX-License-Identifier: Apache-2.0
"""What the reads of one lane cost: driver time where a driver was called, processor time elsewhere."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from gpufeed.model.ids import GroupName

WARM_UP_READS: Final = 2
"""The first reads of a group find out what the device can give: dear, and not again."""

REMEMBERED_READS: Final = 16
TRUSTED_SHARE: Final = 0.75
"""Of the remembered reads, the cheapest: the others were slowed down by somebody else, or hung."""


class Meter:
    """Cost of one read, in nanoseconds, by group. Written by the lane's thread, read by the governor's."""

    def __init__(self, groups: Iterable[GroupName]) -> None:
        self.cpu_ns = 0
        """Of all jobs so far."""
        self._costs_ns: Mapping[GroupName, deque[int]] = {name: deque(maxlen=REMEMBERED_READS) for name in groups}
        self._reads = dict.fromkeys(self._costs_ns, 0)
        self._nvml_calls = 0

    def add(self, group: GroupName, wall_ns: int, cpu_ns: int, nvml_calls: int) -> None:
        """A read took this long; `nvml_calls` is the lane's running count. A driver call may hold a lock of jobs."""
        has_called_driver = nvml_calls != self._nvml_calls
        self._nvml_calls = nvml_calls
        self._reads[group] += 1
        if self._reads[group] > WARM_UP_READS:
            self._costs_ns[group].append(wall_ns if has_called_driver else cpu_ns)

    def read_cost_ns(self, group: GroupName) -> float:
        """What a read of this group usually costs; 0 while that is not known."""
        ascending = sorted(self._costs_ns[group])
        trusted = ascending[: max(1, round(len(ascending) * TRUSTED_SHARE))]
        return sum(trusted) / len(trusted) if trusted else 0.0
