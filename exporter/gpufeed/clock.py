# SPDX-License-Identifier: Apache-2.0
"""The only file that asks what time it is. Everything else takes a `Clock`, or finds the time in a frame."""

import time
from typing import Protocol

from gpufeed.model.frame import FrameTime


class Clock(Protocol):
    """Three readings of time, all in integer nanoseconds."""

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC: intervals. Never steps, stands still during suspend."""

    def boottime_ns(self) -> int:
        """CLOCK_BOOTTIME: monotonic plus time suspended; a jump against monotonic means a suspend."""

    def wall_ns(self) -> int:
        """CLOCK_REALTIME: for people and receivers of alerts. May step either way at any time."""


class SystemClock:
    """The clocks of this machine."""

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC in nanoseconds."""
        return time.monotonic_ns()

    def boottime_ns(self) -> int:
        """CLOCK_BOOTTIME in nanoseconds."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def wall_ns(self) -> int:
        """CLOCK_REALTIME in nanoseconds since 1970."""
        return time.time_ns()


def read_frame_time(clock: Clock) -> FrameTime:
    """All three clocks, read back to back."""
    return FrameTime(
        monotonic_ns=clock.monotonic_ns(),
        boottime_ns=clock.boottime_ns(),
        wall_ns=clock.wall_ns(),
    )
