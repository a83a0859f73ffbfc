# SPDX-License-Identifier: Apache-2.0
"""Every function of the simulated library through the genuine nvidia-ml-py, against what the hardware tables say."""

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import pynvml
import pytest

from gpufeed.simulate.hardware import A100, H100, GpuModel
from gpufeed.simulate.nvml.face import FUNCTIONS
from gpufeed.simulate.stepped import SteppedNode

S = 1_000_000_000
Enter = Callable[..., SteppedNode]


@pytest.fixture(params=[H100, A100], ids=["h100", "a100"])
def model(request: pytest.FixtureRequest) -> GpuModel:
    return request.param  # type: ignore[no-any-return]  # one of the two above


@pytest.fixture
def node(enter: Enter, model: GpuModel) -> Iterator[SteppedNode]:
    node = enter("healthy", model.key, 2)
    pynvml.nvmlInit()
    node.advance(20 * S)
    yield node
    pynvml.nvmlShutdown()
    assert not node.face.errors


def handle(index: int = 1) -> Any:
    return pynvml.nvmlDeviceGetHandleByIndex(index)


@pytest.mark.usefixtures("node")
def test_the_driver_says_who_it_is() -> None:
    assert pynvml.nvmlSystemGetDriverVersion() == "570.124.06"
    assert pynvml.nvmlSystemGetNVMLVersion() == "12.570.124.06"
    assert pynvml.nvmlSystemGetCudaDriverVersion_v2() == 12080
    assert pynvml.nvmlDeviceGetCount() == 2


@pytest.mark.usefixtures("node")
def test_a_device_is_found_by_index_uuid_and_bus_id() -> None:
    by_index = handle(1)
    uuid = pynvml.nvmlDeviceGetUUID(by_index)
    pci = pynvml.nvmlDeviceGetPciInfo(by_index)
    assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByUUID(uuid.encode())) == uuid
    assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByPciBusId(pci.busId.encode())) == uuid
    assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByPciBusId(b"0000:43:00.0")) == uuid
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetHandleByUUID(b"GPU-0")
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetHandleByPciBusId(b"0000:01:00.0")
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        handle(2)


@pytest.mark.usefixtures("node")
def test_identity_is_that_of_the_board(model: GpuModel) -> None:
    device = handle(1)
    assert pynvml.nvmlDeviceGetName(device) == model.name
    assert pynvml.nvmlDeviceGetArchitecture(device) == model.architecture
    assert pynvml.nvmlDeviceGetMinorNumber(device) == 1
    assert pynvml.nvmlDeviceGetBoardPartNumber(device) == model.part_number
    assert pynvml.nvmlDeviceGetVbiosVersion(device) == model.vbios
    assert pynvml.nvmlDeviceGetInforomImageVersion(device) == model.inforom
    assert pynvml.nvmlDeviceGetSerial(device) != pynvml.nvmlDeviceGetSerial(handle(0))
    assert pynvml.nvmlDeviceGetUUID(device) != pynvml.nvmlDeviceGetUUID(handle(0))
    assert pynvml.nvmlDeviceGetCudaComputeCapability(device) == model.cuda_capability
    assert pynvml.nvmlDeviceGetAttributes(device).multiprocessorCount == model.sm_count
    module = ctypes.c_uint()
    assert pynvml.nvmlDeviceGetModuleId(device, ctypes.byref(module)) == 0
    assert module.value == 2


@pytest.mark.usefixtures("node")
def test_pci_info_has_both_spellings(model: GpuModel) -> None:
    pci = pynvml.nvmlDeviceGetPciInfo(handle(1))
    assert pci.busId == "00000000:43:00.0"
    assert pci.busIdLegacy == "0000:43:00.0"
    assert pci.pciDeviceId == model.pci_device << 16 | 0x10DE


