# SPDX-License-Identifier: Apache-2.0
"""Which processes hold a context on a GPU.

The lists are among the dearest calls of NVML, and the wrapper calls twice: once for the size. Here a buffer that
lives as long as the GPU's reader is offered at once, and grown when the driver says that it is too small.
"""

import ctypes
import struct
from typing import Final

from gpufeed.errors import Broken, SourceError, Unsupported
from gpufeed.model.gpu import GpuProcess, GpuProcesses
from gpufeed.model.ids import GpuKey
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.faults import INSUFFICIENT_SIZE
from gpufeed.sources.nvml.getter import Getter

_FUNCTIONS: Final = (
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
)

# nvmlProcessInfo_t: pid, usedGpuMemory, gpuInstanceId, computeInstanceId
_PROCESS: Final = struct.Struct("<I4xQII")
_MEMORY_UNKNOWN: Final = 0xFFFF_FFFF_FFFF_FFFF
_FIRST_CAPACITY: Final = 64
_MAX_PROCESSES: Final = 65_536
_MAX_PID: Final = 4_194_304
"""PID_MAX_LIMIT of 64-bit kernels: a greater one shows that the struct is not what this driver writes."""


class ProcessLists:
    """The lists of one GPU: compute, graphics, and clients of the multi-process service."""

    def __init__(self, device: Device) -> None:
        self._lists = tuple(Getter(_ProcessList(device, function).read) for function in _FUNCTIONS)
        self.is_known = False  # which lists this device has: found out by the first read

    @property
    def is_missing(self) -> bool:
        """Whether no list answers here, as under MIG without rights."""
        return all(each.is_missing for each in self._lists)

    @property
    def refusal(self) -> SourceError | None:
        """Why the first list is missing."""
        return self._lists[0].refusal

    def read(self, gpu: GpuKey, failures: list[SourceError]) -> GpuProcesses | None:
        """Each process once; None where the lists cannot be had now. Raises DeviceLost and the like."""
        used: dict[int, int | None] = {}
        for each in self._lists:
            processes = each.read(failures)
            if processes is None and not each.is_missing:
                return None  # half of the lists would tell that a GPU is free when it is not
            for pid, memory_bytes in processes or ():
                used[pid] = memory_bytes if used.get(pid) is None else max(used[pid] or 0, memory_bytes or 0)
        self.is_known = True
        if self.is_missing:
            return None
        return GpuProcesses(
            gpu=gpu,
            processes=tuple(GpuProcess(pid=pid, used_memory_bytes=memory) for pid, memory in sorted(used.items())),
        )


class _ProcessList:
    def __init__(self, device: Device, function: str) -> None:
        self._device = device
        self._name = function
        self._grow(_FIRST_CAPACITY)

    def read(self) -> tuple[tuple[int, int | None], ...]:
        count = self._ask()
        answered = memoryview(self._buffer).cast("B")[: count * _PROCESS.size]
        return tuple(
            (self._checked(pid), None if memory_bytes == _MEMORY_UNKNOWN else memory_bytes)
            for pid, memory_bytes, _, _ in _PROCESS.iter_unpack(answered)
        )

    def _ask(self) -> int:
        nvml = self._device.nvml
        function = nvml.function(self._name)
        for _ in range(2):
            count = ctypes.c_uint(self._capacity)
            code = nvml.run_c(self._name, function, self._device.handle, ctypes.byref(count), self._buffer)
            if code != INSUFFICIENT_SIZE or count.value > _MAX_PROCESSES:
                break
            self._grow(max(count.value, self._capacity) * 2)  # more may start before the next call
        nvml.check(code, self._name)
        if count.value > self._capacity:
            raise Broken(f"{self._name}: {count.value} processes said to be in a list of {self._capacity}")
        return count.value

    def _grow(self, capacity: int) -> None:
        self._capacity = capacity
        self._buffer = ctypes.create_string_buffer(capacity * _PROCESS.size)

    def _checked(self, pid: int) -> int:
        if not 0 < pid <= _MAX_PID:
            raise Unsupported(f"{self._name}: process id {pid} cannot be: this driver writes another struct")
        return pid
