# SPDX-License-Identifier: Apache-2.0
"""A counter of many things that come and go, and take their counts with them when they do."""

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field


@dataclass(slots=True)
class RunningSum:
    """Never falls: what a thing had counted stays when it is gone, or begins again."""

    is_known: bool = False  # whether anything was ever counted
    _gone: float = 0
    _last: dict[Hashable, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Of everything that was ever seen."""
        return self._gone + sum(self._last.values())

    def see(self, key: Hashable, value: float | None) -> None:
        """What one thing has counted by now; None: it counts nothing."""
        if value is None:
            return
        self.is_known = True
        before = self._last.get(key, 0)
        if value < before:
            self._gone += before
        self._last[key] = value

    def keep(self, keys: Collection[Hashable]) -> None:
        """Only these are still there."""
        for key in [key for key in self._last if key not in keys]:
            self._gone += self._last.pop(key)
