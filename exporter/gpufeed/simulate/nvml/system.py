# SPDX-License-Identifier: Apache-2.0
"""Init, shutdown, versions, and how devices are found."""

import ctypes
from typing import TYPE_CHECKING, Any, Final

from gpufeed.simulate.nvml.library import (
    ADDRESS,
    ADDRESS_P,
    GPU_IS_LOST,
    INT_P,
    INVALID_ARGUMENT,
    NOT_FOUND,
    UINT,
    UINT_P,
    Status,
    Table,
    write_text,
)

if TYPE_CHECKING:
    from gpufeed.simulate.nvml.face import Face

TABLE: Final = Table()

_CUDA_OF_BRANCH: Final = {
    525: 12000,
    535: 12020,
    550: 12040,
    555: 12050,
    560: 12060,
    565: 12070,
    570: 12080,
    575: 12090,
    580: 13000,
}


@TABLE.library("nvmlInitWithFlags", UINT, needs_init=False)
def _init(face: "Face", _flags: int) -> None:
    face.load()


@TABLE.library("nvmlShutdown")
def _shutdown(face: "Face") -> None:
    face.initialized -= 1


@TABLE.library("nvmlSystemGetDriverVersion", ADDRESS, UINT)
def _driver_version(face: "Face", buffer: int, length: int) -> None:
    write_text(face.moment().header.driver_version, buffer, length)


@TABLE.library("nvmlSystemGetNVMLVersion", ADDRESS, UINT)
def _nvml_version(face: "Face", buffer: int, length: int) -> None:
    write_text(f"12.{face.moment().header.driver_version}", buffer, length)


@TABLE.library("nvmlSystemGetCudaDriverVersion_v2", INT_P)
def _cuda_version(face: "Face", version: Any) -> None:
    branch = int(face.moment().header.driver_version.split(".")[0])
    version[0] = _CUDA_OF_BRANCH.get(branch, 13000)


@TABLE.library("nvmlDeviceGetCount_v2", UINT_P)
def _count(face: "Face", count: Any) -> None:
    count[0] = len(face.boards)


@TABLE.library("nvmlDeviceGetHandleByIndex_v2", UINT, ADDRESS_P)
def _by_index(face: "Face", index: int, device: Any) -> None:
    if index >= len(face.boards):
        raise Status(INVALID_ARGUMENT)
    _give(face, index, "nvmlDeviceGetHandleByIndex_v2", device)


@TABLE.library("nvmlDeviceGetHandleByUUID", ctypes.c_char_p, ADDRESS_P)
def _by_uuid(face: "Face", uuid: bytes | None, device: Any) -> None:
    for board in face.boards:
        if board.uuid.encode() == uuid:
            return _give(face, board.index, "nvmlDeviceGetHandleByUUID", device)
    raise Status(NOT_FOUND)


@TABLE.library("nvmlDeviceGetHandleByPciBusId_v2", ctypes.c_char_p, ADDRESS_P)
def _by_bus_id(face: "Face", bus_id: bytes | None, device: Any) -> None:
    wanted = (bus_id or b"").decode(errors="replace").lower()
    for board in face.boards:
        if board.pci_bus_id.split(":", 1)[1] == wanted.partition(":")[2]:
            return _give(face, board.index, "nvmlDeviceGetHandleByPciBusId_v2", device)
    raise Status(NOT_FOUND)


def _give(face: "Face", index: int, function: str, device: Any) -> None:
    face.suffer(function, index)
    if face.moment(index).whole("lost"):
        raise Status(GPU_IS_LOST)
    device[0] = face.handle(index)
