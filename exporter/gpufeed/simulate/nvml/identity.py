# SPDX-License-Identifier: Apache-2.0
"""What does not change while the driver is loaded: names, numbers, limits, modes."""

import ctypes
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

import pynvml

from gpufeed.simulate.gpu_model import TemperatureLimits
from gpufeed.simulate.mig import SLICES, MigDevice
from gpufeed.simulate.nvml.library import (
    ADDRESS,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    UINT,
    UINT_P,
    Gpu,
    Status,
    Table,
    write_text,
)

TABLE: Final = Table()

_CLOCK_MEMORY: Final = 2
_CLOCK_VIDEO: Final = 3


@TABLE.device("nvmlDeviceGetUUID", ADDRESS, UINT)
def _uuid(gpu: Gpu, buffer: int, length: int) -> None:
    write_text(gpu.board.uuid if gpu.part is None else mig_uuid(gpu, gpu.part), buffer, length)


@TABLE.device("nvmlDeviceGetSerial", ADDRESS, UINT)
def _serial(gpu: Gpu, buffer: int, length: int) -> None:
    _require(gpu.board.model.has_serial)
    write_text(gpu.board.serial, buffer, length)


@TABLE.device("nvmlDeviceGetName", ADDRESS, UINT)
def _name(gpu: Gpu, buffer: int, length: int) -> None:
    part = gpu.part
    size = "" if part is None else f" MIG {part.slices}g.{gpu.memory_bytes >> 30}gb"
    write_text(gpu.board.model.name + size, buffer, length)


@TABLE.device("nvmlDeviceGetBoardPartNumber", ADDRESS, UINT)
def _part_number(gpu: Gpu, buffer: int, length: int) -> None:
    _require(bool(gpu.board.model.part_number))
    write_text(gpu.board.model.part_number, buffer, length)


@TABLE.device("nvmlDeviceGetVbiosVersion", ADDRESS, UINT)
def _vbios(gpu: Gpu, buffer: int, length: int) -> None:
    write_text(gpu.board.model.vbios, buffer, length)


@TABLE.device("nvmlDeviceGetInforomImageVersion", ADDRESS, UINT)
def _inforom(gpu: Gpu, buffer: int, length: int) -> None:
    _require(bool(gpu.board.model.inforom))
    write_text(gpu.board.model.inforom, buffer, length)


@TABLE.device("nvmlDeviceGetPciInfo_v3", ctypes.POINTER(pynvml.nvmlPciInfo_t))
def _pci(gpu: Gpu, out: Any) -> None:
    board, info = gpu.board, out.contents
    info.busIdLegacy = f"{board.pci_bus_id}".upper().encode()
    info.busId = f"0000{board.pci_bus_id}".upper().encode()  # eight digits of domain
    info.domain, info.bus, info.device = 0, board.bus, 0
    info.pciDeviceId = board.model.pci_device_id
    info.pciSubSystemId = board.model.pci_subsystem


