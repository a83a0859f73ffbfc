# SPDX-License-Identifier: Apache-2.0
"""Processes that hold a context."""

import ctypes
from typing import Any, Final

import pynvml

from gpufeed.simulate.nvml.library import INSUFFICIENT_SIZE, UINT_P, Gpu, Status, Table

TABLE: Final = Table()

_NO_INSTANCE: Final = 0xFFFF_FFFF
_LIST: Final = ctypes.POINTER(pynvml.c_nvmlProcessInfo_v3_t)


@TABLE.device("nvmlDeviceGetComputeRunningProcesses_v3", UINT_P, _LIST)
def _compute(gpu: Gpu, count: Any, infos: Any) -> None:
    parts = gpu.parts
    # the job is in the first instance; the whole board's list has all
    is_here = gpu.part is None or gpu.part == parts[0]
    present = gpu.moment.whole("processes") if is_here else 0
    room, count[0] = count[0], present
    if present > room or (present and not infos):
        raise Status(INSUFFICIENT_SIZE)
    for at in range(present):
        infos[at].pid = gpu.moment.whole(f"pid{at}")
        infos[at].usedGpuMemory = gpu.moment.whole(f"bytes{at}")
        infos[at].gpuInstanceId = parts[0].gi if parts else _NO_INSTANCE
        infos[at].computeInstanceId = parts[0].ci if parts else _NO_INSTANCE


@TABLE.device("nvmlDeviceGetGraphicsRunningProcesses_v3", UINT_P, _LIST)
def _graphics(_gpu: Gpu, count: Any, _infos: Any) -> None:
    count[0] = 0


@TABLE.device("nvmlDeviceGetMPSComputeRunningProcesses_v3", UINT_P, _LIST)
def _mps(_gpu: Gpu, count: Any, _infos: Any) -> None:
    count[0] = 0
