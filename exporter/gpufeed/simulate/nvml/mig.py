# SPDX-License-Identifier: Apache-2.0
"""MIG devices: their handles, which end with them, and the functions that take one."""

from dataclasses import replace
from typing import Any, Final

from gpufeed.simulate.nvml.library import (
    ADDRESS_P,
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    UINT,
    UINT_P,
    Gpu,
    Status,
    Table,
)

TABLE: Final = Table()

_FIRST_HANDLE: Final = 0x7F40_0000_0000
_OF_A_BOARD: Final = 0x100_0000
_OF_A_LIFE: Final = 0x100
_OF_A_PLACE: Final = 0x10

_OF_PARTS: Final = frozenset(
    {
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetName",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetBAR1MemoryInfo",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetMPSComputeRunningProcesses_v3",
        "nvmlDeviceGetGpuInstanceId",
        "nvmlDeviceGetComputeInstanceId",
    }
)
"""What can be asked of a MIG device; everything else is the board's alone."""


def is_part(handle: int | None) -> bool:
    """Whether a handle may be a MIG device's."""
    return (handle or 0) >= _FIRST_HANDLE


def board_of(handle: int) -> int:
    """NVML index of the board that it is on."""
    return (handle - _FIRST_HANDLE) // _OF_A_BOARD


def part_of(gpu: Gpu, handle: int, function: str) -> Gpu:
    """The MIG device of a handle, for one call. Raises Status."""
    for part in gpu.parts:
        if handle == _handle(gpu, part.place):
            if function not in _OF_PARTS:
                raise Status(NOT_SUPPORTED)
            return replace(gpu, part=part)
    raise Status(INVALID_ARGUMENT)  # it was destroyed


@TABLE.device("nvmlDeviceGetMigDeviceHandleByIndex", UINT, ADDRESS_P)
def _handle_by_index(gpu: Gpu, place: int, out: Any) -> None:
    if not gpu.board.model.has_mig:
        raise Status(NOT_SUPPORTED)
    if not any(part.place == place for part in gpu.parts):
        raise Status(NOT_FOUND)
    out[0] = _handle(gpu, place)


@TABLE.device("nvmlDeviceGetGpuInstanceId", UINT_P)
def _gpu_instance(gpu: Gpu, out: Any) -> None:
    if gpu.part is None:
        raise Status(INVALID_ARGUMENT)
    out[0] = gpu.part.gi


@TABLE.device("nvmlDeviceGetComputeInstanceId", UINT_P)
def _compute_instance(gpu: Gpu, out: Any) -> None:
    if gpu.part is None:
        raise Status(INVALID_ARGUMENT)
    out[0] = gpu.part.ci


def _handle(gpu: Gpu, place: int) -> int:
    life = gpu.moment.whole("mig_changes")
    return _FIRST_HANDLE + gpu.index * _OF_A_BOARD + life * _OF_A_LIFE + place * _OF_A_PLACE
