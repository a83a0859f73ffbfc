# SPDX-License-Identifier: Apache-2.0
"""What changes while a job runs: utilization, memory, power, temperature, clocks, the PCIe link."""

import ctypes
from typing import Any, Final

import pynvml

from gpufeed.simulate.mig import EMPTY_BYTES, MEMORY_SLICES
from gpufeed.simulate.nvml.library import (
    ARGUMENT_VERSION_MISMATCH,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    UINT,
    UINT_P,
    ULONGLONG_P,
    Gpu,
    Status,
    Table,
)

TABLE: Final = Table()

NS_PER_S: Final = 1_000_000_000

_CLOCK_MEMORY: Final = 2
_CLOCK_VIDEO: Final = 3
_SENSOR_GPU: Final = 0
_CODEC_PERIOD_US: Final = 167_000
SLOWDOWN_C: Final = 87
"""Degrees of the sensor at which boards that tell a margin have none left."""

_POLICIES: Final = {
    0: ("sw_power_cap",),
    1: ("sw_thermal", "hw_thermal"),
    2: ("sync_boost",),
    3: ("board_limit",),
    4: ("low_utilization",),
    5: ("reliability",),
}
"""nvmlPerfPolicyType_t → the reasons whose time it counts. The thermal one knows no difference of kind."""


@TABLE.device("nvmlDeviceGetUtilizationRates", ctypes.POINTER(pynvml.c_nvmlUtilization_t))
def _utilization(gpu: Gpu, out: Any) -> None:
    _require(not gpu.is_mig)
    out.contents.gpu = round(100 * gpu.moment.value("utilization_ratio"))
    out.contents.memory = round(100 * gpu.moment.value("memory_utilization_ratio"))


@TABLE.device("nvmlDeviceGetMemoryInfo", ctypes.POINTER(pynvml.c_nvmlMemory_t))
def _memory(gpu: Gpu, out: Any) -> None:
    _require(gpu.board.model.has_framebuffer)
    total, reserved, used = _memory_of(gpu)
    out.contents.total, out.contents.used, out.contents.free = total, used + reserved, total - reserved - used


@TABLE.device("nvmlDeviceGetMemoryInfo_v2", ctypes.POINTER(pynvml.c_nvmlMemory_v2_t))
def _memory_v2(gpu: Gpu, out: Any) -> None:
    if out.contents.version != pynvml.nvmlMemory_v2:
        raise Status(ARGUMENT_VERSION_MISMATCH)
    _require(gpu.board.model.has_framebuffer)
    out.contents.total, out.contents.reserved, out.contents.used = total, reserved, used = _memory_of(gpu)
    out.contents.free = total - reserved - used


@TABLE.device("nvmlDeviceGetBAR1MemoryInfo", ctypes.POINTER(pynvml.c_nvmlBAR1Memory_t))
def _bar1(gpu: Gpu, out: Any) -> None:
    _require(gpu.board.model.has_framebuffer)
    # the aperture covers the memory, rounded up to a power of two
    out.contents.bar1Total = 1 << (gpu.memory_bytes - 1).bit_length()
    out.contents.bar1Used = gpu.moment.whole("bar1_used_bytes")
    out.contents.bar1Free = out.contents.bar1Total - out.contents.bar1Used


@TABLE.device("nvmlDeviceGetPowerUsage", UINT_P)
def _power(gpu: Gpu, out: Any) -> None:
    out[0] = round(1000 * gpu.moment.value("power_w"))


@TABLE.device("nvmlDeviceGetTotalEnergyConsumption", ULONGLONG_P)
def _energy(gpu: Gpu, out: Any) -> None:
    _require(gpu.board.model.has_energy)
    out[0] = int(1000 * gpu.moment.value("energy_j"))


@TABLE.device("nvmlDeviceGetTemperature", UINT, UINT_P)
def _temperature(gpu: Gpu, sensor: int, out: Any) -> None:
    if sensor != _SENSOR_GPU:
        raise Status(INVALID_ARGUMENT)
    out[0] = round(gpu.moment.value("temperature_c"))


