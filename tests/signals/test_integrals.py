# SPDX-License-Identifier: Apache-2.0
"""Engine seconds and PCIe bytes, exact where they can be known."""

from dataclasses import replace
from typing import Any

import pytest

from gpufeed.model.frame import AnySample, Frame, FrameTime, Reading
from gpufeed.model.gpu import GpmInterval, GpuIdentity, PcieBytes
from gpufeed.model.ids import GpuKey, GpuUuid, GroupName, LaneId
from gpufeed.model.state import GpuRecord, GpuTotals
from gpufeed.signals.integrals import GPM_REMEMBERED_NS, Integrals, fold
from gpufeed.signals.pcie import link_bytes_per_s, link_ceiling

S = 1_000_000_000
KEY = GpuKey(GpuUuid("GPU-0"))
RECORD = GpuRecord(
    uuid=KEY.uuid,
    index=0,
    lane=LaneId("gpu0"),
    identity=GpuIdentity(gpu=KEY, index=0, pcie_generation_max=1, pcie_width_max=1),  # 0.25 GB/s
    condition="ok",
)
RECORDS = {KEY.uuid: RECORD}


def told(*steps: tuple[int, AnySample], integrals: Integrals | None = None) -> Integrals:
    integrals = integrals or Integrals()
    for at_ns, sample in steps:
        reading = Reading(
            lane=LaneId("gpu0"),
            group=GroupName("gpm.fast"),
            collector="gpm",
            began_ns=at_ns,
            ended_ns=at_ns,
            period_ns=S,
            samples=(sample,),
        )
        frame = Frame(sequence=1, time=FrameTime(at_ns, at_ns, at_ns), readings=(reading,))
        integrals = fold(integrals, frame, RECORDS)
    return integrals


def gpm(began_ns: int, ended_ns: int, **values: Any) -> tuple[int, GpmInterval]:
    return ended_ns, GpmInterval(gpu=KEY, began_ns=began_ns, ended_ns=ended_ns, **values)


def raw(at_ns: int, receive: int | None, transmit: int | None = None) -> tuple[int, PcieBytes]:
    return at_ns, PcieBytes(gpu=KEY, receive_bytes=receive, transmit_bytes=transmit)


def test_engine_seconds_are_mean_times_length() -> None:
    steps = (
        gpm(0, S, graphics_ratio=1.0, sm_ratio=0.5, tensor_ratio=0.25),
        gpm(S, S + S // 2, graphics_ratio=0.5, sm_ratio=0.5, dram_ratio=1.0),
    )
    totals = told(*steps).totals[KEY]
    assert totals.engine_active_s == {"graphics": 1.25, "sm": 0.75, "tensor": 0.25, "dram": 0.5}


def test_pipes_and_bytes_integrate_too() -> None:
    at_ns, interval = gpm(0, 2 * S, pcie_receive_bytes_per_s=3e9, pcie_transmit_bytes_per_s=1e9)
    interval = GpmInterval(
        gpu=KEY,
        began_ns=0,
        ended_ns=2 * S,
        pcie_receive_bytes_per_s=3e9,
        pcie_transmit_bytes_per_s=1e9,
        pipes={"hmma": 0.5},
    )
    totals = told((at_ns, interval)).totals[KEY]
    assert totals.pipe_active_s == {"hmma": 1.0}
    assert (totals.pcie_receive_bytes, totals.pcie_transmit_bytes) == (6e9, 2e9)


def test_what_an_interval_before_covered_counts_once() -> None:
    steps = (gpm(0, S, sm_ratio=1.0), gpm(S // 2, 2 * S, sm_ratio=0.5), gpm(0, S, sm_ratio=1.0))
    assert told(*steps).totals[KEY].engine_active_s == {"sm": 1.5}


def test_an_interval_from_the_future_is_not_believed() -> None:
    _, interval = gpm(0, 5 * S, sm_ratio=1.0)
    assert told((S, interval)).totals == {}


@pytest.mark.parametrize("ratio", [-0.5, 1.5, float("nan")])
def test_a_ratio_out_of_range_is_not_counted(ratio: float) -> None:
    assert told(gpm(0, S, sm_ratio=ratio, pcie_receive_bytes_per_s=float("nan"))).totals[KEY] == GpuTotals()


def test_raw_counters_are_unwrapped() -> None:
    steps = (raw(0, 2**32 - 1000, 5), raw(S, 1000, 5), raw(2 * S, 3000, None))
    totals = told(*steps).totals[KEY]
    assert (totals.pcie_receive_bytes, totals.pcie_transmit_bytes) == (4000.0, 0.0)


def test_a_raw_interval_that_could_hold_two_wraps_is_not_known() -> None:
    assert told(raw(0, 0), raw(20 * S, 1000)).totals[KEY].pcie_receive_bytes is None  # 20 s × 0.25 GB/s > 2³²


def test_bytes_do_not_count_twice_where_gpm_gives_them() -> None:
    integrals = told(gpm(0, S, pcie_receive_bytes_per_s=100.0), raw(S, 0), raw(2 * S, 500))
    assert integrals.totals[KEY].pcie_receive_bytes == 100.0
    late_ns = GPM_REMEMBERED_NS + 2 * S
    later = told(raw(late_ns, 600), raw(late_ns + S, 700), integrals=integrals)
    assert later.totals[KEY].pcie_receive_bytes == 200.0  # 600 → 700; the half minute before might hold a wrap


def test_a_gpu_that_is_forgotten_takes_its_totals_along() -> None:
    integrals = told(gpm(0, S, sm_ratio=1.0))
    nothing = Frame(sequence=1, time=FrameTime(S, S, S))
    assert fold(integrals, nothing, RECORDS) is integrals
    assert fold(integrals, nothing, {}).totals == {}


def test_what_a_link_carries() -> None:
    assert link_bytes_per_s(5, 16) == pytest.approx(63e9, rel=0.01)
    assert link_bytes_per_s(None, 16) is None
    assert link_bytes_per_s(5, 0) is None
    assert link_ceiling(RECORD.identity) == 0.25e9
    assert link_ceiling(None) == pytest.approx(121e9, rel=0.01)
    unknown = replace(RECORD, identity=GpuIdentity(gpu=KEY, index=0))
    assert link_ceiling(unknown.identity) == link_ceiling(None)
