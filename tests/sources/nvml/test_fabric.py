# SPDX-License-Identifier: Apache-2.0
"""The fabric of NVSwitch systems: its state, and the health mask decoded field by field."""

from pathlib import Path

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import SourceError
from gpufeed.model.gpu import GpuSlow
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.sources.nvml.fabric import TROUBLES, troubles_of
from gpufeed.sources.nvml.slow import SlowReadings
from nvml_bench import Bench, enter, group, words

V = "nvmlDeviceGetGpuFabricInfoV"
GPU = GpuKey(GpuUuid("GPU-x"))
BY_MASK = {
    "degraded_bandwidth", "route_recovery", "route_unhealthy", "access_timeout_recovery", "incorrect_configuration",
    "partition_not_assigned", "manager_disconnected",
}  # fmt: skip


def slow(bench: Bench) -> GpuSlow:
    device, _ = bench.device()
    failures: list[SourceError] = []
    sample, _ = SlowReadings(device).read(GPU, failures)
    assert not failures
    return sample


def mask(**fields: int) -> int:
    """Built with the constants of the binding, not with ours."""
    return sum(
        value << getattr(pynvml, f"NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_{name.upper()}") for name, value in fields.items()
    )


@pytest.mark.parametrize("driver", ["550.90.07", "580.95.05"])
def test_a_gpu_that_has_joined_is_completed_and_troubled_by_nothing(tmp_path: Path, driver: str) -> None:
    with enter(tmp_path, driver_version=driver) as node:
        sample = slow(Bench(node))

    assert (sample.fabric_state, sample.fabric_status) == (3, 0)
    summary = {"unhealthy", "limited_capacity"} if driver > "575" else set()
    assert sample.fabric_trouble == dict.fromkeys(BY_MASK | summary, False)


@pytest.mark.parametrize(
    ("field", "value", "trouble"),
    [
        ("degraded_bw", 1, "degraded_bandwidth"),
        ("route_recovery", 1, "route_recovery"),
        ("route_unhealthy", 1, "route_unhealthy"),
        ("access_timeout_recovery", 1, "access_timeout_recovery"),
        ("incorrect_configuration", pynvml.NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NO_PARTITION,
         "incorrect_configuration"),
        ("incorrect_configuration", 8, "incorrect_configuration"),
        ("partition_assigned", 2, "partition_not_assigned"),
        ("gfm_state", pynvml.NVML_GPU_FABRIC_HEALTH_MASK_GFM_STATE_DISCONNECTED, "manager_disconnected"),
    ],
)  # fmt: skip
def test_each_field_of_the_mask_tells_its_own_trouble(field: str, value: int, trouble: str) -> None:
    assert troubles_of(mask(**{field: value})) == {trouble: True}


@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_no_mask_is_too_odd_to_be_read(raw: int) -> None:
    assert troubles_of(raw).keys() <= TROUBLES.keys()


def test_what_the_driver_does_not_support_is_not_said_to_be_well() -> None:
    assert troubles_of(0) == {}
    assert troubles_of(mask(degraded_bw=3)) == {}


@pytest.mark.parametrize(("summary", "troubles"), [(2, {"unhealthy"}), (3, {"limited_capacity"}), (1, set())])
def test_the_summary_is_one_of_three(tmp_path: Path, summary: int, troubles: set[str]) -> None:
    with enter(tmp_path, driver_version="580.95.05") as node:
        node.set_counts(0, fabric_health_summary=summary)
        said = slow(Bench(node)).fabric_trouble or {}

    assert {name for name, is_there in said.items() if is_there} == troubles


def test_a_summary_that_is_not_supported_says_nothing(tmp_path: Path) -> None:
    with enter(tmp_path, driver_version="580.95.05") as node:
        node.set_counts(0, fabric_health_summary=0)
        said = slow(Bench(node)).fabric_trouble or {}

    assert said.keys() == BY_MASK


def test_a_driver_that_knows_version_2_alone_is_asked_for_that(bench: Bench) -> None:
    device, _ = bench.device()
    readings = SlowReadings(device)
    for _ in range(3):
        readings.read(GPU, [])

    assert bench.node.face.calls[V] == 4  # version 3 is refused once


def test_an_old_driver_tells_the_state_and_no_health(tmp_path: Path) -> None:
    with enter(tmp_path, driver_version="525.147.05") as node:
        node.set_counts(0, fabric_status=7)
        sample = slow(Bench(node))

    assert (sample.fabric_state, sample.fabric_status, sample.fabric_trouble) == (3, 7, None)


@pytest.mark.parametrize("model", ["a100", "l4", "v100"])
def test_a_board_that_belongs_to_no_fabric_has_no_state(tmp_path: Path, model: str) -> None:
    with enter(tmp_path, model=model) as node:
        bench = Bench(node)
        sample = slow(bench)
        reader, _ = bench.reader()
        said = words(reader.read(group("nvml.slow")))

    assert (sample.fabric_state, sample.fabric_status, sample.fabric_trouble) == (None, None, None)
    assert said["fabric"] == "unsupported"


def test_a_state_of_not_supported_is_no_state(bench: Bench) -> None:
    bench.node.set_counts(0, fabric_state=0)

    assert slow(bench).fabric_state is None


def test_a_fabric_that_is_not_ready_says_how_far_it_is(bench: Bench) -> None:
    bench.node.set_counts(0, fabric_state=2)

    assert slow(bench).fabric_state == 2
