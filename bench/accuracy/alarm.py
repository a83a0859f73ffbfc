# SPDX-License-Identifier: Apache-2.0
"""Would anybody have been called? The rule of starvation alerts, over one node, once a minute."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.accuracy.timeline import Seconds
from bench.accuracy.verdicts import BIN_NS
from gpufeed.simulate.activity import Cause

EVERY_BINS: Final = 60_000_000_000 // BIN_NS
RESTING: Final = frozenset({"idle_held", "idle_free", "fault"})
"""States in which a GPU has no work that could be held up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A cause holds more than a share of the working time, over every window, for so long."""

    threshold: float
    windows_s: tuple[float, ...]
    for_s: float


def alarms(gpus: Sequence[Sequence[Seconds]], rule: Rule) -> list[str]:
    """Named causes of starvation that would have fired, given each GPU's answer by bins."""
    minutes = list(_minutes(gpus))
    named = {cause for minute in minutes for cause in minute if cause[0] == "starved" and cause[1] != "unknown"}
    return sorted(why for state, why in named if _fires(minutes, (state, why), rule))


def _fires(minutes: Sequence[Mapping[Cause, float]], cause: Cause, rule: Rule) -> bool:
    held_s = 0.0
    for at in range(len(minutes)):
        if all(_share(minutes, at, cause, window_s) > rule.threshold for window_s in rule.windows_s):
            held_s += 60.0
            if held_s > rule.for_s:
                return True
        else:
            held_s = 0.0
    return False


def _share(minutes: Sequence[Mapping[Cause, float]], at: int, cause: Cause, window_s: float) -> float:
    """Of the working time in a window that ends with minute `at`; a window that has not passed yet holds nothing."""
    length = int(window_s // 60)
    if at + 1 < length:
        return 0.0
    window = minutes[at + 1 - length : at + 1]
    working_s = sum(s for minute in window for (state, _), s in minute.items() if state not in RESTING)
    return sum(minute.get(cause, 0.0) for minute in window) / working_s if working_s else 0.0


def _minutes(gpus: Sequence[Sequence[Seconds]]) -> Iterator[Mapping[Cause, float]]:
    for first in range(0, min(map(len, gpus), default=0), EVERY_BINS):
        total: dict[Cause, float] = {}
        for bins in gpus:
            for part in bins[first : first + EVERY_BINS]:
                for cause, spent_s in part.items():
                    total[cause] = total.get(cause, 0.0) + spent_s
        yield total
