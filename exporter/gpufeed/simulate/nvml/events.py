# SPDX-License-Identifier: Apache-2.0
"""Event sets: XIDs as they happen. What happened before a GPU was registered is not told."""

import ctypes
import time
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pynvml

from gpufeed.simulate.block import MAX_XIDS
from gpufeed.simulate.nvml.library import (
    ADDRESS,
    ADDRESS_P,
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    TIMEOUT,
    UINT,
    ULONGLONG_P,
    Gpu,
    Status,
    Table,
)

if TYPE_CHECKING:
    from gpufeed.simulate.nvml.face import Face

TABLE: Final = Table()

_XID: Final = 0x8
_MIG: Final = 0x100
_SUPPORTED: Final = 0x1 | 0x2 | 0x4 | _XID | 0x10 | _MIG
_RECOVERY_ACTION: Final = 0x8000
_FIRST_SET: Final = 0x7F20_0000_0000
_NO_INSTANCE: Final = 0xFFFF_FFFF
_POLL_S: Final = 0.01


class EventSets:
    """Event sets that exist, by address: GPU → (event types asked for, XIDs and changes of MIG already told)."""

    def __init__(self) -> None:
        self._addresses = count(_FIRST_SET, 0x40)
        self._sets: dict[int, dict[int, tuple[int, int, int]]] = {}

    def create(self) -> int:
        """A new set."""
        address = next(self._addresses)
        self._sets[address] = {}
        return address

    def get(self, address: int | None) -> dict[int, tuple[int, int, int]]:
        """What a set listens to. Raises Status."""
        found = self._sets.get(address or 0)
        if found is None:
            raise Status(INVALID_ARGUMENT)
        return found

    def free(self, address: int | None) -> None:
        """Forget a set. Raises Status."""
        if self._sets.pop(address or 0, None) is None:
            raise Status(INVALID_ARGUMENT)


@TABLE.device("nvmlDeviceGetSupportedEventTypes", ULONGLONG_P)
def _supported(gpu: Gpu, out: Any) -> None:
    out[0] = _types_of(gpu)


@TABLE.library("nvmlEventSetCreate", ADDRESS_P)
def _create(face: "Face", out: Any) -> None:
    out[0] = face.events.create()


@TABLE.library("nvmlEventSetFree", ADDRESS)
def _free(face: "Face", event_set: int | None) -> None:
    face.events.free(event_set)


@TABLE.device("nvmlDeviceRegisterEvents", ctypes.c_ulonglong, ADDRESS)
def _register(gpu: Gpu, types: int, event_set: int | None) -> None:
    if types & ~_types_of(gpu):
        raise Status(NOT_SUPPORTED)  # none of them is registered then
    gpu.face.events.get(event_set)[gpu.index] = (
        types,
        gpu.moment.whole("xids"),
        gpu.moment.whole("mig_changes"),
    )


@TABLE.library("nvmlEventSetWait_v2", ADDRESS, ctypes.POINTER(pynvml.c_nvmlEventData_t), UINT)
def _wait(face: "Face", event_set: int | None, out: Any, timeout_ms: int) -> None:
    left_s = timeout_ms / 1000
    while not _deliver(face, event_set, out.contents):
        # where time is stepped, nothing can happen while this call waits
        if left_s <= 0 or face.moment().header.period_ns == 0:
            raise Status(TIMEOUT)
        time.sleep(_POLL_S)
        left_s -= _POLL_S


def _deliver(face: "Face", event_set: int | None, data: Any) -> bool:
    listening = face.events.get(event_set)
    for index, (types, told, told_mig) in listening.items():
        face.suffer("nvmlEventSetWait_v2", index)
        moment = face.moment(index)
        if moment.whole("lost"):
            raise Status(GPU_IS_LOST)
        happened = moment.whole("xids")
        if types & _XID and happened > told:
            data.device = ctypes.cast(face.handle(index), pynvml.c_nvmlDevice_t)
            data.eventType = _XID
            data.eventData = moment.whole(f"xid{told % MAX_XIDS}")
            data.gpuInstanceId = data.computeInstanceId = _NO_INSTANCE
            listening[index] = (types, told + 1, told_mig)
            return True
        if types & _MIG and moment.whole("mig_changes") > told_mig:
            data.device = ctypes.cast(face.handle(index), pynvml.c_nvmlDevice_t)
            data.eventType, data.eventData = _MIG, 0
            data.gpuInstanceId = data.computeInstanceId = _NO_INSTANCE
            listening[index] = (types, told, moment.whole("mig_changes"))
            return True
    return False


def _types_of(gpu: Gpu) -> int:
    branch = int(gpu.moment.header.driver_version.split(".")[0])
    return _SUPPORTED | (_RECOVERY_ACTION if branch >= 570 else 0)  # noqa: PLR2004  # the branch that brought it
