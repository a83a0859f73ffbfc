# SPDX-License-Identifier: Apache-2.0
"""Whether somebody declared this node under maintenance, and until when: nobody has to remember to end it."""

from typing import Final

import msgspec

from gpufeed.clock import Clock
from gpufeed.units import NS_PER_S

LONGEST_S: Final = 30 * 86_400.0
DEFAULT_S: Final = 2 * 3_600.0


class _Saved(msgspec.Struct, frozen=True):
    until_wall_ns: int


class Maintenance:
    """From `begin` until its end has come, or `end`. The clock of the boot counts, so that a step changes nothing."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until_ns: int | None = None  # boottime

    def begin(self, for_ns: int) -> None:
        """From now on, for so long. One that runs already ends then instead."""
        self._until_ns = self._clock.boottime_ns() + for_ns

    def end(self) -> None:
        """Now."""
        self._until_ns = None

    @property
    def left_ns(self) -> int:
        """Until it ends by itself; 0: there is none."""
        return max(0, (self._until_ns or 0) - self._clock.boottime_ns())

    @property
    def is_on(self) -> bool:
        """Whether there is one now."""
        return self.left_ns > 0

    @property
    def until_wall_s(self) -> float | None:
        """When it ends, in seconds since 1970."""
        return (self._clock.wall_ns() + self.left_ns) / NS_PER_S if self.is_on else None

    def save(self) -> bytes:
        """What has to outlive the server."""
        return msgspec.msgpack.encode(_Saved(self._clock.wall_ns() + self.left_ns if self.is_on else 0))

    def restore(self, data: bytes | None) -> None:
        """Take over what an earlier server saved, unless somebody has been faster. What cannot be read is none."""
        if data is None or self.is_on:
            return
        try:
            saved = msgspec.msgpack.decode(data, type=_Saved)
        except msgspec.DecodeError:
            return
        left_ns = min(saved.until_wall_ns - self._clock.wall_ns(), round(LONGEST_S * NS_PER_S))
        if left_ns > 0:
            self.begin(left_ns)
