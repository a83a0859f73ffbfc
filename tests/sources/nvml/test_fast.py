# SPDX-License-Identifier: Apache-2.0
"""What a GPU says within a second equals the node's truth, in base units, on two generations."""

from pathlib import Path

import pytest

from gpufeed.errors import Broken, DeviceLost, SourceError
from gpufeed.model.gpu import GpuFast
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.simulate.faults import Fault
from gpufeed.sources.nvml.fast import FastReadings
from nvml_bench import Bench, enter

FIELDS = "nvmlDeviceGetFieldValues"
GPU = GpuKey(GpuUuid("GPU-x"))


def readings(bench: Bench, index: int = 0) -> FastReadings:
    device, _ = bench.device(index)
    return FastReadings(device, bench.node.face.moment().header.driver_version)


def read(fast: FastReadings) -> GpuFast:
    failures: list[SourceError] = []
    sample, _ = fast.read(GPU, failures)
    assert not failures
    return sample


@pytest.mark.parametrize("model", ["h100", "a100"])
@pytest.mark.parametrize("index", [0, 1])
def test_readings_are_the_truth_of_the_node(tmp_path: Path, model: str, index: int) -> None:
    with enter(tmp_path, "storage_starved", model) as node:
        bench = Bench(node)
        fast = readings(bench, index)
        bench.step(5)

        sample = read(fast)

        true = {name: bench.true(name, index) for name in _NAMES}
        board = node.face.boards[index].model
    assert sample.utilization_ratio == pytest.approx(true["utilization_ratio"], abs=0.005)
    assert sample.memory_utilization_ratio == pytest.approx(true["memory_utilization_ratio"], abs=0.005)
    assert sample.memory_total_bytes == board.memory_bytes
    assert sample.memory_used_bytes == int(true["memory_used_bytes"])
    assert sample.memory_reserved_bytes == board.memory_reserved_bytes
    assert sample.memory_free_bytes == board.memory_bytes - board.memory_reserved_bytes - int(true["memory_used_bytes"])
    assert sample.power_w == pytest.approx(true["power_w"], abs=0.001)
    assert sample.power_instant_w == pytest.approx(true["power_instant_w"], abs=0.001)
    assert sample.power_limit_enforced_w == board.power_limit_w
    assert sample.energy_j == pytest.approx(true["energy_j"], abs=0.001)
    assert sample.temperature_c == round(true["temperature_c"])
    assert sample.memory_temperature_c == round(true["memory_temperature_c"])
    assert sample.sm_clock_hz == int(true["sm_clock_mhz"]) * 1_000_000
    assert sample.memory_clock_hz == board.memory_clock_mhz * 1_000_000
    assert sample.clock_events == true["clock_events"]
    assert sample.clock_event_ns is not None
    assert sample.clock_event_ns["sw_power_cap"] == pytest.approx(1e9 * true["sw_power_cap_s"], abs=1)


_NAMES = (
    "utilization_ratio", "memory_utilization_ratio", "memory_used_bytes", "power_w", "power_instant_w", "energy_j",
    "temperature_c", "memory_temperature_c", "sm_clock_mhz", "clock_events", "sw_power_cap_s",
)  # fmt: skip


def test_thermal_time_is_told_by_kind_where_the_driver_has_the_moved_fields(tmp_path: Path) -> None:
    with enter(tmp_path, "thermal_throttle") as node:
        bench = Bench(node)
        fast = readings(bench)
        bench.step(8)

        counted = read(fast).clock_event_ns or {}

        assert counted["hw_thermal"] == pytest.approx(1e9 * bench.true("hw_thermal_s"), abs=1)
        assert counted["sw_thermal"] == 0
        assert counted["hw_thermal"] > 0


@pytest.mark.parametrize("version", ["575.51.03", "580.65.06"])
def test_a_driver_with_power_smoothing_at_the_moved_ids_tells_no_thermal_time_by_kind(
    tmp_path: Path, version: str
) -> None:
    with enter(tmp_path, "healthy", driver_version=version) as node:
        bench = Bench(node)

        counted = read(readings(bench)).clock_event_ns or {}

    assert "thermal_policy" in counted
    assert not {"sw_thermal", "hw_thermal", "hw_power_brake"} & counted.keys()


def test_without_memory_v2_the_reserve_is_unknown_and_used_contains_it(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="missing", function="nvmlDeviceGetMemoryInfo_v2"))
    model = bench.node.face.boards[0].model

    sample = read(readings(bench))

    assert sample.memory_reserved_bytes is None
    assert sample.memory_used_bytes == int(bench.true("memory_used_bytes")) + model.memory_reserved_bytes
    assert sample.memory_total_bytes == model.memory_bytes


def test_an_older_driver_is_asked_for_the_temperature_by_the_older_call(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="missing", function="nvmlDeviceGetTemperatureV"))

    assert read(readings(bench)).temperature_c == round(bench.true("temperature_c"))


def test_an_older_driver_is_asked_for_the_clock_events_by_their_older_name(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="missing", function="nvmlDeviceGetCurrentClocksEventReasons"))

    assert read(readings(bench)).clock_events == bench.true("clock_events")


def test_power_and_energy_come_from_calls_where_the_fields_are_not(bench: Bench) -> None:
    bench.node.set_faults(
        *(Fault(effect="not_supported", function=FIELDS, field=field) for field in (83, 185, 186, 190))
    )
    fast = readings(bench)
    bench.step()

    sample = read(fast)

    assert sample.power_w == pytest.approx(bench.true("power_w"), abs=0.001)
    assert sample.energy_j == pytest.approx(bench.true("energy_j"), abs=0.001)
    assert sample.power_instant_w is None
    assert bench.node.face.calls["nvmlDeviceGetPowerUsage"] == 1


