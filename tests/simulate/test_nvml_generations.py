# SPDX-License-Identifier: Apache-2.0
"""What only some generations and drivers have, through the genuine nvidia-ml-py: the truth, or the right refusal."""

import ctypes
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest

from gpufeed.simulate.block import INTS
from gpufeed.simulate.models import MODELS
from gpufeed.simulate.nvml.face import FUNCTIONS
from gpufeed.simulate.nvml.links import FabricInfo, OldFabricInfo
from gpufeed.simulate.nvml.personality import FUNCTION_SINCE, first_thermal_id, smoothing_ids, version_of
from gpufeed.simulate.stepped import SteppedNode

Enter = Callable[..., SteppedNode]
NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED


def device(index: int = 0) -> Any:
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByIndex(index)


def code_of(call: Callable[..., Any], *arguments: Any) -> int:
    """Return code of a call; 0 where it succeeds."""
    try:
        call(*arguments)
    except pynvml.NVMLError as error:
        return int(error.value)
    return 0


def field(handle: Any, number: int, scope: int = 0) -> Any:
    return pynvml.nvmlDeviceGetFieldValues(handle, [(number, scope)])[0]


@pytest.mark.parametrize("model", MODELS)
def test_every_product_is_itself(enter: Enter, model: str) -> None:
    enter("healthy", model, 2)
    handle, product = device(1), MODELS[model]
    assert pynvml.nvmlDeviceGetName(handle) == product.name
    assert pynvml.nvmlDeviceGetArchitecture(handle) == product.architecture
    assert pynvml.nvmlDeviceGetCudaComputeCapability(handle) == product.cuda_capability
    assert field(handle, 91).value.uiVal == product.nvlink_links
    assert bool(pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice) == product.has_gpm


def test_products_do_not_share_what_tells_them_apart() -> None:
    assert len({model.pci_device for model in MODELS.values()}) == len(MODELS)
    assert len({model.name for model in MODELS.values()}) == len(MODELS)


@pytest.mark.parametrize(
    ("driver", "lacking"),
    [
        ("525.147.05", set(FUNCTION_SINCE)),
        ("535.154.05", set(FUNCTION_SINCE) - {"nvmlDeviceGetModuleId", "nvmlDeviceGetCurrentClocksEventReasons"}),
        ("550.90.07", {"nvmlDeviceGetTemperatureV", "nvmlDeviceGetMarginTemperature"}),
        ("570.124.06", set()),
        ("615.10.02", set()),
    ],
)
def test_an_old_library_lacks_symbols(enter: Enter, driver: str, lacking: set[str]) -> None:
    face = enter(gpus=1, driver_version=driver).face
    assert {name for name in FUNCTIONS if not hasattr(face, name)} == lacking


@pytest.mark.parametrize(
    ("driver", "thermal", "smoothing"),
    [("550.90.07", None, 0), ("570.124.06", None, 251), ("575.57.08", 251, 256), ("580.65.06", 251, 256),
     ("580.82.07", 269, 251), ("615.10.02", 269, 251)],
)  # fmt: skip
def test_moved_ids_mean_what_the_driver_says(enter: Enter, driver: str, thermal: int | None, smoothing: int) -> None:
    assert first_thermal_id(version_of(driver)) == thermal
    assert list(smoothing_ids(version_of(driver))) == (list(range(smoothing, smoothing + 18)) if smoothing else [])
    enter(model="b200", gpus=1, driver_version=driver)
    handle = device()
    for at in range(251, 274):
        value = field(handle, at)
        if thermal is not None and thermal <= at < thermal + 3:
            assert (value.valueType, value.value.ullVal) == (3, 0)
        elif smoothing and smoothing <= at < smoothing + 18:
            assert (value.valueType, value.value.uiVal) == (1, 50)
        else:
            assert value.nvmlReturn == NOT_SUPPORTED


def test_only_blackwell_smooths_power(enter: Enter) -> None:
    enter(model="h100", gpus=1)
    assert field(device(), 251).nvmlReturn == NOT_SUPPORTED


