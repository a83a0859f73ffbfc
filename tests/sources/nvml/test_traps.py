# SPDX-License-Identifier: Apache-2.0
"""Traps that others have fallen into, each through a whole reader and named after what it does."""

import ctypes
from pathlib import Path
from typing import Any

import pynvml
import pytest

from gpufeed.model.gpu import GpuCondition, GpuFast, GpuIdentity, GpuProcesses, GpuSlow, NvlinkTotals
from gpufeed.model.gpu_errors import GpuErrors
from gpufeed.model.nvlink import NvlinkLinks
from gpufeed.simulate.faults import Fault
from gpufeed.sources.nvml.gpu_reader import FAST, LINKS, NVLINK, PROCESSES, SLOW
from nvml_bench import Bench, enter, only, words

FIELDS = "nvmlDeviceGetFieldValues"
BLANK_32, BLANK_64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF


@pytest.mark.parametrize(
    ("driver", "counted"),
    [
        ("570.124.06", None),  # 251 to 253 are power smoothing, and there is no such counter yet
        ("575.57.08", None),  # 251 to 253 are the counters, and 269 to 271 power smoothing
        ("580.65.06", None),
        ("580.82.07", 0.8),  # 269 to 271 are the counters, and 251 to 253 power smoothing again
        ("615.10.02", 0.8),
    ],
)
def test_moved_ids_251_and_269_never_give_power_smoothing_for_thermal_time(
    tmp_path: Path, driver: str, counted: float | None
) -> None:
    with enter(tmp_path, "thermal_throttle", "b200", driver_version=driver) as node:
        bench = Bench(node)
        reader, _ = bench.reader()
        node.advance(800_000_000)
        counters = only(reader.read(FAST), GpuFast).clock_event_ns or {}

    assert counters["thermal_policy"] == pytest.approx(0.8e9)
    assert counters.get("hw_thermal") == (None if counted is None else pytest.approx(counted * 1e9))
    assert 50 not in counters.values()  # what the simulated power smoothing answers


def test_a_32_bit_value_read_as_64_gives_no_absurd_power(bench: Bench) -> None:
    def dirty(_device: Any, count: int, values: Any) -> int:
        for entry in values[:count]:
            entry.value.ullVal = 0x4545_4545_0000_0000  # rubbish above the 32 bits that are written
            entry.value.uiVal, entry.valueType, entry.nvmlReturn = 350_000, 1, 0
        return 0

    reader, _ = bench.reader()
    reader.read(FAST)
    bench.put(FIELDS, (ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(pynvml.c_nvmlFieldValue_t)), dirty)

    assert only(reader.read(FAST), GpuFast).power_w == 350.0


@pytest.mark.parametrize("blank", [BLANK_32, BLANK_64])
def test_a_blank_sentinel_is_no_count(bench: Bench, blank: int) -> None:
    def blanks(_device: Any, count: int, values: Any) -> int:
        for entry in values[:count]:
            entry.valueType, entry.value.ullVal = (1, BLANK_32) if blank == BLANK_32 else (3, BLANK_64)
            entry.nvmlReturn = 0
        return 0

    reader, _ = bench.reader()
    reader.read(SLOW)
    bench.put(FIELDS, (ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(pynvml.c_nvmlFieldValue_t)), blanks)
    outcome = reader.read(SLOW)

    assert not [sample for sample in outcome.samples if isinstance(sample, GpuErrors)]
    slow = only(outcome, GpuSlow)
    assert (slow.recovery_action, slow.ecc_enabled) == (None, True)  # that one has a call besides


@pytest.mark.parametrize("driver", ["580.95.05", "615.10.02"])
def test_a_link_count_of_36_in_the_header_is_18_on_the_board(tmp_path: Path, driver: str) -> None:
    with enter(tmp_path, model="gb200", driver_version=driver) as node:
        bench = Bench(node)
        reader, _ = bench.reader()
        totals, links = only(reader.read(NVLINK), NvlinkTotals), only(reader.read(LINKS), NvlinkLinks)
        identity = only(reader.read(SLOW), GpuIdentity)

    assert (totals.links, totals.links_up, len(links.links), identity.nvlink_links) == (18, 18, 18, 18)


def test_an_invalid_argument_is_no_such_link_and_no_lost_handle(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="not_supported", function=FIELDS, field=91))
    reader, _ = bench.reader()

    assert only(reader.read(NVLINK), NvlinkTotals).links == 18
    assert only(reader.read(FAST), GpuFast).power_w is not None


