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
    present = gpu.moment.whole("processes")
    room, count[0] = count[0], present
    if present > room or (present and not infos):
        raise Status(INSUFFICIENT_SIZE)
    for at in range(present):
        infos[at].pid = gpu.moment.whole(f"pid{at}")
        infos[at].usedGpuMemory = gpu.moment.whole(f"bytes{at}")
        infos[at].gpuInstanceId = infos[at].computeInstanceId = _NO_INSTANCE


@TABLE.device("nvmlDeviceGetGraphicsRunningProcesses_v3", UINT_P, _LIST)
def _graphics(_gpu: Gpu, count: Any, _infos: Any) -> None:
    count[0] = 0


@TABLE.device("nvmlDeviceGetMPSComputeRunningProcesses_v3", UINT_P, _LIST)
def _mps(_gpu: Gpu, count: Any, _infos: Any) -> None:
    count[0] = 0
