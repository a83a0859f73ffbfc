# SPDX-License-Identifier: Apache-2.0
"""Active time, split into what it is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.model.state import StateCause
from gpufeed.signals.activity import copied_between_gpus, is_spin, split_active
from gpufeed.signals.exposed import exposed_ratio
from gpufeed.signals.features import GpuFeatures
from gpufeed.signals.footprint import UNKNOWN, Footprint, Highest

COMPUTING = GpuFeatures(active=1.0, has_gpm=True, sm=0.9, tensor=0.5, dram=0.4, has_nvlink=True, has_peers=True)
COLLECTIVE = replace(COMPUTING, sm=0.15, tensor=0.0, dram=0.1)
SPIN = replace(COLLECTIVE, dram=0.0)
UTILIZED = GpuFeatures(active=1.0, power=0.8, has_peers=True)
PEAKED = Footprint(now=Highest(peak_fabric=0.7, peak_nvlink=0.6))


def split(of: GpuFeatures, *, is_company: bool = False) -> dict[str, float]:
    parts = split_active(of, is_company=is_company)
    assert sum(part.ratio for part in parts) == pytest.approx(of.active)
    return {".".join(part.cause): round(part.ratio, 6) for part in parts if part.ratio > 0}


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (COMPUTING, {"busy.tensor": 1.0}),
        (replace(COMPUTING, active=0.5, tensor=0.25), {"busy.tensor": 0.5}),
        (replace(COMPUTING, tensor=0.1, dram=0.5), {"busy.memory": 1.0}),
        (replace(COMPUTING, tensor=0.1, dram=0.1), {"busy.other": 1.0}),
        # bytes move, with room to spare
        (replace(COLLECTIVE, nvlink=0.4), {"communicating.nvlink": 1.0}),
        (replace(COLLECTIVE, fabric=0.4, nvlink=0.1), {"communicating.fabric": 1.0}),
        # a link is full, degraded, congested
        (replace(COLLECTIVE, nvlink=0.85), {"starved.nvlink": 1.0}),
        (replace(COLLECTIVE, nvlink=0.4, is_nvlink_degraded=True), {"starved.nvlink": 1.0}),
        (replace(COLLECTIVE, fabric=0.85, nvlink=0.9), {"starved.fabric": 1.0}),
        (replace(COLLECTIVE, fabric=0.4, is_fabric_degraded=True), {"starved.fabric": 1.0}),
        (replace(COLLECTIVE, fabric=0.4, is_fabric_congested=True), {"starved.fabric": 1.0}),
        # a mixture: half the distance between the two levels is half the time
        (
            replace(COMPUTING, sm=0.475, tensor=0.25, dram=0.2, nvlink=0.2),
            {"communicating.nvlink": 0.5, "busy.tensor": 0.5},
        ),
        # all of the traffic in the exposed half fills the link there
        (replace(COMPUTING, sm=0.475, tensor=0.25, dram=0.2, nvlink=0.45), {"starved.nvlink": 0.5, "busy.tensor": 0.5}),
        # nothing moves
        (SPIN, {"starved.peer": 1.0}),
        (replace(SPIN, has_peers=False), {"busy.other": 1.0}),
        # bytes that need a tenth of the time at a fifth of the rate, and a quarter more: the rest is waiting
        (replace(COLLECTIVE, nvlink=0.02), {"communicating.nvlink": 0.125, "starved.peer": 0.875}),
        # a mixture without traffic, while a peer computes on
        (replace(COMPUTING, sm=0.475, tensor=0.25, dram=0.2, peer_sm=0.9), {"starved.peer": 0.5, "busy.tensor": 0.5}),
        (replace(COMPUTING, sm=0.475, tensor=0.25, dram=0.2, peer_sm=0.5), {"busy.tensor": 1.0}),
        (replace(COMPUTING, active=0.9, sm=0.45, tensor=0.2, dram=0.2, peer_sm=0.9), {"busy.tensor": 0.9}),
        # a GPU without NVLink talks over PCIe, both ways at once
        (
            replace(COLLECTIVE, has_nvlink=False, pcie_receive=0.3, pcie_transmit=0.3),
            {"communicating.pcie_p2p": 1.0},
        ),
        # pipes that are not read tell nothing
        (replace(COLLECTIVE, sm=None, nvlink=0.4), {"busy.other": 1.0}),
    ],
)
def test_with_gpm(of: GpuFeatures, expected: dict[str, float]) -> None:
    assert split(of) == pytest.approx(expected, abs=1e-3)


def seen(sm: float, tensor: float, *, is_even: bool = False, hidden_fabric: float = 0.0) -> Footprint:
    """A job whose highest levels these are, over a minute; even: of all its intervals."""
    mean = tensor if is_even else tensor / 2
    now = Highest(sm=sm, tensor=tensor, tensor_sum_s=60 * mean, seconds=60.0)
    return Footprint(now=now, hidden_fabric=hidden_fabric)


def test_a_job_that_is_seen_to_compute_lower_is_held_to_its_own_level() -> None:
    attention = replace(COMPUTING, sm=0.5, tensor=0.25, dram=0.2, nvlink=0.05)  # looks like a mixture …
    assert exposed_ratio(attention) == pytest.approx((0.8 - 0.5) / 0.65)
    usual = replace(attention, footprint=seen(0.5, 0.15))  # … and is how this job computes
    assert exposed_ratio(usual) == 0.0
    assert exposed_ratio(replace(usual, sm=0.3, tensor=0.1)) == pytest.approx((0.5 - 0.3) / 0.35)


def test_matrix_products_fill_the_device_however_even_a_mixture_is() -> None:
    # steps of milliseconds: every interval is the same mixture, and none shows the computing alone
    even = replace(COMPUTING, sm=0.78, tensor=0.45, dram=0.4, nvlink=0.16, footprint=seen(0.78, 0.45, is_even=True))
    assert exposed_ratio(even) == pytest.approx((0.88 - 0.78) / (0.88 - 0.15))
    # the bytes at a third of the link's rate would not take so long: the rest of the distance is something else
    assert exposed_ratio(replace(even, nvlink=0.025)) == pytest.approx(0.025 / 0.35)
    assert exposed_ratio(replace(even, nvlink=0.025, is_nvlink_degraded=True)) == pytest.approx(0.1 / 0.73)


def test_bytes_that_move_slower_than_usual_may_wait_for_a_rank_or_a_link() -> None:
    usual = seen(0.9, 0.5)
    usual = replace(usual, now=replace(usual.now, moving_nvlink=0.6))
    # half of the time in a collective, with the bytes of a fifth: a quarter more than those need is theirs
    half = replace(COMPUTING, sm=0.525, tensor=0.25, dram=0.2, nvlink=0.12, footprint=usual)
    assert split(half) == pytest.approx({"communicating.nvlink": 0.25, "starved.unknown": 0.25, "busy.tensor": 0.5})
    still = replace(half, nvlink=0.0, peer_sm=0.9)
    assert split(still) == pytest.approx({"starved.peer": 0.5, "busy.tensor": 0.5})


def test_a_link_is_full_by_the_exchanges_of_the_last_seconds() -> None:
    job = replace(seen(0.9, 0.5), nvlink_s=8.0, exposed_s=10.0)
    half = replace(COMPUTING, sm=0.525, tensor=0.25, dram=0.2, nvlink=0.3, footprint=job)  # 0.6 in this interval
    assert split(half) == pytest.approx({"starved.nvlink": 0.5, "busy.tensor": 0.5})
    assert "communicating.nvlink" in split(replace(half, footprint=replace(job, nvlink_s=6.0)))


def test_what_runs_behind_the_computing_does_not_fill_the_exposed_part() -> None:
    job = seen(0.9, 0.5, hidden_fabric=0.4)
    half = replace(COMPUTING, sm=0.525, tensor=0.25, dram=0.2, fabric=0.5, footprint=job)  # (0.5 - 0.2) / 0.5
    assert split(half) == pytest.approx({"communicating.fabric": 0.5, "busy.tensor": 0.5})
    assert "starved.fabric" in split(replace(half, footprint=seen(0.9, 0.5)))


def test_a_rank_that_polls_beside_its_memory_and_power_waits() -> None:
    job = replace(UNKNOWN, has_exchanged=True, now=Highest(memory=0.5, power=0.8))
    waiting = replace(UTILIZED, power=0.465, memory_utilization=0.25, footprint=job)
    assert split(waiting) == pytest.approx({"starved.peer": 0.5, "busy.other": 0.5})
    assert split(replace(waiting, memory_utilization=0.4)) == {"busy.other": 1.0}  # too little to be sure of
    for without in (
        replace(waiting, has_peers=False),
        replace(waiting, memory_utilization=None),
        replace(waiting, footprint=replace(job, has_exchanged=False)),
        replace(waiting, active=0.92),
    ):
        assert "starved.peer" not in split(without)


def test_copy_engines_exchange_without_a_kernel() -> None:
    half = replace(COMPUTING, active=0.5, sm=0.45, tensor=0.25, nvlink=0.3)
    assert copied_between_gpus(half) == StateCause("communicating", "nvlink")
    assert copied_between_gpus(replace(half, nvlink=0.4)) == StateCause("starved", "nvlink")
    assert copied_between_gpus(replace(half, is_nvlink_degraded=True)) == StateCause("starved", "nvlink")
    assert copied_between_gpus(replace(half, nvlink=0.05)) is None  # a tenth of the link: no exchange
    assert copied_between_gpus(replace(half, nvlink=None)) is None
    assert copied_between_gpus(replace(half, has_peers=False)) is None
    assert copied_between_gpus(replace(half, active=0.95)) is None


def test_memory_bound_work_is_no_collective_until_its_level_is_known() -> None:
    assert exposed_ratio(replace(COLLECTIVE, dram=0.6, nvlink=0.3)) == 0.0


@pytest.mark.parametrize(
    ("of", "is_company", "expected"),
    [
        (UTILIZED, False, {"busy.other": 1.0}),
        (replace(UTILIZED, power=None), False, {"busy.other": 1.0}),
        (replace(UTILIZED, active=0.5, power=0.1, nvlink=0.4), False, {"busy.other": 0.5}),
        (replace(UTILIZED, power=0.4), False, {"busy.other": 1.0}),
        (replace(UTILIZED, power=0.3, nvlink=0.4), False, {"communicating.nvlink": 1.0}),
        # full lately for a whole interval, or not
        (replace(UTILIZED, power=0.3, fabric=0.5, footprint=PEAKED), False, {"starved.fabric": 1.0}),
        (replace(UTILIZED, power=0.3, nvlink=0.5, footprint=PEAKED), False, {"communicating.nvlink": 1.0}),
        (replace(UTILIZED, power=0.3, nvlink=0.4, memory_utilization=0.6), False, {"busy.other": 1.0}),
        # halfway between idle power of an exchange and that of computing, with bytes that can take so long
        (replace(UTILIZED, power=0.625, nvlink=0.4), False, {"communicating.nvlink": 0.5, "busy.other": 0.5}),
        (replace(UTILIZED, power=0.33, nvlink=0.07), False, {"communicating.nvlink": 0.2, "busy.other": 0.8}),
        # a board at its power cap computes, however low its power is
        (replace(UTILIZED, power=0.33, nvlink=0.4, power_cap=1.0), False, {"busy.other": 1.0}),
        (replace(UTILIZED, power=0.1), True, {"starved.peer": 1.0}),
        (replace(UTILIZED, power=0.1), False, {"busy.other": 1.0}),
        (replace(UTILIZED, power=0.1, memory_utilization=0.3), True, {"busy.other": 1.0}),
    ],
)
def test_without_gpm_power_stands_in(of: GpuFeatures, is_company: bool, expected: dict[str, float]) -> None:
    assert split(of, is_company=is_company) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (
            replace(COMPUTING, thermal=0.6, clock_lowest=0.5),
            {"throttled.thermal": 0.6, "busy.tensor": 0.4},
        ),
        (replace(COMPUTING, thermal=0.6), {"throttled.thermal": 0.6, "busy.tensor": 0.4}),  # the clock is not read
        (replace(COMPUTING, thermal=0.6, clock_lowest=0.95), {"busy.tensor": 1.0}),  # slowed down, and hardly slower
        (replace(COMPUTING, thermal=0.05, clock_lowest=0.5), {"busy.tensor": 1.0}),
        (replace(COMPUTING, power_brake=1.0, clock_lowest=0.3), {"throttled.power_brake": 1.0}),
        (replace(COMPUTING, power_cap=1.0, clock_lowest=0.5, clock_mean=0.9), {"busy.tensor": 1.0}),
        (replace(COMPUTING, power_cap=1.0, clock_lowest=0.5, clock_mean=0.6), {"throttled.power_cap": 1.0}),
        (replace(COMPUTING, power_cap=1.0), {"busy.tensor": 1.0}),
    ],
)
def test_only_what_is_far_below_its_clock_is_throttled(of: GpuFeatures, expected: dict[str, float]) -> None:
    assert split(of) == pytest.approx(expected)


def test_polling_is_told_by_what_does_not_move() -> None:
    assert is_spin(SPIN)
    assert not is_spin(COMPUTING)
    assert not is_spin(replace(SPIN, active=0.0))
    assert is_spin(replace(UTILIZED, power=0.1))
    assert not is_spin(replace(UTILIZED, power=None))


RATIO = st.none() | st.floats(0, 1)


@given(
    st.builds(
        GpuFeatures,
        active=st.floats(0, 1),
        has_gpm=st.booleans(),
        sm=RATIO,
        tensor=RATIO,
        dram=RATIO,
        power=RATIO,
        nvlink=RATIO,
        fabric=RATIO,
        pcie_receive=RATIO,
        pcie_transmit=RATIO,
        thermal=st.floats(0, 1),
        clock_lowest=RATIO,
        has_peers=st.booleans(),
        peer_sm=RATIO,
        power_cap=st.floats(0, 1),
        memory_utilization=RATIO,
        footprint=st.builds(
            Footprint,
            now=st.builds(Highest, sm=st.floats(0, 1), tensor=st.floats(0, 1), memory=st.floats(0, 1)),
            hidden_nvlink=st.floats(0, 1),
            nvlink_s=st.floats(0, 100),
            fabric_s=st.floats(0, 100),
            exposed_s=st.floats(0, 100),
            has_exchanged=st.booleans(),
        ),
    ),
    st.booleans(),
)
def test_parts_are_never_negative_and_add_up(of: GpuFeatures, is_company: bool) -> None:
    parts = split_active(of, is_company=is_company)
    assert all(part.ratio >= -1e-12 for part in parts)
    assert sum(part.ratio for part in parts) == pytest.approx(of.active, abs=1e-9)


MOVING = GpuFeatures(
    active=1.0, has_gpm=True, sm=0.15, tensor=0.0, dram=0.1, fabric=0.3, has_nvlink=True, has_peers=True
)


def entered(own_s: float) -> Footprint:
    """A job whose fabric carries half its rate while nothing but an exchange goes on."""
    return Footprint(
        now=Highest(sm=0.9, tensor=0.5, moving_fabric=0.5, seconds=60.0, tensor_sum_s=10.0), entered_s=own_s
    )


def test_a_rank_that_enters_exchanges_late_makes_the_others_wait_and_waits_for_nobody() -> None:
    # exposed throughout; the peer spends half as long in exchanges: half of this one's time was waiting for it
    victim = replace(MOVING, footprint=entered(10.0), peer_entered_s=5.0)
    assert split(victim) == pytest.approx({"communicating.fabric": 0.5, "starved.peer": 0.5}, abs=1e-5)
    guilty = replace(MOVING, footprint=entered(5.0), peer_entered_s=10.0)
    assert "starved.peer" not in split(guilty)


def test_bytes_take_the_time_they_need_however_late_a_rank_is() -> None:
    victim = replace(MOVING, fabric=0.63, footprint=entered(10.0), peer_entered_s=1.0)
    assert split(victim)["communicating.fabric"] == pytest.approx(0.63 / 0.7)


@pytest.mark.parametrize("peer_s", [None, 9.0, 12.0])
def test_where_ranks_enter_together_the_bytes_decide(peer_s: float | None) -> None:
    alike = replace(MOVING, footprint=entered(10.0), peer_entered_s=peer_s)
    assert split(alike)["communicating.fabric"] == pytest.approx(1.25 * 0.3 / 0.5)


def test_of_little_exchange_nothing_is_told_of_ranks() -> None:
    young = replace(MOVING, footprint=entered(0.5), peer_entered_s=0.1)
    assert split(young)["communicating.fabric"] == pytest.approx(1.25 * 0.3 / 0.5)
