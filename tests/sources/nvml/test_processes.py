# SPDX-License-Identifier: Apache-2.0
"""Process lists: each process once, any number of them, and garbage known for what it is."""

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import pynvml
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpufeed.errors import Broken, DeviceLost, SourceError
from gpufeed.model.gpu import GpuProcess
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.simulate.faults import Fault
from gpufeed.sources.nvml.processes import ProcessLists
from nvml_bench import Bench

COMPUTE = "nvmlDeviceGetComputeRunningProcesses_v3"
GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses_v3"
MPS = "nvmlDeviceGetMPSComputeRunningProcesses_v3"
ARGUMENTS = (ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint), ctypes.c_void_p)
GPU = GpuKey(GpuUuid("GPU-x"))
UNKNOWN_MEMORY = 2**64 - 1


def lists(bench: Bench) -> ProcessLists:
    device, _ = bench.device()
    return ProcessLists(device)


def put(bench: Bench, function: str, processes: Sequence[tuple[int, int]]) -> None:
    def answer(_device: Any, count: Any, infos: int) -> int:
        room, count[0] = count[0], len(processes)
        if room < len(processes):
            return 7
        packed = b"".join(struct.pack("<I4xQII", pid, memory, 0xFFFF_FFFF, 0xFFFF_FFFF) for pid, memory in processes)
        ctypes.memmove(infos, packed, len(packed))
        return 0

    bench.put(function, ARGUMENTS, answer)


def read(these: ProcessLists) -> tuple[GpuProcess, ...] | None:
    failures: list[SourceError] = []
    found = these.read(GPU, failures)
    assert not failures
    return None if found is None else found.processes


def test_the_layout_is_that_of_the_header() -> None:
    from gpufeed.sources.nvml.processes import _PROCESS

    packed = _PROCESS.pack(4711, 99, 1, 2)
    info = pynvml.c_nvmlProcessInfo_v3_t.from_buffer_copy(packed)
    assert (info.pid, info.usedGpuMemory, info.gpuInstanceId, info.computeInstanceId) == (4711, 99, 1, 2)


def test_processes_are_those_of_the_node(bench: Bench) -> None:
    assert read(lists(bench)) == (GpuProcess(pid=int(bench.true("pid0")), used_memory_bytes=int(bench.true("bytes0"))),)


def test_a_process_in_two_lists_is_one_process(bench: Bench) -> None:
    put(bench, COMPUTE, [(20, 5), (10, UNKNOWN_MEMORY)])
    put(bench, GRAPHICS, [(10, 3), (20, 4)])
    put(bench, MPS, [(30, UNKNOWN_MEMORY)])

    assert read(lists(bench)) == (GpuProcess(10, 3), GpuProcess(20, 5), GpuProcess(30, None))


@given(count=st.integers(min_value=0, max_value=400))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_number_of_processes_is_listed(bench: Bench, count: int) -> None:
    put(bench, COMPUTE, [(pid, pid) for pid in range(1, count + 1)])

    assert read(lists(bench)) == tuple(GpuProcess(pid, pid) for pid in range(1, count + 1))


def test_a_buffer_that_was_too_small_is_not_too_small_again(bench: Bench) -> None:
    put(bench, COMPUTE, [(pid, 0) for pid in range(1, 101)])
    device, desk = bench.device()
    these = ProcessLists(device)
    these.read(GPU, [])
    before = desk.counts.nvml_calls
    these.read(GPU, [])

    assert desk.counts.nvml_calls - before == 3  # one for each list


def test_a_list_that_never_fits_fails_and_does_not_go_round(bench: Bench) -> None:
    calls = 0

    def answer(_device: Any, count: Any, _infos: int) -> int:
        nonlocal calls
        calls += 1
        count[0] = count[0] + 1
        return 7

    bench.put(COMPUTE, ARGUMENTS, answer)
    failures: list[SourceError] = []

    assert lists(bench).read(GPU, failures) is None
    assert [type(failure) for failure in failures] == [Broken]
    assert calls == 2


def test_more_processes_than_the_buffer_holds_are_not_believed(bench: Bench) -> None:
    def answer(_device: Any, count: Any, _infos: int) -> int:
        count[0] = 1_000_000
        return 0

    bench.put(COMPUTE, ARGUMENTS, answer)
    failures: list[SourceError] = []

    assert lists(bench).read(GPU, failures) is None
    assert len(failures) == 1


@pytest.mark.parametrize("pid", [0, 4_294_967_295])
def test_garbage_process_ids_show_another_struct_and_end_the_list(bench: Bench, pid: int) -> None:
    put(bench, COMPUTE, [(pid, 5)])
    put(bench, GRAPHICS, [(pid, 5)])
    put(bench, MPS, [(pid, 5)])
    these = lists(bench)

    assert read(these) is None
    assert these.is_missing
    assert "process id" in str(these.refusal)


def test_lists_that_a_driver_lacks_are_done_without(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="missing", function=MPS), Fault(effect="not_supported", function=GRAPHICS))

    assert len(read(lists(bench)) or ()) == 1


def test_half_of_the_lists_does_not_tell_that_a_gpu_is_free(bench: Bench) -> None:
    put(bench, COMPUTE, [])
    these = lists(bench)
    read(these)
    bench.node.set_faults(Fault(effect="error", function=GRAPHICS, code=999))
    failures: list[SourceError] = []

    assert these.read(GPU, failures) is None
    assert len(failures) == 1


def test_a_device_without_lists_is_not_a_device_without_processes(bench: Bench) -> None:
    bench.node.set_faults(*(Fault(effect="error", function=name, code=4) for name in (COMPUTE, GRAPHICS, MPS)))
    these = lists(bench)

    assert read(these) is None
    assert these.is_missing
    assert these.refusal is not None
    assert these.refusal.reason == "denied"


def test_a_lost_device_goes_up(bench: Bench) -> None:
    these = lists(bench)
    bench.node.set_faults(Fault(effect="lost", gpu=0))

    with pytest.raises(DeviceLost):
        these.read(GPU, [])