@pytest.mark.usefixtures("node")
def test_modes_and_links_are_those_of_a_server(model: GpuModel) -> None:
    device = handle()
    assert pynvml.nvmlDeviceGetPersistenceMode(device) == 1
    assert pynvml.nvmlDeviceGetComputeMode(device) == 0
    assert pynvml.nvmlDeviceGetEccMode(device) == [1, 1]
    assert pynvml.nvmlDeviceGetMigMode(device) == [0, 0]
    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(device) == 7
    assert pynvml.nvmlDeviceGetVirtualizationMode(device) == 0
    assert pynvml.nvmlDeviceGetPerformanceState(device) == 0
    assert pynvml.nvmlDeviceGetCurrPcieLinkGeneration(device) == model.pcie_generation
    assert pynvml.nvmlDeviceGetMaxPcieLinkGeneration(device) == model.pcie_generation
    assert pynvml.nvmlDeviceGetGpuMaxPcieLinkGeneration(device) == model.pcie_generation
    assert pynvml.nvmlDeviceGetCurrPcieLinkWidth(device) == 16
    assert pynvml.nvmlDeviceGetMaxPcieLinkWidth(device) == 16
    assert pynvml.nvmlDeviceGetPcieReplayCounter(device) == 0
    assert pynvml.nvmlDeviceGetNvLinkState(device, model.nvlink_links - 1) == 1
    version = {"h100": pynvml.NVML_NVLINK_VERSION_4_0, "a100": pynvml.NVML_NVLINK_VERSION_3_0}[model.key]
    assert pynvml.nvmlDeviceGetNvLinkVersion(device, 0) == version
    for call in (pynvml.nvmlDeviceGetNvLinkState, pynvml.nvmlDeviceGetNvLinkVersion):
        with pytest.raises(pynvml.NVMLError_InvalidArgument):
            call(device, model.nvlink_links)


@pytest.mark.usefixtures("node")
def test_power_and_clocks_stay_within_the_limits(model: GpuModel) -> None:
    device = handle()
    limit_mw = round(model.power_limit_w * 1000)
    assert pynvml.nvmlDeviceGetEnforcedPowerLimit(device) == limit_mw
    assert pynvml.nvmlDeviceGetPowerManagementDefaultLimit(device) == limit_mw
    assert pynvml.nvmlDeviceGetPowerManagementLimitConstraints(device)[1] == limit_mw
    assert 0.7 * limit_mw < pynvml.nvmlDeviceGetPowerUsage(device) < limit_mw
    # computing at 0.9 of the way from idle to the limit nine tenths of the time, exchanging at 0.45 the tenth
    mean_w = model.power_idle_w + (0.9 * 0.9 + 0.1 * 0.45) * (model.power_limit_w - model.power_idle_w)
    assert pynvml.nvmlDeviceGetTotalEnergyConsumption(device) == pytest.approx(20 * 1000 * mean_w, abs=2)
    assert pynvml.nvmlDeviceGetMaxClockInfo(device, 1) == model.sm_clock_max_mhz
    assert pynvml.nvmlDeviceGetMaxClockInfo(device, 2) == model.memory_clock_mhz
    assert pynvml.nvmlDeviceGetClockInfo(device, 1) == round(0.93 * model.sm_clock_max_mhz)
    assert pynvml.nvmlDeviceGetClockInfo(device, 2) == model.memory_clock_mhz
    for call in (pynvml.nvmlDeviceGetClockInfo, pynvml.nvmlDeviceGetMaxClockInfo):
        with pytest.raises(pynvml.NVMLError_InvalidArgument):
            call(device, 4)


@pytest.mark.usefixtures("node")
def test_temperature_old_and_new_say_the_same() -> None:
    device = handle()
    assert pynvml.nvmlDeviceGetTemperatureV(device, 0) == pynvml.nvmlDeviceGetTemperature(device, 0) == 62
    for call in (pynvml.nvmlDeviceGetTemperatureV, pynvml.nvmlDeviceGetTemperature):
        with pytest.raises(pynvml.NVMLError_InvalidArgument):
            call(device, 7)


@pytest.mark.usefixtures("node")
def test_memory_v1_counts_the_reserve_as_used_and_v2_does_not(model: GpuModel) -> None:
    device = handle()
    old = pynvml.nvmlDeviceGetMemoryInfo(device)
    new = pynvml.nvmlDeviceGetMemoryInfo(device, pynvml.nvmlMemory_v2)
    assert old.used + old.free == old.total == new.total == model.memory_bytes
    assert old.used == new.used + new.reserved
    assert new.used == round(0.85 * (model.memory_bytes - model.memory_reserved_bytes))
    assert pynvml.nvmlDeviceGetBAR1MemoryInfo(device).bar1Total == 128 * 1024**3
    with pytest.raises(pynvml.NVMLError_ArgumentVersionMismatch):
        pynvml.nvmlDeviceGetMemoryInfo(device, pynvml.nvmlMemory_v2 + 1)


def test_utilization_is_the_mean_of_the_last_full_window(enter: Enter) -> None:
    node = enter("storage_starved", gpus=1)
    pynvml.nvmlInit()
    node.advance(499_999_999)
    assert pynvml.nvmlDeviceGetUtilizationRates(handle(0)).gpu == 0
    node.advance(1)  # 0.3 s of 0.5 s had a kernel, and 0.45 of their memory bandwidth used
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle(0))
    assert (rates.gpu, rates.memory) == (60, 27)


