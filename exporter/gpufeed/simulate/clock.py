# SPDX-License-Identifier: Apache-2.0
"""A clock that moves only when told to: for stepped nodes, tests and replay."""

from typing import Final

_BOOT_NS: Final = 1_000 * 1_000_000_000
_WALL_NS: Final = 1_700_000_000 * 1_000_000_000


class SteppedClock:
    """Three clocks that advance together, and can be made to disagree as a suspend or a clock step makes them."""

    def __init__(self, monotonic_ns: int = _BOOT_NS, wall_ns: int = _WALL_NS) -> None:
        self._monotonic_ns = monotonic_ns
        self._boottime_ns = monotonic_ns
        self._wall_ns = wall_ns

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC."""
        return self._monotonic_ns

    def boottime_ns(self) -> int:
        """CLOCK_BOOTTIME."""
        return self._boottime_ns

    def wall_ns(self) -> int:
        """CLOCK_REALTIME."""
        return self._wall_ns

    def advance(self, duration_ns: int) -> None:
        """Time passes."""
        self._monotonic_ns += duration_ns
        self._boottime_ns += duration_ns
        self._wall_ns += duration_ns

    def suspend(self, duration_ns: int) -> None:
        """The machine sleeps: monotonic time stands still."""
        self._boottime_ns += duration_ns
        self._wall_ns += duration_ns

    def step_wall(self, offset_ns: int) -> None:
        """Somebody sets the clock."""
        self._wall_ns += offset_ns