def test_ecc_is_counted_where_the_generation_counts_it(enter: Enter) -> None:
    node = enter(model="a100", gpus=1)
    node.set_counts(0, ecc_volatile_corrected=9, ecc_volatile_corrected_sram=4, sram_threshold_exceeded=1)
    handle = device()
    corrected, volatile = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_VOLATILE_ECC
    assert pynvml.nvmlDeviceGetMemoryErrorCounter(handle, corrected, volatile, pynvml.NVML_MEMORY_LOCATION_SRAM) == 4
    assert pynvml.nvmlDeviceGetMemoryErrorCounter(handle, corrected, volatile, pynvml.NVML_MEMORY_LOCATION_DRAM) == 5
    refused = (handle, corrected, volatile, pynvml.NVML_MEMORY_LOCATION_L1_CACHE)
    assert code_of(pynvml.nvmlDeviceGetMemoryErrorCounter, *refused) == NOT_SUPPORTED
    status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    pynvml.nvmlDeviceGetSramEccErrorStatus(handle, ctypes.byref(status))
    assert (status.volatileCor, status.bThresholdExceeded) == (4, 1)
    status.version += 1
    mismatch = pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH
    assert code_of(pynvml.nvmlDeviceGetSramEccErrorStatus, handle, ctypes.byref(status)) == mismatch


@pytest.mark.parametrize("model", ["v100", "rtx4080", "gb10"])
def test_what_a_board_has_not_is_refused(enter: Enter, model: str) -> None:
    enter(model=model, gpus=1)
    handle, status = device(), pynvml.c_nvmlEccSramErrorStatus_v1_t()
    assert code_of(pynvml.nvmlDeviceGetSramEccErrorStatus, handle, ctypes.byref(status)) == NOT_SUPPORTED
    assert code_of(pynvml.nvmlDeviceGetRowRemapperHistogram, handle) == NOT_SUPPORTED
    assert code_of(pynvml.nvmlDeviceGetMigMode, handle) == NOT_SUPPORTED
    has_memory, has_ecc = model != "gb10", model == "v100"
    assert (code_of(pynvml.nvmlDeviceGetEccMode, handle) == 0) == has_ecc
    for call in (pynvml.nvmlDeviceGetMemoryInfo, pynvml.nvmlDeviceGetBAR1MemoryInfo,
                 pynvml.nvmlDeviceGetTotalEnergyConsumption, pynvml.nvmlDeviceGetEnforcedPowerLimit,
                 pynvml.nvmlDeviceGetPowerManagementDefaultLimit,
                 pynvml.nvmlDeviceGetPowerManagementLimitConstraints):  # fmt: skip
        assert (code_of(call, handle) == 0) == has_memory, call.__name__
    assert (code_of(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_MEM) == 0) == has_memory
    assert (code_of(pynvml.nvmlDeviceGetSerial, handle) == 0) == has_ecc


def test_histogram_margin_and_codecs_are_the_truth(enter: Enter) -> None:
    node = enter(gpus=1)
    node.set_counts(0, remap_banks_low=3, encoder_percent=8, decoder_percent=9)
    handle = device()
    banks = pynvml.nvmlDeviceGetRowRemapperHistogram(handle)
    assert (banks.max, banks.high, banks.partial, banks.low, banks.none) == (2560, 0, 0, 3, 0)
    assert pynvml.nvmlDeviceGetMarginTemperature(handle) == 87 - pynvml.nvmlDeviceGetTemperatureV(handle, 0)
    assert pynvml.nvmlDeviceGetEncoderUtilization(handle)[0] == 8
    assert pynvml.nvmlDeviceGetDecoderUtilization(handle)[0] == 9


def test_thresholds_are_degrees_before_ada_and_refused_since(enter: Enter) -> None:
    enter(model="v100", gpus=1)
    handle = device()
    assert [pynvml.nvmlDeviceGetTemperatureThreshold(handle, limit) for limit in range(4)] == [90, 87, 85, 83]
    assert code_of(pynvml.nvmlDeviceGetTemperatureThreshold, handle, 4) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert code_of(pynvml.nvmlDeviceGetMarginTemperature, handle) == NOT_SUPPORTED