@pytest.mark.usefixtures("node")
def test_processes_are_listed_with_their_memory() -> None:
    [process] = pynvml.nvmlDeviceGetComputeRunningProcesses(handle(1))
    assert process.pid == 4010
    assert process.usedGpuMemory == pynvml.nvmlDeviceGetMemoryInfo(handle(1), pynvml.nvmlMemory_v2).used
    assert process.gpuInstanceId == 0xFFFF_FFFF
    assert pynvml.nvmlDeviceGetGraphicsRunningProcesses(handle(1)) == []
    assert pynvml.nvmlDeviceGetMPSComputeRunningProcesses(handle(1)) == []


def test_nobody_has_a_process_on_a_free_gpu(enter: Enter) -> None:
    enter("idle_free", gpus=1)
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetComputeRunningProcesses(handle(0)) == []
    assert pynvml.nvmlDeviceGetMemoryInfo(handle(0), pynvml.nvmlMemory_v2).used < 16 * 1024**2
    assert pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle(0)) == 1


def test_clock_event_reasons_are_masked_and_counted(enter: Enter) -> None:
    node = enter("thermal_throttle", gpus=1)
    pynvml.nvmlInit()
    node.advance(int(1.5 * S))
    device = handle(0)
    assert pynvml.nvmlDeviceGetCurrentClocksEventReasons(device) == 0x40 | 0x8
    assert pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(device) == 0x40 | 0x8
    status = pynvml.nvmlDeviceGetViolationStatus(device, pynvml.NVML_PERF_POLICY_THERMAL)
    assert status.violationTime == pytest.approx(1.5 * S, abs=2)
    assert pynvml.nvmlDeviceGetViolationStatus(device, pynvml.NVML_PERF_POLICY_POWER).violationTime == 0
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetViolationStatus(device, pynvml.NVML_PERF_POLICY_TOTAL_APP_CLOCKS)


@pytest.mark.usefixtures("node")
def test_a_text_that_does_not_fit_is_refused() -> None:
    function = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetUUID")
    assert function(handle(), ctypes.create_string_buffer(41), 40) == pynvml.NVML_ERROR_INSUFFICIENT_SIZE
    assert function(handle(), None, 96) == pynvml.NVML_ERROR_INVALID_ARGUMENT


@pytest.mark.usefixtures("node")
def test_an_error_code_has_its_text() -> None:
    assert pynvml.nvmlErrorString(25) == "Argument Version Mismatch"
    assert pynvml.nvmlErrorString(4711) == "Unknown Error"


@pytest.mark.usefixtures("node")
def test_a_function_the_driver_has_not_is_not_found() -> None:
    with pytest.raises(pynvml.NVMLError_FunctionNotFound):
        pynvml.nvmlDeviceGetFanSpeed(handle())


@pytest.mark.usefixtures("node")
def test_a_handle_of_nothing_is_refused() -> None:
    function = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetUUID")
    for wrong in (None, ctypes.c_void_p(handle_address(0) + 1), ctypes.c_void_p(handle_address(2))):
        assert function(wrong, ctypes.create_string_buffer(96), 96) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def handle_address(index: int) -> int:
    return 0x7F00_0000_1000 + index * 0x100


def test_calls_and_field_values_are_counted(node: SteppedNode) -> None:
    before = node.face.calls["nvmlDeviceGetPowerUsage"]
    pynvml.nvmlDeviceGetPowerUsage(handle())
    pynvml.nvmlDeviceGetFieldValues(handle(), [83, 186])
    assert node.face.calls["nvmlDeviceGetPowerUsage"] == before + 1
    assert node.face.field_values == 2


@pytest.mark.parametrize(
    ("struct", "size"),
    [
        (pynvml.c_nvmlFieldValue_t, 40),
        (pynvml.c_nvmlProcessInfo_v3_t, 24),
        (pynvml.c_nvmlEventData_t, 32),
        (pynvml.c_nvmlMemory_v2_t, 40),
        (pynvml.nvmlPciInfo_t, 68),
        (pynvml.c_nvmlViolationTime_t, 16),
        (pynvml.c_nvmlTemperature_v1_t, 12),
        (pynvml.c_nvmlGpmMetric_t, 40),
        (pynvml.c_nvmlDeviceAttributes, 40),
    ],
)
def test_structs_have_the_size_of_the_c_header(struct: Any, size: int) -> None:
    assert ctypes.sizeof(struct) == size


def test_every_function_is_known_to_nvidia_ml_py() -> None:
    with open(pynvml.__file__, encoding="utf-8") as file:  # noqa: PTH123
        text = file.read()
    assert [name for name in FUNCTIONS if f'"{name}"' not in text] == []