@TABLE.device("nvmlDeviceGetTemperatureV", ctypes.POINTER(pynvml.c_nvmlTemperature_v1_t))
def _temperature_v(gpu: Gpu, out: Any) -> None:
    if out.contents.version != pynvml.nvmlTemperature_v1:
        raise Status(ARGUMENT_VERSION_MISMATCH)
    if out.contents.sensorType != _SENSOR_GPU:
        raise Status(INVALID_ARGUMENT)
    out.contents.temperature = round(gpu.moment.value("temperature_c"))


@TABLE.device("nvmlDeviceGetClockInfo", UINT, UINT_P)
def _clock(gpu: Gpu, domain: int, out: Any) -> None:
    if domain > _CLOCK_VIDEO:
        raise Status(INVALID_ARGUMENT)
    _require(domain != _CLOCK_MEMORY or gpu.board.model.memory_clock_mhz > 0)
    out[0] = gpu.moment.whole(
        {_CLOCK_MEMORY: "memory_clock_mhz", _CLOCK_VIDEO: "video_clock_mhz"}.get(domain, "sm_clock_mhz")
    )


@TABLE.device("nvmlDeviceGetCurrentClocksEventReasons", ULONGLONG_P)
def _clock_events(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.moment.whole("clock_events")


@TABLE.device("nvmlDeviceGetCurrentClocksThrottleReasons", ULONGLONG_P)
def _throttle_reasons(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.moment.whole("clock_events")


@TABLE.device("nvmlDeviceGetViolationStatus", UINT, ctypes.POINTER(pynvml.c_nvmlViolationTime_t))
def _violation(gpu: Gpu, policy: int, out: Any) -> None:
    reasons = _POLICIES.get(policy)
    if reasons is None:
        raise Status(NOT_SUPPORTED)
    out.contents.referenceTime = gpu.moment.header.wall_ns // 1000
    out.contents.violationTime = int(NS_PER_S * sum(gpu.moment.value(f"{reason}_s") for reason in reasons))


@TABLE.device("nvmlDeviceGetPerformanceState", UINT_P)
def _performance_state(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.moment.whole("performance_state")


@TABLE.device("nvmlDeviceGetCurrPcieLinkGeneration", UINT_P)
def _pcie_generation(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.moment.whole("pcie_generation")


@TABLE.device("nvmlDeviceGetCurrPcieLinkWidth", UINT_P)
def _pcie_width(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.moment.whole("pcie_width")


@TABLE.device("nvmlDeviceGetPcieReplayCounter", UINT_P)
def _pcie_replays(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.moment.whole("pcie_replays")


@TABLE.device("nvmlDeviceGetMarginTemperature", ctypes.POINTER(pynvml.c_nvmlMarginTemperature_v1_t))
def _margin(gpu: Gpu, out: Any) -> None:
    if out.contents.version != pynvml.nvmlMarginTemperature_v1:
        raise Status(ARGUMENT_VERSION_MISMATCH)
    _require(gpu.board.model.has_temperature_limits)
    out.contents.marginTemperature = SLOWDOWN_C - round(gpu.moment.value("temperature_c"))


@TABLE.device("nvmlDeviceGetEncoderUtilization", UINT_P, UINT_P)
def _encoder(gpu: Gpu, percent: Any, period_us: Any) -> None:
    _require(not gpu.is_mig)
    percent[0], period_us[0] = gpu.moment.whole("encoder_percent"), _CODEC_PERIOD_US


@TABLE.device("nvmlDeviceGetDecoderUtilization", UINT_P, UINT_P)
def _decoder(gpu: Gpu, percent: Any, period_us: Any) -> None:
    _require(not gpu.is_mig)
    percent[0], period_us[0] = gpu.moment.whole("decoder_percent"), _CODEC_PERIOD_US


def _memory_of(gpu: Gpu) -> tuple[int, int, int]:
    """Total, reserved by the driver, used; the job is in the first instance."""
    total, reserved = gpu.memory_bytes, gpu.board.model.memory_reserved_bytes
    if gpu.part is None:
        return total, reserved, gpu.moment.whole("memory_used_bytes")
    reserved = reserved * gpu.part.memory_slices // MEMORY_SLICES
    is_first = gpu.part.gi == gpu.parts[0].gi
    return total, reserved, min(gpu.moment.whole("memory_used_bytes"), total - reserved) if is_first else EMPTY_BYTES


def _require(has: bool) -> None:  # noqa: FBT001  # the name says it
    if not has:
        raise Status(NOT_SUPPORTED)