def test_links_of_a_ring_lead_to_gpus_and_those_of_a_switch_to_switches(enter: Enter) -> None:
    enter(model="v100", gpus=2)
    handle = device()
    assert pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, 0) == pynvml.NVML_NVLINK_DEVICE_TYPE_GPU
    other = pynvml.nvmlDeviceGetPciInfo(device(1)).busId
    assert pynvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, 0).busId == other


def test_a_link_that_is_down_leads_nowhere(enter: Enter) -> None:
    node = enter(gpus=1)
    node.set_counts(0, links_up=17)
    handle = device()
    assert pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, 16) == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH
    assert pynvml.nvmlDeviceGetNvLinkState(handle, 17) == 0
    for call in (pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, pynvml.nvmlDeviceGetNvLinkRemotePciInfo):
        assert code_of(call, handle, 17) == pynvml.NVML_ERROR_INVALID_ARGUMENT


@pytest.mark.parametrize(("model", "expected"), [("a100", [1, 2, 3, 4]), ("h100", [1, 2, 5, 5])])
def test_errors_of_a_link_by_call(enter: Enter, model: str, expected: list[int]) -> None:
    node = enter(model=model, gpus=1)
    node.set_counts(
        0, nvlink_bad_link=2, nvlink_replay=1, nvlink_recovery=2, nvlink_crc_flit=3, nvlink_crc_data=4, nvlink_crc=5
    )
    handle = device()
    assert [pynvml.nvmlDeviceGetNvLinkErrorCounter(handle, 2, counter) for counter in range(4)] == expected
    assert [pynvml.nvmlDeviceGetNvLinkErrorCounter(handle, 1, counter) for counter in range(4)] == [0] * 4


def test_blackwell_counts_no_errors_by_call(enter: Enter) -> None:
    enter(model="b200", gpus=1)
    assert code_of(pynvml.nvmlDeviceGetNvLinkErrorCounter, device(), 0, 0) == NOT_SUPPORTED


def test_the_fabric_is_told_in_the_version_that_is_asked_for(enter: Enter) -> None:
    node = enter(gpus=1, driver_version="580.95.05")
    node.set_counts(0, fabric_status=3, fabric_health_summary=2)
    handle = device()
    old, second, third = (
        pynvml.c_nvmlGpuFabricInfo_t(), pynvml.c_nvmlGpuFabricInfo_v2_t(), pynvml.c_nvmlGpuFabricInfo_v3_t(),
    )  # fmt: skip
    pynvml.nvmlDeviceGetGpuFabricInfo(handle, ctypes.byref(old))
    pynvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(second))
    pynvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(third))
    assert [info.state for info in (old, second, third)] == [3] * 3
    assert [info.status for info in (old, second, third)] == [3] * 3
    assert second.healthMask == third.healthMask
    assert third.healthSummary == pynvml.NVML_GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY
    assert bytes(old.clusterUuid) == bytes(third.clusterUuid) != bytes(16)


def test_an_older_driver_knows_version_2_of_the_fabric_alone(enter: Enter) -> None:
    enter(gpus=1, driver_version="550.90.07")
    third = pynvml.c_nvmlGpuFabricInfo_v3_t()
    mismatch = pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH
    assert code_of(pynvml.nvmlDeviceGetGpuFabricInfoV, device(), ctypes.byref(third)) == mismatch


def test_before_hopper_there_is_no_fabric(enter: Enter) -> None:
    enter(model="a100", gpus=1)
    handle = device()
    old, second = pynvml.c_nvmlGpuFabricInfo_t(), pynvml.c_nvmlGpuFabricInfo_v2_t()
    assert code_of(pynvml.nvmlDeviceGetGpuFabricInfo, handle, ctypes.byref(old)) == NOT_SUPPORTED
    assert code_of(pynvml.nvmlDeviceGetGpuFabricInfoV, handle, ctypes.byref(second)) == NOT_SUPPORTED


def test_numbers_of_the_truth_can_be_set_and_misspelt_ones_are_refused(enter: Enter) -> None:
    node = enter(gpus=1)
    with pytest.raises(ValueError, match="ecc_volatile_corected"):
        node.set_counts(0, ecc_volatile_corected=1)
    assert "ecc_volatile_corrected" in INTS


