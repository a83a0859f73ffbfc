# SPDX-License-Identifier: Apache-2.0
"""The same source on the hardware of this machine: types, units and ranges, as nobody else can check them.

Runs only with --real-node.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufeed.clock import SystemClock
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import Frame
from gpufeed.model.gpu import GpmInterval, GpuCondition, GpuFast, GpuIdentity, GpuSlow, NvlinkTotals
from gpufeed.model.gpu_errors import GpuErrors
from gpufeed.model.nvlink import NvlinkLinks
from gpufeed.probe.inline import InlineProbe
from gpufeed.sources.nvml.source import NVML

pytestmark = pytest.mark.real_node

TICKS = 4
FAST_S = 0.5


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Frame]]:
    """Two seconds of the real node: the hardware has no clock of ours to step."""
    runtime: Path = tmp_path_factory.mktemp("runtime")
    probe = InlineProbe(ProbeConfig(runtime_dir=str(runtime)), (NVML,), SystemClock())
    collected = []
    for _ in range(TICKS):
        collected.append(probe.tick())
        time.sleep(FAST_S)
    yield collected
    probe.close()


def samples(frames: list[Frame]) -> Iterator[object]:
    for frame in frames:
        for reading in frame.readings:
            yield from reading.samples


def test_every_gpu_answers(frames: list[Frame]) -> None:
    conditions = [sample for sample in samples(frames) if isinstance(sample, GpuCondition)]

    assert conditions
    assert {condition.condition for condition in conditions} == {"ok"}


def test_readings_are_in_base_units(frames: list[Frame]) -> None:
    for sample in samples(frames):
        if isinstance(sample, GpuFast):
            assert sample.utilization_ratio is None or 0 <= sample.utilization_ratio <= 1
            assert sample.power_w is None or 1 < sample.power_w < 3000
            assert sample.temperature_c is None or 5 < sample.temperature_c < 110
            assert sample.sm_clock_hz is None or 1e8 < sample.sm_clock_hz < 4e9
            assert sample.memory_total_bytes is None or 1e9 < sample.memory_total_bytes < 1e12


def test_energy_and_link_bytes_never_fall(frames: list[Frame]) -> None:
    energy: dict[str, float] = {}
    received: dict[str, int] = {}
    for sample in samples(frames):
        if isinstance(sample, GpuFast) and sample.energy_j is not None:
            assert sample.energy_j >= energy.get(sample.gpu.uuid, 0.0)
            energy[sample.gpu.uuid] = sample.energy_j
        if isinstance(sample, NvlinkTotals) and sample.receive_bytes is not None:
            assert sample.receive_bytes >= received.get(sample.gpu.uuid, 0)
            received[sample.gpu.uuid] = sample.receive_bytes


def test_gpm_ratios_are_ratios_where_there_is_gpm(frames: list[Frame]) -> None:
    has_gpm = {sample.gpu.uuid for sample in samples(frames) if isinstance(sample, GpuIdentity) and sample.has_gpm}
    measured = {
        sample.gpu.uuid for sample in samples(frames) if isinstance(sample, GpmInterval) and sample.sm_ratio is not None
    }

    assert measured == has_gpm


def test_identities_are_complete_enough_to_join_with(frames: list[Frame]) -> None:
    for sample in samples(frames):
        if isinstance(sample, GpuIdentity):
            assert sample.gpu.uuid.startswith("GPU-")
            assert sample.pci_bus_id is not None
            assert sample.name


def test_slow_and_rare_groups_fail_nowhere_and_count_nothing_absurd(frames: list[Frame]) -> None:
    failures = [failure for frame in frames for failure in frame.failures if failure.group != "nvml.fast"]
    kinds = {type(sample) for sample in samples(frames)}

    assert failures == []
    assert GpuErrors in kinds
    for sample in samples(frames):
        if isinstance(sample, GpuSlow):
            assert sample.temperature_margin_c is None or -50 < sample.temperature_margin_c < 120
            assert sample.fabric_state in {None, 1, 2, 3}
        if isinstance(sample, NvlinkLinks):
            for link in sample.links:
                assert link.speed_bytes_per_s is None or 1e9 < link.speed_bytes_per_s < 1e12 or not link.is_up
                assert all(0 <= ratio < 1 for ratio in (link.bit_error_ratios or {}).values())