@TABLE.device("nvmlDeviceGetIndex", UINT_P)
def _index(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.index


@TABLE.device("nvmlDeviceGetMinorNumber", UINT_P)
def _minor(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.index


@TABLE.device("nvmlDeviceGetModuleId", UINT_P)
def _module_id(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.index + 1


@TABLE.device("nvmlDeviceGetArchitecture", UINT_P)
def _architecture(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.board.model.architecture


@TABLE.device("nvmlDeviceGetAttributes_v2", ctypes.POINTER(pynvml.c_nvmlDeviceAttributes))
def _attributes(gpu: Gpu, out: Any) -> None:
    attributes = out.contents
    attributes.multiprocessorCount = gpu.board.model.sm_count
    attributes.memorySizeMB = gpu.board.model.memory_bytes // (1024 * 1024)


@TABLE.device("nvmlDeviceGetNumGpuCores", UINT_P)
def _cores(gpu: Gpu, out: Any) -> None:
    model = gpu.board.model
    out[0] = model.sm_count * (128 if model.cuda_capability >= (8, 6) else 64)


@TABLE.device("nvmlDeviceGetCudaComputeCapability", UINT_P, UINT_P)
def _capability(gpu: Gpu, major: Any, minor: Any) -> None:
    major[0], minor[0] = gpu.board.model.cuda_capability


@TABLE.device("nvmlDeviceGetEnforcedPowerLimit", UINT_P)
def _power_limit(gpu: Gpu, out: Any) -> None:
    _require(gpu.board.model.has_power_limit)
    out[0] = round(gpu.board.model.power_limit_w * 1000)


@TABLE.device("nvmlDeviceGetPowerManagementDefaultLimit", UINT_P)
def _power_default(gpu: Gpu, out: Any) -> None:
    _require(gpu.board.model.has_power_limit)
    out[0] = round(gpu.board.model.power_limit_w * 1000)


@TABLE.device("nvmlDeviceGetPowerManagementLimitConstraints", UINT_P, UINT_P)
def _power_constraints(gpu: Gpu, lowest: Any, highest: Any) -> None:
    _require(gpu.board.model.has_power_limit)
    lowest[0] = round(gpu.board.model.power_minimum_w * 1000)
    highest[0] = round(gpu.board.model.power_limit_w * 1000)


@TABLE.device("nvmlDeviceGetMaxClockInfo", UINT, UINT_P)
def _clock_max(gpu: Gpu, domain: int, out: Any) -> None:
    if domain > _CLOCK_VIDEO:
        raise Status(INVALID_ARGUMENT)
    model = gpu.board.model
    _require(domain != _CLOCK_MEMORY or model.memory_clock_mhz > 0)
    out[0] = model.memory_clock_mhz if domain == _CLOCK_MEMORY else model.sm_clock_max_mhz


@TABLE.device("nvmlDeviceGetPersistenceMode", UINT_P)
def _persistence(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.moment.whole("persistence")


@TABLE.device("nvmlDeviceGetComputeMode", UINT_P)
def _compute_mode(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.moment.whole("compute_mode")


@TABLE.device("nvmlDeviceGetMigMode", UINT_P, UINT_P)
def _mig_mode(gpu: Gpu, current: Any, pending: Any) -> None:
    if not gpu.board.model.has_mig:
        raise Status(NOT_SUPPORTED)
    current[0] = pending[0] = int(gpu.is_mig)


@TABLE.device("nvmlDeviceGetMaxMigDeviceCount", UINT_P)
def _mig_devices(gpu: Gpu, out: Any) -> None:
    out[0] = SLICES if gpu.board.model.has_mig else 0


@TABLE.device("nvmlDeviceGetVirtualizationMode", UINT_P)
def _virtualization(_gpu: Gpu, out: Any) -> None:
    out[0] = 0


@TABLE.device("nvmlDeviceGetMaxPcieLinkGeneration", UINT_P)
def _pcie_generation_max(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.board.model.pcie_generation


@TABLE.device("nvmlDeviceGetGpuMaxPcieLinkGeneration", UINT_P)
def _pcie_generation_gpu(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.board.model.pcie_generation


@TABLE.device("nvmlDeviceGetMaxPcieLinkWidth", UINT_P)
def _pcie_width_max(gpu: Gpu, out: Any) -> None:
    out[0] = gpu.board.model.pcie_width


@TABLE.device("nvmlDeviceGetTemperatureThreshold", UINT, UINT_P)
def _temperature_threshold(gpu: Gpu, limit: int, out: Any) -> None:
    limits = gpu.board.model.temperature_limits
    if limit >= len(TemperatureLimits._fields):
        raise Status(INVALID_ARGUMENT)
    # newer boards know margins only; the memory of some has no limit
    threshold = None if limits is None or gpu.board.model.has_temperature_limits else limits[limit]
    if threshold is None:
        raise Status(NOT_SUPPORTED)
    out[0] = threshold


def mig_uuid(gpu: Gpu, part: MigDevice) -> str:
    """The same for the same place on the same board, also after it was created anew: so the driver makes them."""
    return f"MIG-{uuid5(NAMESPACE_OID, f'{gpu.board.uuid}/{part.gi}/{part.ci}')}"


def _require(has: bool) -> None:  # noqa: FBT001  # the name says it
    if not has:
        raise Status(NOT_SUPPORTED)
