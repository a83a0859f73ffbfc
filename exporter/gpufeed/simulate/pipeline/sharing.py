# SPDX-License-Identifier: Apache-2.0
"""Capacity that all who want it share evenly: a server's rate, a port's, the operations a second that it can do."""

import math
from heapq import heappop, heappush

from gpufeed.simulate.pipeline.calendar import Calendar, Gate, Process, once


class Shared:
    """Everybody present has received the same amount per time; who came in between has received the difference.

    Rates are per nanosecond. No user gets more than `most`, however few there are.
    """

    __slots__ = ("_armed_ns", "_calendar", "_due", "_each", "_received", "_since_ns", "_turn", "_whole", "most")

    def __init__(self, calendar: Calendar, whole: float, most: float = math.inf) -> None:
        self.most = most
        self._whole = whole
        self._calendar = calendar
        self._each = 0.0
        self._received = 0.0
        self._since_ns = 0
        self._due: list[tuple[float, int, Gate]] = []
        self._turn = 0
        self._armed_ns = -1

    @property
    def users(self) -> int:
        """How many share it now."""
        return len(self._due)

    def received(self, now_ns: int) -> float:
        """What a user would have received who has been there since the start."""
        return self._received + self._each * (now_ns - self._since_ns)

    def use(self, amount: float) -> Process:
        """Until so much has been received."""
        self._settle()
        self._turn += 1
        gate = Gate()
        heappush(self._due, (self._received + amount, self._turn, gate))
        self._each = min(self.most, self._whole / len(self._due))
        self._arm()
        yield gate

    def set_whole(self, whole: float) -> None:
        """From now on there is more or less of it."""
        self._settle()
        self._whole = whole
        if self._due:
            self._each = min(self.most, whole / len(self._due))
            self._arm()

    def _settle(self) -> None:
        now_ns = self._calendar.now
        self._received += self._each * (now_ns - self._since_ns)
        self._since_ns = now_ns

    def _arm(self) -> None:
        """Look again when the first of them has enough; where it takes longer by then, once more."""
        due_ns = self._calendar.now + max(0, math.ceil((self._due[0][0] - self._received) / self._each))
        if self._armed_ns < 0 or due_ns < self._armed_ns:
            self._armed_ns = due_ns
            self._calendar.start(once(self._look), due_ns - self._calendar.now)

    def _look(self) -> None:
        if self._calendar.now != self._armed_ns:
            return  # a look that an earlier one has replaced
        self._armed_ns = -1
        self._settle()
        due, enough = self._due, self._received + self._each
        while due and due[0][0] <= enough:
            self._calendar.open(heappop(due)[2])
        self._each = min(self.most, self._whole / len(due)) if due else 0.0
        if due:
            self._arm()
