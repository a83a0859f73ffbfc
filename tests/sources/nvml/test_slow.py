# SPDX-License-Identifier: Apache-2.0
"""Modes, codecs, apertures, limits and margins, on the boards that have them; and the links to a Grace processor."""

from pathlib import Path

import pytest

from gpufeed.errors import DeviceLost, SourceError, Unsupported
from gpufeed.model.gpu import GpuIdentity, GpuSlow
from gpufeed.model.gpu_errors import GpuC2c
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.simulate.faults import Fault
from gpufeed.sources.nvml.c2c import C2cReadings
from gpufeed.sources.nvml.identity import read_identity
from gpufeed.sources.nvml.slow import SlowReadings
from nvml_bench import Bench, enter, group, only, words

FIELDS = "nvmlDeviceGetFieldValues"
THRESHOLD = "nvmlDeviceGetTemperatureThreshold"
GPU = GpuKey(GpuUuid("GPU-x"))


def slow(bench: Bench) -> GpuSlow:
    device, _ = bench.device()
    failures: list[SourceError] = []
    sample, _ = SlowReadings(device).read(GPU, failures)
    assert not failures
    return sample


def identity(bench: Bench) -> GpuIdentity:
    device, _ = bench.device()
    return read_identity(device, 0, lambda _: None)


def test_modes_codecs_and_clocks_are_the_truth(bench: Bench) -> None:
    bench.node.set_counts(
        0, performance_state=2, compute_mode=3, encoder_percent=7, decoder_percent=55, bar1_used_bytes=9 << 20
    )

    sample = slow(bench)

    assert (sample.performance_state, sample.compute_mode) == (2, 3)
    assert (sample.encoder_utilization_ratio, sample.decoder_utilization_ratio) == (0.07, 0.55)
    assert (sample.bar1_total_bytes, sample.bar1_used_bytes) == (128 << 30, 9 << 20)
    assert sample.video_clock_hz == bench.true("video_clock_mhz") * 1e6


def test_a_performance_state_of_unknown_is_none(bench: Bench) -> None:
    bench.node.set_counts(0, performance_state=32)

    assert slow(bench).performance_state is None


@pytest.mark.parametrize("model", ["h100", "b200", "l4"])
def test_the_margin_is_the_distance_to_the_slowdown(tmp_path: Path, model: str) -> None:
    with enter(tmp_path, model=model) as node:
        bench = Bench(node)
        sample = slow(bench)
        true = 87 - round(bench.true("temperature_c"))

    assert sample.temperature_margin_c == true


def test_a_margin_may_be_negative(bench: Bench) -> None:
    import ctypes
    from typing import Any

    import pynvml

    def beyond(_device: Any, info: Any) -> int:
        info.contents.marginTemperature = -3
        return 0

    struct = ctypes.POINTER(pynvml.c_nvmlMarginTemperature_v1_t)
    bench.put("nvmlDeviceGetMarginTemperature", (ctypes.c_void_p, struct), beyond)

    assert slow(bench).temperature_margin_c == -3


@pytest.mark.parametrize(("model", "driver"), [("a100", "570.124.06"), ("h100", "550.90.07"), ("gb10", "580.95.05")])
def test_without_a_margin_there_is_none(tmp_path: Path, model: str, driver: str) -> None:
    with enter(tmp_path, model=model, driver_version=driver) as node:
        bench = Bench(node)
        reader, _ = bench.reader()
        outcome = reader.read(group("nvml.slow"))

    assert only(outcome, GpuSlow).temperature_margin_c is None
    assert words(outcome)["temperature_margin"] == "unsupported"


def test_before_ada_limits_are_degrees(tmp_path: Path) -> None:
    with enter(tmp_path, model="a100") as node:
        found = identity(Bench(node))

    assert found.temperature_limits_c == {"shutdown": 92, "slowdown": 89, "memory_max": 95, "gpu_max": 85}
    assert found.temperature_limit_margins_c is None


