# SPDX-License-Identifier: Apache-2.0
"""The cost governor: lengthens the fast periods of the dearest lanes until the probe keeps its share of one core.

The rule is a ceiling: no lane may cost more per second than a level that is chosen so that the sum fits. Lanes below
the level are left alone.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gpufeed.model.ids import LaneId
from gpufeed.probe.schedule import GPM_SPACING_NS
from gpufeed.units import NS_PER_S

IDLE_PERIOD_NS: Final = NS_PER_S
"""A GPU that nobody holds changes nothing that a second would miss."""

LONGEST_PERIOD_NS: Final = 5 * NS_PER_S
LEAST_SHARE: Final = 0.25
"""Of the limit, left to fast reads whatever the rest costs: saving more there would not save the limit."""

STEP_NS: Final = 50_000_000
"""Periods in force are multiples of this, so that they do not wander with every measurement."""

_ROUNDING: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneCost:
    """What one lane costs: one round of its fast groups, and all its other groups per second."""

    lane: LaneId
    fast_period_ns: int  # configured; 0: the lane has no fast group
    fast_round_ns: float
    other_ratio: float = 0.0  # of one core
    has_gpm: bool = False
    is_idle_gpu: bool = False

    @property
    def least_period_ns(self) -> int:
        """The shortest fast period allowed, whatever it costs."""
        spacing_ns = GPM_SPACING_NS if self.has_gpm else 0
        idle_ns = IDLE_PERIOD_NS if self.is_idle_gpu else 0
        return max(self.fast_period_ns, spacing_ns, idle_ns)


def fast_periods(costs: Iterable[LaneCost], overhead_ratio: float, limit_ratio: float) -> Mapping[LaneId, int]:
    """The fast period in nanoseconds of every lane that has fast groups.

    `overhead_ratio` is what the probe uses of one core beside its lanes, `limit_ratio` what it may use in all.
    """
    lanes = list(costs)
    fast = [cost for cost in lanes if cost.fast_period_ns > 0]
    others = overhead_ratio + sum(cost.other_ratio for cost in lanes)
    budget = max(limit_ratio - others, LEAST_SHARE * limit_ratio)
    rates = [cost.fast_round_ns / cost.least_period_ns for cost in fast]
    if sum(rates) <= budget:
        return {cost.lane: cost.least_period_ns for cost in fast}
    level = _level(rates, budget)
    return {
        cost.lane: _lengthened(cost, level) if rate > level else cost.least_period_ns
        for cost, rate in zip(fast, rates, strict=True)
    }


def _level(rates: list[float], budget: float) -> float:
    """The level L with sum(min(rate, L)) = budget, for rates that add up to more than the budget."""
    left = budget
    dearer = len(rates)
    for rate in sorted(rates):
        share = left / dearer
        if rate >= share:
            return share
        left -= rate
        dearer -= 1
    return max(rates)


def _lengthened(cost: LaneCost, level: float) -> int:
    steps = math.ceil(cost.fast_round_ns / level / STEP_NS - _ROUNDING) if level > 0 else LONGEST_PERIOD_NS // STEP_NS
    return max(cost.least_period_ns, min(steps * STEP_NS, LONGEST_PERIOD_NS))