def test_hopper_error_totals_are_never_asked_for(bench: Bench) -> None:
    asked: set[int] = set()
    genuine = bench.node.face

    def listening(device: Any, count: int, values: Any) -> int:
        asked.update(entry.fieldId for entry in values[:count])
        return int(original(ctypes.c_void_p(device), count, values))

    original = genuine.nvmlDeviceGetFieldValues
    bench.put(FIELDS, (ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(pynvml.c_nvmlFieldValue_t)), listening)
    reader, _ = bench.reader()
    for group in (FAST, NVLINK, SLOW, LINKS):
        reader.read(group)

    assert {161, 162, 163} <= asked
    assert not asked & {38, 45, 52, 59, 160}


def test_a_process_list_that_grows_between_two_calls_is_whole(bench: Bench) -> None:
    listed: list[int] = []
    info = ctypes.POINTER(pynvml.c_nvmlProcessInfo_v3_t)

    def growing(_device: Any, count: Any, infos: Any) -> int:
        room, present = count[0], 100 if listed else 60
        listed.append(present)
        count[0] = present
        if present > room:
            return 7
        for at in range(present):
            infos[at].pid, infos[at].usedGpuMemory = 1000 + at, 1
        return 0

    bench.put(
        "nvmlDeviceGetComputeRunningProcesses_v3", (ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint), info), growing
    )
    reader, _ = bench.reader()
    first, second = (only(reader.read(PROCESSES), GpuProcesses) for _ in range(2))

    assert (len(first.processes), len(second.processes)) == (60, 100)


def test_an_nvml_error_of_value_0_is_an_empty_list(bench: Bench) -> None:
    def raises(*_: object) -> None:
        raise pynvml.NVMLError(0)

    reader, _ = bench.reader()
    reader.read(SLOW)
    before = pynvml.nvmlDeviceGetEncoderUtilization
    pynvml.nvmlDeviceGetEncoderUtilization = raises
    try:
        outcome = reader.read(SLOW)
    finally:
        pynvml.nvmlDeviceGetEncoderUtilization = before

    assert only(outcome, GpuSlow).encoder_utilization_ratio is None
    assert outcome.failures == ()
    assert only(reader.read(SLOW), GpuSlow).encoder_utilization_ratio is not None


def test_memory_temperature_is_absent_and_not_zero_on_a_card_without_the_sensor(tmp_path: Path) -> None:
    with enter(tmp_path, model="l4") as node:
        reader, _ = Bench(node).reader()

        assert only(reader.read(FAST), GpuFast).memory_temperature_c is None


def test_memory_is_absent_where_it_is_the_hosts(tmp_path: Path) -> None:
    with enter(tmp_path, model="gb10") as node:
        reader, _ = Bench(node).reader()
        outcome = reader.read(FAST)

    sample = only(outcome, GpuFast)
    assert (sample.memory_total_bytes, sample.memory_used_bytes, sample.energy_j) == (None, None, None)
    assert sample.power_w is not None
    assert (words(outcome)["memory"], words(outcome)["energy"]) == ("unsupported", "unsupported")


def test_a_gpu_index_reused_after_a_loss_is_not_taken_for_the_gpu_that_had_it(bench: Bench) -> None:
    face = bench.node.face
    reader, desk = bench.reader()
    reader.read(FAST)
    bench.node.set_faults(Fault(effect="lost", gpu=0))
    reader.read(FAST)

    def shifted(index: int, handle: Any) -> int:
        handle[0] = face.handle(index + 1)
        return 0

    address = ctypes.POINTER(ctypes.c_void_p)
    bench.put("nvmlDeviceGetHandleByIndex_v2", (ctypes.c_uint, address), shifted)
    bench.node.advance(40_000_000_000)
    still = reader.read(FAST)  # of the same initialisation: looked for by its place on the bus
    afterwards, its_desk = bench.reader()
    anew = afterwards.read(FAST)

    assert [sample for sample in still.samples if isinstance(sample, GpuFast)] == []
    assert only(still, GpuCondition).condition == "lost"
    assert (desk.gpu_uuid, its_desk.gpu_uuid) == (face.boards[0].uuid, face.boards[1].uuid)
    assert only(anew, GpuFast).gpu.uuid == face.boards[1].uuid
