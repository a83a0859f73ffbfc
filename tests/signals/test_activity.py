# SPDX-License-Identifier: Apache-2.0
"""Active time, split into what it is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.signals.activity import exposed_ratio, is_spin, split_active
from gpufeed.signals.features import GpuFeatures

COMPUTING = GpuFeatures(active=1.0, has_gpm=True, sm=0.9, tensor=0.5, dram=0.4, has_nvlink=True, has_peers=True)
COLLECTIVE = replace(COMPUTING, sm=0.15, tensor=0.0, dram=0.1)
SPIN = replace(COLLECTIVE, dram=0.0)
UTILIZED = GpuFeatures(active=1.0, power=0.8, has_peers=True)


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
        # bytes move a twentieth of the time only: the rest is waiting
        (replace(COLLECTIVE, nvlink=0.02), {"communicating.nvlink": 0.1, "starved.peer": 0.9}),
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


def test_what_has_been_learned_of_a_job_moves_its_levels() -> None:
    attention = replace(COMPUTING, sm=0.5, tensor=0.25, dram=0.2, nvlink=0.05)  # looks like a mixture …
    assert exposed_ratio(attention) == pytest.approx((0.8 - 0.5) / 0.65)
    usual = replace(attention, sm_busy_usual=0.5, tensor_busy_usual=0.25)  # … and is how this job computes
    assert exposed_ratio(usual) == 0.0
    lower = replace(usual, sm=0.3, tensor=0.1, dram=0.6)
    assert exposed_ratio(lower) == pytest.approx((0.5 - 0.3) / 0.35)


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
        (replace(UTILIZED, power=0.3, fabric=0.9), False, {"starved.fabric": 1.0}),
        (replace(UTILIZED, power=0.3, nvlink=0.4, memory_utilization=0.5), False, {"busy.other": 1.0}),
        (replace(UTILIZED, power=0.1), True, {"starved.peer": 1.0}),
        (replace(UTILIZED, power=0.1), False, {"busy.other": 1.0}),
        (replace(UTILIZED, power=0.1, memory_utilization=0.3), True, {"busy.other": 1.0}),
    ],
)
def test_without_gpm_power_stands_in(of: GpuFeatures, is_company: bool, expected: dict[str, float]) -> None:
    assert split(of, is_company=is_company) == expected


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
        (replace(COMPUTING, power_cap=1.0, clock_lowest=0.5, clock_highest=0.9), {"busy.tensor": 1.0}),
        (replace(COMPUTING, power_cap=1.0, clock_lowest=0.5, clock_highest=0.6), {"throttled.power_cap": 1.0}),
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
        sm_busy_usual=RATIO,
        tensor_busy_usual=RATIO,
    ),
    st.booleans(),
)
def test_parts_are_never_negative_and_add_up(of: GpuFeatures, is_company: bool) -> None:
    parts = split_active(of, is_company=is_company)
    assert all(part.ratio >= -1e-12 for part in parts)
    assert sum(part.ratio for part in parts) == pytest.approx(of.active, abs=1e-9)
