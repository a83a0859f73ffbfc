# SPDX-License-Identifier: Apache-2.0
"""What lanes of GPUs see, held against the same node lived again without anybody looking."""

from itertools import pairwise

import pytest

from gpufeed.model.frame import XidEvent
from gpufeed.model.gpu import (
    GpmInterval,
    GpuCondition,
    GpuFast,
    GpuIdentity,
    GpuProcesses,
    GpuSlow,
    NvlinkTotals,
    PcieBytes,
)
from gpufeed.simulate.pipeline.track import POSITION
from gpufeed.simulate.sensors.scene import BOOT_NS
from simulate.sensors.looking import SECOND_NS, S, Seen, Twin, look, only

GPM_SUMS = {
    "graphics_ratio": "graphics_s", "sm_ratio": "sm_s", "occupancy_ratio": "occupancy_s",
    "tensor_ratio": "tensor_s", "dram_ratio": "dram_s",
    "pcie_receive_bytes_per_s": "pcie_receive_bytes", "nvlink_transmit_bytes_per_s": "nvlink_transmit_bytes",
}  # fmt: skip


def of_first(seen: Seen, kind: type[S]) -> list[tuple[int, S]]:
    first = seen.face.scene.keys[0]
    return [(age, sample) for age, sample in seen.all_of(kind) if sample.subject == first]


def mean_between(twin: Twin, name: str, began_ns: int, ended_ns: int) -> float:
    before = twin.total(began_ns, name)
    return (twin.total(ended_ns, name) - before) * SECOND_NS / (ended_ns - began_ns)


@pytest.mark.parametrize(("metric", "total"), GPM_SUMS.items())
def test_gpm_without_noise_is_the_exact_mean(metric: str, total: str) -> None:
    seen = look("exposed_exchange", only(), 20)
    twin = Twin(seen)
    intervals = of_first(seen, GpmInterval)
    assert len(intervals) >= 38
    for _, sample in intervals:
        true = mean_between(twin, total, sample.began_ns - BOOT_NS, sample.ended_ns - BOOT_NS)
        assert getattr(sample, metric) == pytest.approx(true, rel=1e-6, abs=1e-9)


def test_gpm_is_off_by_no_more_than_its_error() -> None:
    exact, seen = look("memory_bound", only(), 30), look("memory_bound", only(gpm_error=0.01), 30)
    for (_, true), (_, sample) in zip(of_first(exact, GpmInterval), of_first(seen, GpmInterval), strict=True):
        assert sample.dram_ratio == pytest.approx(true.dram_ratio, rel=0.01001)
    dram = {sample.dram_ratio for _, sample in of_first(seen, GpmInterval)}
    assert len(dram) > 20