def test_power_is_never_asked_for_twice(bench: Bench) -> None:
    read(readings(bench))

    assert bench.node.face.calls["nvmlDeviceGetPowerUsage"] == 0
    assert bench.node.face.calls["nvmlDeviceGetTotalEnergyConsumption"] == 0


def test_pcie_throughput_is_never_sampled_by_the_call_that_takes_a_window(bench: Bench) -> None:
    fast = readings(bench)
    bench.step(3)
    _, pcie = fast.read(GPU, [])

    assert pcie is not None
    assert pcie.receive_bytes == int(bench.true("pcie_receive_bytes")) % 2**32
    assert pcie.transmit_bytes == int(bench.true("pcie_transmit_bytes")) % 2**32
    assert pcie.counter_bits == 32
    assert bench.node.face.calls["nvmlDeviceGetPcieThroughput"] == 0


def test_a_pcie_counter_above_32_bits_is_said_to_be_of_64_from_then_on(bench: Bench) -> None:
    fast = readings(bench)
    bench.node.set_faults(Fault(effect="answers", function=FIELDS, field=198, value=float(2**33)))
    _, wide = fast.read(GPU, [])
    bench.node.set_faults()
    _, narrow = fast.read(GPU, [])

    assert wide is not None
    assert narrow is not None
    assert (wide.receive_bytes, wide.counter_bits, narrow.counter_bits) == (2**33, 64, 64)


def test_a_device_without_pcie_counters_has_no_such_sample(bench: Bench) -> None:
    bench.node.set_faults(*(Fault(effect="not_supported", function=FIELDS, field=field) for field in (197, 198)))

    fast = readings(bench)

    assert fast.read(GPU, [])[1] is None
    assert not fast.has_pcie_bytes


def test_an_absurd_answer_loses_its_own_field_only(bench: Bench) -> None:
    fast = readings(bench)
    bench.node.set_faults(
        Fault(effect="answers", function=FIELDS, field=185, value=float(0xFFFF_FFFF)),
        Fault(effect="answers", function=FIELDS, field=82, value=4_000_000_000.0),  # a negative one read as unsigned
    )

    sample = read(fast)

    assert sample.power_w is None
    assert sample.memory_temperature_c is None
    assert sample.energy_j is not None


def test_a_memory_temperature_that_is_not_supported_is_not_zero(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="not_supported", function=FIELDS, field=82))

    assert read(readings(bench)).memory_temperature_c is None


def test_one_failing_getter_loses_only_its_field(bench: Bench) -> None:
    fast = readings(bench)
    bench.node.set_faults(Fault(effect="error", function="nvmlDeviceGetUtilizationRates", code=999))
    failures: list[SourceError] = []

    sample, pcie = fast.read(GPU, failures)

    assert sample.utilization_ratio is None
    assert sample.power_w is not None
    assert pcie is not None
    assert [failure.reason for failure in failures] == ["broken"]


def test_a_failing_batch_loses_only_the_fields(bench: Bench) -> None:
    fast = readings(bench)
    bench.node.set_faults(Fault(effect="error", function=FIELDS, code=999))
    failures: list[SourceError] = []

    sample, pcie = fast.read(GPU, failures)

    assert (sample.power_w, sample.energy_j, sample.clock_event_ns, pcie) == (None, None, None, None)
    assert sample.temperature_c is not None
    assert len(failures) == 1


def test_fields_that_cannot_be_had_at_first_come_later(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="error", function=FIELDS, code=999))
    fast = readings(bench)
    first, _ = fast.read(GPU, [])
    bench.node.set_faults()

    assert (first.power_w, first.energy_j) == (None, None)
    assert first.temperature_c is not None
    assert read(fast).power_w is not None
    assert fast.is_known
    assert bench.node.face.calls["nvmlDeviceGetPowerUsage"] == 0


def test_memory_that_does_not_add_up_is_not_told(bench: Bench) -> None:
    import ctypes
    from typing import Any

    import pynvml

    def answer(_device: Any, memory: Any) -> int:
        memory.contents.total, memory.contents.used = 10, 11
        return 0

    bench.put("nvmlDeviceGetMemoryInfo_v2", (ctypes.c_void_p, ctypes.POINTER(pynvml.c_nvmlMemory_v2_t)), answer)

    sample = read(readings(bench))

    assert (sample.memory_total_bytes, sample.memory_used_bytes) == (10, None)


def test_a_device_that_answers_nothing_at_all_is_a_failure(bench: Bench) -> None:
    fast = readings(bench)
    bench.node.set_faults(Fault(effect="error", gpu=0, code=999))

    with pytest.raises(Broken):
        fast.read(GPU, [])


def test_without_a_batch_there_is_still_what_the_calls_give(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="missing", function=FIELDS))
    fast = readings(bench)
    bench.step()

    sample = read(fast)

    assert sample.power_w == pytest.approx(bench.true("power_w"), abs=0.001)
    assert sample.energy_j == pytest.approx(bench.true("energy_j"), abs=0.001)
    assert sample.power_limit_enforced_w == bench.node.face.boards[0].model.power_limit_w
    assert sample.clock_event_ns is None


def test_a_lost_device_goes_up(bench: Bench) -> None:
    fast = readings(bench)
    bench.node.set_faults(Fault(effect="lost", gpu=0))

    with pytest.raises(DeviceLost):
        fast.read(GPU, [])