def test_since_ada_limits_are_signed_margins_and_no_degrees(bench: Bench) -> None:
    found = identity(bench)

    assert found.temperature_limit_margins_c == {"shutdown": -8, "slowdown": -2, "memory_max": 0, "gpu_max": 0}
    assert found.temperature_limits_c is None
    assert bench.node.face.calls[THRESHOLD] == 0


def test_a_limit_of_memory_that_has_no_sensor_is_absent(tmp_path: Path) -> None:
    with enter(tmp_path, model="l4") as node:
        found = identity(Bench(node))

    assert found.temperature_limit_margins_c == {"shutdown": -7, "slowdown": -2, "gpu_max": 0}


def test_a_board_without_limits_has_none(tmp_path: Path) -> None:
    with enter(tmp_path, model="gb10") as node:
        found = identity(Bench(node))

    assert (found.temperature_limits_c, found.temperature_limit_margins_c) == (None, None)
    assert (found.power_limit_min_w, found.power_limit_max_w, found.power_limit_default_w) == (None, None, None)


def test_a_limit_of_zero_degrees_is_no_limit(tmp_path: Path) -> None:
    import ctypes
    from typing import Any

    def zero(_device: Any, limit: int, out: Any) -> int:
        out[0] = 0 if limit == 2 else 90
        return 0

    with enter(tmp_path, model="a100") as node:
        bench = Bench(node)
        bench.put(THRESHOLD, (ctypes.c_void_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_uint)), zero)
        found = identity(bench)

    assert (found.temperature_limits_c or {}).keys() == {"shutdown", "slowdown", "gpu_max"}


def test_a_device_lost_while_its_limits_are_read_goes_up(tmp_path: Path) -> None:
    with enter(tmp_path, model="a100") as node:
        bench = Bench(node)
        device, _ = bench.device()
        node.set_faults(Fault(effect="lost", function=THRESHOLD))
        with pytest.raises(DeviceLost):
            read_identity(device, 0, lambda _: None)


@pytest.mark.parametrize("driver", ["525.147.05", "570.124.06"])
def test_limits_of_power_and_clocks_are_the_boards(tmp_path: Path, driver: str) -> None:
    with enter(tmp_path, driver_version=driver) as node:
        found = identity(Bench(node))

    assert (found.power_limit_min_w, found.power_limit_default_w, found.power_limit_max_w) == (200, 700, 700)
    assert (found.graphics_clock_max_hz, found.video_clock_max_hz) == (1.98e9, 1.98e9)


def test_c2c_links_are_those_of_a_grace_board(tmp_path: Path) -> None:
    with enter(tmp_path, model="gb200", driver_version="580.95.05") as node:
        bench = Bench(node)
        node.set_counts(0, c2c_links_up=9, c2c_crc=1, c2c_replay=2, c2c_replay_b2b=3)
        reader, _ = bench.reader()
        outcome = reader.read(group("nvml.slow"))

    sample = only(outcome, GpuC2c)
    assert (sample.links, sample.links_up) == (10, 9)
    assert sample.speed_bytes_per_s == 10 * 44712e6
    assert sample.errors == {"crc": 1, "replay": 2, "replay_back_to_back": 3}
    assert words(outcome)["c2c"] == "available"


def test_before_575_c2c_links_count_no_errors(tmp_path: Path) -> None:
    with enter(tmp_path, model="gb200") as node:
        device, _ = Bench(node).device()
        sample = C2cReadings(device).read(GPU)

    assert (sample.links, sample.links_up, sample.errors) == (10, 10, None)


def test_other_boards_have_no_c2c(bench: Bench) -> None:
    device, _ = bench.device()

    with pytest.raises(Unsupported):
        C2cReadings(device)


def test_a_c2c_link_that_does_not_answer_makes_the_sum_unknown(tmp_path: Path) -> None:
    with enter(tmp_path, model="gb200") as node:
        device, _ = Bench(node).device()
        readings = C2cReadings(device)
        node.set_faults(Fault(effect="error", function=FIELDS, field=172, code=999))
        sample = readings.read(GPU)

    assert (sample.links_up, sample.speed_bytes_per_s) == (10, None)
