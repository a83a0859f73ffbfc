# SPDX-License-Identifier: Apache-2.0
"""A driver's library that crashes the process it is loaded into: left alone for a while, so that the rest is read.

Nothing else that a probe loads is foreign code. A probe that crashes twice, soon after its start, is followed by one
that does not touch the driver; later it is tried again, ever more rarely.
"""

import signal
from typing import Final

from gpufeed.units import NS_PER_S, nanoseconds

CRASHES: Final = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT})
SOON_S: Final = 60.0
"""A crash this long after the start is another one, not the same again."""
AFTER: Final = 2
PAUSES_S: Final = (60.0, 300.0, 1800.0)


class Quarantine:
    """Counts crashes in a row, and says whether the driver is left alone now."""

    def __init__(self) -> None:
        self._crashes = 0
        self._until_ns = 0

    def note_end(self, exit_code: int | None, lived_s: float, now_ns: int) -> None:
        """A probe ended, with this exit code (negative: the signal), after so long."""
        has_crashed = exit_code is not None and -exit_code in CRASHES
        if not has_crashed:
            self._crashes = 0 if lived_s >= SOON_S else self._crashes
            return
        self._crashes = self._crashes + 1 if lived_s < SOON_S else 1
        if self._crashes >= AFTER:
            pause_s = PAUSES_S[min(self._crashes - AFTER, len(PAUSES_S) - 1)]
            self._until_ns = now_ns + nanoseconds(pause_s)

    def crashes(self, now_ns: int) -> int:
        """How many there were, while the driver is left alone for them; else 0."""
        return self._crashes if now_ns < self._until_ns else 0

    def left_s(self, now_ns: int) -> float:
        """Until it is tried again."""
        return max(0.0, (self._until_ns - now_ns) / NS_PER_S)
