# SPDX-License-Identifier: Apache-2.0
"""How long GPUs wait at a stretch, as far as the fast period shows."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from gpufeed.model.balance import STALL_BOUNDS_S, StallCause, StallCounts
from gpufeed.model.state import StateCause
from gpufeed.units import seconds

MOSTLY: Final = 0.5
"""Of an interval: from here on it belongs to a wait."""
_NAMED: Final[frozenset[str]] = frozenset({"storage", "host_cpu", "fabric", "peer"})


class Stall(NamedTuple):
    """A wait that is over."""

    cause: StallCause
    length_s: float


@dataclass(frozen=True, slots=True)
class Waited:
    """A wait that goes on: nanoseconds of it by cause, and its whole length."""

    by_cause: Mapping[str, int] = field(default_factory=dict)
    length_ns: int = 0

    def after(self, parts: Sequence[tuple[StateCause, int]]) -> tuple["Waited", Stall | None]:
        """With one interval more: it either goes on or is over."""
        length_ns = sum(part_ns for _, part_ns in parts)
        starved = [(cause.cause, part_ns) for cause, part_ns in parts if cause.state == "starved" and part_ns > 0]
        if not starved or sum(part_ns for _, part_ns in starved) < MOSTLY * length_ns:
            return (NONE, self.ended()) if self.length_ns else (self, None)
        by_cause = dict(self.by_cause)
        for cause, part_ns in starved:
            by_cause[cause] = by_cause.get(cause, 0) + part_ns
        return Waited(by_cause, self.length_ns + length_ns), None

    def ended(self) -> Stall:
        """The wait as a whole, by what it was most of."""
        most = max(self.by_cause, key=lambda cause: self.by_cause[cause])
        return Stall(_word(most), seconds(self.length_ns))


NONE: Final = Waited()


def counted(stalls: Mapping[StallCause, StallCounts], ended: Iterable[Stall]) -> Mapping[StallCause, StallCounts]:
    """The histogram with what has ended. A length at a bound belongs below it."""
    after = dict(stalls)
    for stall in ended:
        before = after.get(stall.cause, StallCounts())
        place = bisect_left(STALL_BOUNDS_S, stall.length_s)
        counts = (*before.counts[:place], before.counts[place] + 1, *before.counts[place + 1 :])
        after[stall.cause] = StallCounts(counts=counts, total_s=before.total_s + stall.length_s)
    return after


def _word(cause: str) -> StallCause:
    return cause if cause in _NAMED else "other"  # type: ignore[return-value]  # the four are of the literal