def header_path() -> Path:
    """nvml.h as NVIDIA ships it, where it is installed."""
    found = importlib.util.find_spec("nvidia")
    places = [Path(place) for place in (found.submodule_search_locations or ())] if found else []
    for place in places:
        for path in sorted(place.glob("*/include/nvml.h")):
            return path
    pytest.skip("nvidia-nvml-dev is not installed")


def header() -> str:
    return header_path().read_text(encoding="utf-8", errors="replace")


STRUCTS: dict[str, tuple[Any, int]] = {
    "nvmlGpuFabricInfo_v3_t": (FabricInfo, 40),
    "nvmlGpuFabricInfo_t": (OldFabricInfo, 28),
    "nvmlEccSramErrorStatus_v1_t": (pynvml.c_nvmlEccSramErrorStatus_v1_t, 104),
    "nvmlMarginTemperature_v1_t": (pynvml.c_nvmlMarginTemperature_v1_t, 8),
    "nvmlRowRemapperHistogramValues_t": (pynvml.c_nvmlRowRemapperHistogramValues, 20),
    "nvmlGpmMetric_t": (pynvml.c_nvmlGpmMetric_t, 40),
    "nvmlFieldValue_t": (pynvml.c_nvmlFieldValue_t, 40),
    "nvmlProcessInfo_t": (pynvml.c_nvmlProcessInfo_v3_t, 24),
    "nvmlMemory_v2_t": (pynvml.c_nvmlMemory_v2_t, 40),
    "nvmlPciInfo_t": (pynvml.nvmlPciInfo_t, 68),
    "nvmlEventData_t": (pynvml.c_nvmlEventData_t, 32),
}
"""Of the header: ours or the binding's, and its size in bytes."""


def test_structs_have_the_size_that_is_read_and_written() -> None:
    assert {name: ctypes.sizeof(struct) for name, (struct, _) in STRUCTS.items()} == {
        name: size for name, (_, size) in STRUCTS.items()
    }


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_structs_have_the_size_of_the_c_header(tmp_path: Path) -> None:
    lines = "".join(f'printf("%s %zu\\n", "{name}", sizeof({name}));' for name in STRUCTS)
    source, program = tmp_path / "sizes.c", tmp_path / "sizes"
    source.write_text(f"#include <stdio.h>\n#include <nvml.h>\nint main(void) {{ {lines} return 0; }}\n")
    subprocess.run(["cc", f"-I{header_path().parent}", "-o", program, source], check=True)
    told = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert {name: int(size) for name, size in map(str.split, told.splitlines())} == {
        name: size for name, (_, size) in STRUCTS.items()
    }


def test_field_ids_of_the_simulator_are_those_of_the_header() -> None:
    numbers = {name: int(value) for name, value in re.findall(r"#define NVML_FI_DEV_(\w+)\s+(\d+)\b", header())}
    assert {
        "ECC_SBE_VOL_TOTAL": 3, "ECC_DBE_AGG_CBU": 28, "RETIRED_SBE": 29, "NVLINK_CRC_FLIT_ERROR_COUNT_L0": 32,
        "NVLINK_CRC_FLIT_ERROR_COUNT_L6": 96, "NVLINK_RECOVERY_ERROR_COUNT_L11": 119, "REMAPPED_COR": 142,
        "NVLINK_ERROR_DL_REPLAY": 161, "NVLINK_GET_SPEED": 164, "PCIE_L0_TO_RECOVERY_COUNTER": 169,
        "PCIE_COUNT_CORRECTABLE_ERRORS": 173, "PCIE_COUNT_LANE_ERROR": 183, "C2C_LINK_COUNT": 170,
        "TEMPERATURE_SHUTDOWN_TLIMIT": 193,
        "NVLINK_COUNT_XMIT_BYTES": 202, "NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS": 213,
        "NVLINK_COUNT_SYMBOL_BER": 222, "GET_GPU_RECOVERY_ACTION": 230, "C2C_LINK_ERROR_REPLAY_B2B": 233,
        "CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN": 269,
    }.items() <= numbers.items()  # fmt: skip


def test_every_function_of_the_simulator_is_in_the_header() -> None:
    text = header()
    assert [name for name in FUNCTIONS if not re.search(rf"\b{name}\b", text)] == []