def test_gpm_intervals_are_told_late_and_still_follow_one_another() -> None:
    seen = look("memory_bound", only(gpm_delay_s=0.02), 30)
    found = [sample for _, sample in of_first(seen, GpmInterval)]
    for before, after in pairwise(found):
        assert before.ended_ns == after.began_ns
    late_ns = [(sample.ended_ns - BOOT_NS) % (SECOND_NS // 2) for sample in found]
    assert 0 <= min(late_ns) < max(late_ns) <= 20_000_000


def test_gpm_fails_and_refuses_as_often_as_it_should() -> None:
    seen = look("memory_bound", only(gpm_failures=0.1, gpm_missing=0.1), 200)
    found = seen.list_of(GpmInterval)
    reads = 2 * 400
    # a failed read costs its interval and the next, which has no sample before it
    assert len(found) / reads == pytest.approx(0.81, abs=0.06)
    missing = sum(sample.sm_ratio is None for sample in found) / len(found)
    assert missing == pytest.approx(0.1, abs=0.04)


@pytest.mark.parametrize("window_s", [1 / 6, 0.5, 1.0])
def test_utilization_is_the_mean_of_a_window_that_has_just_ended_in_whole_percent(window_s: float) -> None:
    seen = look("storage_50", only(utilization_windows_s=(window_s,), utilization_in_percent=True), 15)
    window_ns, step_ns = int(window_s * SECOND_NS), 5_000_000
    twin = Twin(seen)
    ages = range(0, 15 * SECOND_NS, step_ns)
    totals = {age: twin.total(age, "graphics_s") for age in ages}
    for age_ns, sample in of_first(seen, GpuFast):
        assert sample.utilization_ratio == round(sample.utilization_ratio or 0.0, 2)
        ends = [at for at in ages if max(window_ns, age_ns - window_ns) <= at <= age_ns]
        means = [(totals[at] - totals[(at - window_ns) // step_ns * step_ns]) / window_s for at in ends]
        if means and age_ns > 2 * window_ns:
            assert min(means) - 0.03 <= (sample.utilization_ratio or 0.0) <= max(means) + 0.03


def test_utilization_without_noise_is_the_exact_mean_since_the_last_read() -> None:
    seen = look("storage_50", only(), 15)
    twin = Twin(seen)
    for (before_ns, _), (age_ns, sample) in pairwise(of_first(seen, GpuFast)):
        assert sample.utilization_ratio == pytest.approx(mean_between(twin, "graphics_s", before_ns, age_ns))


def test_power_is_off_by_gain_and_offset_and_comes_in_tenths_of_watts() -> None:
    sensing = only(power_gain=0.05, power_offset_w=2.0, power_quantum_w=0.1)
    seen = look("held_idle", sensing, 10, gpus=8)
    true_w = seen.node.gpus[0].levels.power_w
    shown = {sample.power_w for age, sample in seen.all_of(GpuFast) if age > SECOND_NS}
    assert len(shown) == 8  # each board has its own error, and keeps it
    for power_w in shown:
        assert power_w == pytest.approx(true_w, rel=0.05, abs=2.06)
        assert power_w == pytest.approx(round(10 * (power_w or 0.0)) / 10)


def test_power_of_a_hopper_is_a_mean_over_a_second_that_sees_a_quarter_of_it() -> None:
    exact, seen = look("storage_50", only(), 60), look("storage_50", only(power_is_sliced=True), 60)
    twin = Twin(exact)
    for age_ns, sample in of_first(exact, GpuFast):
        if age_ns >= SECOND_NS:
            true_w = twin.at(age_ns).gpus[0].window(age_ns - SECOND_NS, age_ns)[POSITION["energy_j"]]
            assert sample.power_w == pytest.approx(true_w)
    shown = [sample.power_w or 0.0 for _, sample in of_first(seen, GpuFast)]
    true = [sample.power_w or 0.0 for _, sample in of_first(exact, GpuFast)]
    assert sum(shown) / len(shown) == pytest.approx(sum(true) / len(true), rel=0.02)
    off = [abs(a - b) for a, b in zip(shown[4:], true[4:], strict=True)]
    assert 1.0 < sum(off) / len(off) < 80.0  # it misses what happens between its looks


def test_power_of_an_ampere_is_of_the_moment() -> None:
    seen = look("storage_50", only(), 30, model="a100")
    twin = Twin(seen)
    for age_ns, sample in of_first(seen, GpuFast):
        assert sample.power_w == pytest.approx(twin.at(age_ns).gpus[0].levels.power_w)


@pytest.mark.parametrize("is_sliced", [False, True])
def test_energy_never_falls_and_is_right_in_the_long_run(is_sliced: bool) -> None:
    seen = look("storage_50", only(power_is_sliced=is_sliced), 60)
    found = [(age, sample.energy_j or 0.0) for age, sample in of_first(seen, GpuFast)]
    assert all(before <= after for (_, before), (_, after) in pairwise(found))
    age_ns, energy_j = found[-1]
    assert energy_j == pytest.approx(Twin(seen).total(age_ns, "energy_j"), rel=0.02 if is_sliced else 1e-5)


def test_clocks_and_reasons_are_those_of_the_node() -> None:
    seen = look("thermal_slowdown", only(), 80)
    twin = Twin(seen)
    for age_ns, sample in of_first(seen, GpuFast):
        gpu = twin.at(age_ns).gpus[0]
        assert sample.sm_clock_hz == gpu.levels.sm_clock_mhz * 1e6
        assert sample.clock_events == gpu.levels.clock_events
        heat_s = gpu.integrals[POSITION["hw_thermal_s"]] + gpu.integrals[POSITION["sw_thermal_s"]]
        assert (sample.clock_event_ns or {})["thermal_policy"] == int(heat_s * 1e9)


def test_links_and_pcie_count_exactly_in_their_units() -> None:
    seen = look("exposed_exchange", only(), 20)
    twin = Twin(seen)
    for age_ns, sample in of_first(seen, NvlinkTotals):
        assert sample.receive_bytes == int(twin.total(age_ns, "nvlink_receive_bytes")) // 1024 * 1024
        assert (sample.links, sample.links_up) == (18, 18)
    twin = Twin(seen)
    wrapped = 0
    for age_ns, counted in of_first(seen, PcieBytes):
        true = int(twin.total(age_ns, "pcie_receive_bytes"))
        wrapped += true >= 1 << 32
        assert counted.receive_bytes == true % (1 << 32)
    assert wrapped


def test_a_link_that_is_down_and_a_narrow_slot_show() -> None:
    down = look("nvlink_one_down", only(), 65, gpus=4)
    assert {sample.links_up for sample in down.list_of(NvlinkTotals)} == {17, 18}
    narrow = look("pcie_x8", only(), 15)
    assert {sample.pcie_width for sample in narrow.list_of(GpuSlow)} == {8}


def test_identity_and_holders_are_said() -> None:
    seen = look("half_empty", only(), 5, gpus=2)
    names = {sample.index: sample for sample in seen.list_of(GpuIdentity)}
    assert names[0].name == "NVIDIA H100 80GB HBM3"
    assert names[0].has_gpm
    held = {sample.gpu.uuid: len(sample.processes) for sample in seen.list_of(GpuProcesses)}
    assert list(held.values()) == [1, 0]


def test_a_gpu_that_is_lost_says_so_and_nothing_else() -> None:
    seen = look("lost_in_training", only(), 210, gpus=4)
    last = {sample.index: sample.condition for sample in seen.list_of(GpuCondition)}
    assert last == {0: "ok", 1: "ok", 2: "ok", 3: "lost"}
    lost = seen.node.gpus[3].board.uuid
    assert max(age for age, sample in seen.all_of(GpuFast) if sample.gpu.uuid == lost) < 201 * SECOND_NS
    assert max(age for age, sample in seen.all_of(NvlinkTotals) if sample.gpu.uuid == lost) < 201 * SECOND_NS


def test_an_xid_is_an_event_of_one_frame() -> None:
    seen = look("xid_in_training", only(), 210, gpus=4)
    events = [event for frame in seen.frames for event in frame.events if isinstance(event, XidEvent)]
    assert [(event.xid, event.uuid) for event in events] == [(95, seen.node.gpus[3].board.uuid)]
    assert events[0].at_ns - BOOT_NS == pytest.approx(200 * SECOND_NS, abs=SECOND_NS)
