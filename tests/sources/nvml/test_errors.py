# SPDX-License-Identifier: Apache-2.0
"""ECC, repaired memory and PCIe errors: what each generation counts, and nothing of what it does not."""

from pathlib import Path

import pytest

from gpufeed.errors import DeviceLost, SourceError
from gpufeed.model.gpu_errors import GpuErrorDetail, GpuErrors
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.simulate.faults import Fault
from gpufeed.sources.nvml.rare import RareReadings
from gpufeed.sources.nvml.slow import SlowReadings
from nvml_bench import Bench, enter, group, words

FIELDS = "nvmlDeviceGetFieldValues"
GPU = GpuKey(GpuUuid("GPU-x"))
COUNTS = {
    "ecc_volatile_corrected": 10, "ecc_volatile_uncorrected": 3, "ecc_aggregate_corrected": 200,
    "ecc_aggregate_uncorrected": 40, "ecc_volatile_corrected_sram": 4, "ecc_volatile_uncorrected_sram": 1,
    "ecc_aggregate_corrected_sram": 50, "ecc_aggregate_uncorrected_sram": 15, "sram_threshold_exceeded": 1,
    "remapped_correctable": 5, "remapped_uncorrectable": 6, "remap_pending": 1, "remap_failed": 0,
    "retired_single_bit": 7, "retired_double_bit": 8, "retired_pending": 1,
    "remap_banks_max": 2000, "remap_banks_high": 500, "remap_banks_partial": 50, "remap_banks_low": 9,
    "remap_banks_none": 1, "pcie_correctable": 21, "pcie_fatal": 22, "pcie_lane": 23, "pcie_l0_to_recovery": 24,
}  # fmt: skip


def errors(bench: Bench) -> GpuErrors:
    device, _ = bench.device()
    failures: list[SourceError] = []
    _, sample = SlowReadings(device).read(GPU, failures)
    assert sample is not None
    assert not failures
    return sample


def detail(bench: Bench) -> GpuErrorDetail:
    device, _ = bench.device()
    failures: list[SourceError] = []
    sample = RareReadings(device).read(GPU, failures)
    assert sample is not None
    assert not failures
    return sample


@pytest.mark.parametrize("model", ["v100", "a100", "h100", "b200", "l4"])
def test_ecc_totals_are_the_truth(tmp_path: Path, model: str) -> None:
    with enter(tmp_path, model=model) as node:
        node.set_counts(0, **COUNTS)
        sample = errors(Bench(node))

    assert sample.ecc_volatile == {"corrected": 10, "uncorrected": 3}
    assert sample.ecc_aggregate == {"corrected": 200, "uncorrected": 40}


@pytest.mark.parametrize("model", ["a100", "h100", "b200", "l40s"])
def test_rows_are_remapped_from_ampere_on_and_no_page_is_retired(tmp_path: Path, model: str) -> None:
    with enter(tmp_path, model=model) as node:
        node.set_counts(0, **COUNTS)
        sample, rare = errors(Bench(node)), detail(Bench(node))

    assert sample.remapped_rows == {"correctable": 5, "uncorrectable": 6}
    assert (sample.row_remap_pending, sample.row_remap_failed) == (True, False)
    assert (sample.retired_pages, sample.retired_pages_pending) == (None, None)
    assert rare.row_remap_banks == {"max": 2000, "high": 500, "partial": 50, "low": 9, "none": 1}


def test_pages_are_retired_before_ampere_and_no_row_is_remapped(tmp_path: Path) -> None:
    with enter(tmp_path, model="v100") as node:
        node.set_counts(0, **COUNTS)
        sample, rare = errors(Bench(node)), detail(Bench(node))

    assert sample.retired_pages == {"correctable": 7, "uncorrectable": 8}
    assert sample.retired_pages_pending is True
    assert (sample.remapped_rows, sample.row_remap_pending, sample.row_remap_failed) == (None, None, None)
    assert (rare.row_remap_banks, rare.sram_threshold_exceeded) == (None, None)


@pytest.mark.parametrize("model", ["rtx4080", "gb10"])
def test_a_board_without_ecc_has_no_counts_rather_than_zero(tmp_path: Path, model: str) -> None:
    with enter(tmp_path, model=model) as node:
        bench = Bench(node)
        sample = errors(bench)
        device, _ = bench.device()
        rare = RareReadings(device).read(GPU, [])
        reader, _ = bench.reader()
        said = words(reader.read(group("nvml.slow"))) | words(reader.read(group("nvml.rare")))

    assert (sample.ecc_volatile, sample.ecc_aggregate, sample.remapped_rows, sample.retired_pages) == (None,) * 4
    assert rare is None
    assert {said[name] for name in ("ecc", "memory_repair", "sram_status")} == {"unsupported"}
    assert said["pcie_errors"] == "available"


