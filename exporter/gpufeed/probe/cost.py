# SPDX-License-Identifier: Apache-2.0
"""Feeds the governor with what lanes measured, and lanes with the periods it decides."""

from typing import Final

from gpufeed.clock import Clock
from gpufeed.model.desired import ProbeConfig
from gpufeed.probe.governor import LaneCost, fast_periods
from gpufeed.probe.lane import Lane
from gpufeed.probe.reconcile import Roster
from gpufeed.probe.schedule import is_fast
from gpufeed.units import NS_PER_S

DECIDE_EVERY_NS: Final = NS_PER_S
_WEIGHT: Final = 0.2


class Balance:
    """Decides at most once a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._decided_ns = clock.monotonic_ns()
        self._process_ns: int | None = None
        self._lanes_ns = 0
        self._overhead_ratio = 0.0

    def set_periods(self, roster: Roster, process_cpu_ns: int) -> None:
        """Set the fast period of every lane, given the processor time of the whole process since it began."""
        now_ns = self._clock.monotonic_ns()
        elapsed_ns = now_ns - self._decided_ns
        if elapsed_ns < DECIDE_EVERY_NS or roster.config is None:
            return
        self._decided_ns = now_ns
        lanes = roster.lanes
        self._measure_overhead(lanes, process_cpu_ns, elapsed_ns)
        costs = [lane_cost(lane, is_idle_gpu=lane.plan.lane in roster.board.idle_gpus) for lane in lanes]
        periods = fast_periods(costs, self._overhead_ratio, limit_ratio(roster.config))
        for lane in lanes:
            lane.set_fast_period(periods.get(lane.plan.lane, 0))

    def _measure_overhead(self, lanes: tuple[Lane, ...], process_ns: int, elapsed_ns: int) -> None:
        """What frames and the rest cost: the process without its lanes. Starting up does not count."""
        lanes_ns = sum(lane.meter.cpu_ns for lane in lanes)
        before_ns = process_ns if self._process_ns is None else self._process_ns
        used_ns = (process_ns - before_ns) - (lanes_ns - self._lanes_ns)
        self._process_ns, self._lanes_ns = process_ns, lanes_ns
        ratio = max(0, used_ns) / elapsed_ns
        self._overhead_ratio += _WEIGHT * (ratio - self._overhead_ratio)


def limit_ratio(config: ProbeConfig) -> float:
    """The share of one core that may be used. A simulated driver is slow by itself and slows nobody's job."""
    return config.cost_limit_ratio if config.simulated is None else 1.0


def lane_cost(lane: Lane, *, is_idle_gpu: bool) -> LaneCost:
    """What a lane's meter says, in the governor's terms."""
    groups = lane.plan.groups
    cost_ns = lane.meter.read_cost_ns
    fast = [group for group in groups if is_fast(group.name)]
    return LaneCost(
        lane=lane.plan.lane,
        fast_period_ns=max((group.period_ns for group in fast), default=0),
        fast_round_ns=sum(cost_ns(group.name) for group in fast),
        other_ratio=sum(cost_ns(group.name) / group.period_ns for group in groups if not is_fast(group.name)),
        has_gpm=any(group.collector == "gpm" for group in fast),
        is_idle_gpu=is_idle_gpu,
    )
