# SPDX-License-Identifier: Apache-2.0
"""The cost governor as arithmetic: who is slowed down, and by how much."""

from hypothesis import given
from hypothesis import strategies as st

from gpufeed.model.ids import LaneId
from gpufeed.probe.governor import LEAST_SHARE, LONGEST_PERIOD_NS, LaneCost, fast_periods
from gpufeed.units import NS_PER_MS, NS_PER_S

FAST_NS = 500 * NS_PER_MS


def lane(name: str, round_ms: float, **more: bool | float) -> LaneCost:
    return LaneCost(lane=LaneId(name), fast_period_ns=FAST_NS, fast_round_ns=round_ms * NS_PER_MS, **more)  # type: ignore[arg-type] # by name


def test_within_the_limit_periods_are_as_configured() -> None:
    # 8 lanes of 1 ms each 500 ms use 1.6 % of a core
    costs = [lane(f"gpu{index}", 1.0) for index in range(8)]
    assert set(fast_periods(costs, 0.01, 0.03).values()) == {FAST_NS}


def test_the_dearest_lane_alone_is_lengthened_to_fit() -> None:
    # cheap: 0.4 %; left of 3 %: 2.6 %; 26 ms at 2.6 % is 1 s
    costs = [lane("cheap", 2.0), lane("dear", 26.0)]
    assert fast_periods(costs, 0.0, 0.03) == {"cheap": FAST_NS, "dear": NS_PER_S}


def test_equally_dear_lanes_share_what_there_is() -> None:
    # 4 lanes of 10 ms would use 8 %; 0.5 % each is one round in 2 s
    costs = [lane(f"gpu{index}", 10.0) for index in range(4)]
    assert set(fast_periods(costs, 0.01, 0.03).values()) == {2 * NS_PER_S}


def test_slow_groups_and_overhead_come_off_the_limit() -> None:
    # 1 % overhead and 1 % slow reads leave 1 %: 10 ms in 1 s
    assert fast_periods([lane("gpu0", 10.0, other_ratio=0.01)], 0.01, 0.03) == {"gpu0": NS_PER_S}


def test_overhead_over_the_limit_does_not_starve_fast_reads() -> None:
    # a quarter of 3 % stays: 7.5 ms each second
    assert fast_periods([lane("gpu0", 7.5)], 0.5, 0.03) == {"gpu0": NS_PER_S}


def test_no_period_is_longer_than_the_longest() -> None:
    assert fast_periods([lane("gpu0", 400.0)], 0.0, 0.001) == {"gpu0": LONGEST_PERIOD_NS}


def test_a_limit_of_nothing_gives_the_longest_period() -> None:
    assert fast_periods([lane("gpu0", 1.0)], 0.0, 0.0) == {"gpu0": LONGEST_PERIOD_NS}


def test_idle_gpus_are_read_once_a_second() -> None:
    costs = [lane("gpu0", 0.1, is_idle_gpu=True), lane("gpu1", 0.1)]
    assert fast_periods(costs, 0.0, 0.03) == {"gpu0": NS_PER_S, "gpu1": FAST_NS}


def test_gpm_samples_keep_their_spacing_whatever_is_configured() -> None:
    quick = LaneCost(lane=LaneId("gpu0"), fast_period_ns=50 * NS_PER_MS, fast_round_ns=0.0, has_gpm=True)
    assert fast_periods([quick], 0.0, 0.03) == {"gpu0": 110 * NS_PER_MS}


def test_lanes_without_fast_groups_are_not_governed() -> None:
    slow = LaneCost(lane=LaneId("pci"), fast_period_ns=0, fast_round_ns=0.0, other_ratio=0.5)
    assert fast_periods([slow], 0.0, 0.03) == {}


@given(
    st.lists(st.floats(0.0, 50.0), min_size=1, max_size=20),
    st.floats(0.0, 0.1),
    st.floats(0.005, 0.2),
)
def test_the_sum_fits_unless_a_lane_is_at_its_longest(rounds_ms: list[float], overhead: float, limit: float) -> None:
    costs = [lane(f"l{index}", round_ms) for index, round_ms in enumerate(rounds_ms)]
    periods = fast_periods(costs, overhead, limit)
    used = sum(cost.fast_round_ns / periods[cost.lane] for cost in costs)
    budget = max(limit - overhead, LEAST_SHARE * limit)
    assert used <= budget * (1 + 1e-5) or LONGEST_PERIOD_NS in periods.values()
    assert all(FAST_NS <= period <= LONGEST_PERIOD_NS for period in periods.values())