@pytest.mark.parametrize("model", ["a100", "h100", "b200"])
def test_locations_are_device_memory_and_sram_since_turing(tmp_path: Path, model: str) -> None:
    with enter(tmp_path, model=model) as node:
        node.set_counts(0, **COUNTS)
        rare = detail(Bench(node))

    assert rare.ecc_volatile_locations == {
        "corrected": {"device_memory": 6, "sram": 4}, "uncorrected": {"device_memory": 2, "sram": 1},
    }  # fmt: skip
    assert rare.ecc_aggregate_locations == {
        "corrected": {"device_memory": 150, "sram": 50}, "uncorrected": {"device_memory": 25, "sram": 15},
    }  # fmt: skip
    assert rare.sram_threshold_exceeded is True


def test_locations_are_each_cache_and_register_file_on_volta(tmp_path: Path) -> None:
    with enter(tmp_path, model="v100") as node:
        node.set_counts(0, **COUNTS)
        rare = detail(Bench(node))

    nowhere = {"l1_cache": 0, "register_file": 0, "texture_memory": 0}
    assert rare.ecc_volatile_locations == {
        "corrected": {**nowhere, "l2_cache": 4, "device_memory": 6},
        "uncorrected": {**nowhere, "l2_cache": 1, "device_memory": 2, "cbu": 0},
    }


def test_an_ecc_field_that_adds_into_the_callers_buffer_does_not_grow_by_itself(bench: Bench) -> None:
    bench.node.set_counts(0, ecc_aggregate_corrected=9)
    bench.node.set_faults(Fault(effect="adds", function=FIELDS, field=5))
    device, _ = bench.device()
    slow = SlowReadings(device)

    read = [slow.read(GPU, [])[1] for _ in range(4)]

    assert [sample.ecc_aggregate for sample in read if sample] == [{"corrected": 9, "uncorrected": 0}] * 4


def test_pcie_errors_are_counted_by_kind(bench: Bench) -> None:
    bench.node.set_counts(0, **COUNTS)

    counted = errors(bench).pcie_errors or {}

    assert {kind: count for kind, count in counted.items() if count} == {
        "correctable": 21, "fatal": 22, "lane": 23, "l0_to_recovery": 24,
    }  # fmt: skip
    assert len(counted) == 12


def test_an_old_driver_counts_fewer_kinds(tmp_path: Path) -> None:
    with enter(tmp_path, driver_version="525.147.05") as node:
        counted = errors(Bench(node)).pcie_errors or {}

    assert "lane" not in counted
    assert "lcrc" in counted


def test_a_flag_that_is_neither_yes_nor_no_is_none(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="answers", function=FIELDS, field=144, value=float(0xFFFF_FFFF)))

    assert errors(bench).row_remap_pending is None


def test_the_sram_status_that_root_alone_may_see_says_so(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="error", function="nvmlDeviceGetSramEccErrorStatus", code=4))
    reader, _ = bench.reader()
    outcome = reader.read(group("nvml.rare"))

    (status,) = (status for status in outcome.inputs if status.input == "sram_status")
    assert status.state == "denied"
    assert "root" in status.fix
    (sample,) = (sample for sample in outcome.samples if isinstance(sample, GpuErrorDetail))
    assert sample.sram_threshold_exceeded is None
    assert sample.row_remap_banks is not None


def test_in_a_virtual_machine_the_histogram_is_never_asked_for(bench: Bench) -> None:
    import ctypes
    from typing import Any

    def guest(_device: Any, mode: Any) -> int:
        mode[0] = 2
        return 0

    bench.put("nvmlDeviceGetVirtualizationMode", (ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint)), guest)

    assert detail(bench).row_remap_banks is None
    assert bench.node.face.calls["nvmlDeviceGetRowRemapperHistogram"] == 0


def test_a_driver_that_knows_no_virtualization_is_none(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="missing", function="nvmlDeviceGetVirtualizationMode"))

    assert detail(bench).row_remap_banks is not None


def test_a_batch_that_fails_loses_only_its_fields(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="error", function=FIELDS, code=999))
    device, _ = bench.device()
    failures: list[SourceError] = []
    slow, sample = SlowReadings(device).read(GPU, failures)
    rare = RareReadings(device).read(GPU, failures)

    assert sample is None
    assert slow.compute_mode == 0
    assert rare is not None
    assert rare.ecc_volatile_locations == {"corrected": {"sram": 0}, "uncorrected": {"sram": 0}}
    assert [failure.reason for failure in failures] == ["broken", "broken"]


def test_a_lost_device_goes_up(bench: Bench) -> None:
    device, _ = bench.device()
    slow, rare = SlowReadings(device), RareReadings(device)
    bench.node.set_faults(Fault(effect="lost", gpu=0))

    with pytest.raises(DeviceLost):
        slow.read(GPU, [])
    with pytest.raises(DeviceLost):
        rare.read(GPU, [])
