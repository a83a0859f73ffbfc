# SPDX-License-Identifier: Apache-2.0
"""What is hard about standing in for a C library, and the faults it can be given."""

import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest

from gpufeed.simulate.block import BlockWriter, Header
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.faults import Fault, encode
from gpufeed.simulate.hardware import H100
from gpufeed.simulate.node import DiskNode, make_truth
from gpufeed.simulate.nvml import install, installed, uninstall
from gpufeed.simulate.scenarios import HEALTHY
from gpufeed.simulate.stepped import SteppedNode

S = 1_000_000_000
Enter = Callable[..., SteppedNode]


def device(index: int = 0) -> Any:
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByIndex(index)


def test_afterwards_nvidia_ml_py_is_as_if_never_used(tmp_path: Path) -> None:
    for _ in range(2):
        with SteppedNode("healthy", gpus=1, root=tmp_path, clock=SteppedClock()):
            pynvml.nvmlInit()
            assert pynvml.nvmlDeviceGetCount() == 1
        assert pynvml.nvmlLib is None
        assert pynvml._nvmlGetFunctionPointer_cache == {}
        with pytest.raises(pynvml.NVMLError_Uninitialized):
            pynvml.nvmlDeviceGetCount()


def test_nothing_is_answered_before_init_and_after_shutdown(enter: Enter) -> None:
    enter(gpus=1)
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetCount()
    pynvml.nvmlInit()
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    assert pynvml.nvmlDeviceGetCount() == 1
    pynvml.nvmlShutdown()
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetCount()


def test_an_exception_inside_becomes_unknown_error_and_is_raised_at_the_end(tmp_path: Path) -> None:
    def fails() -> None:
        with SteppedNode("healthy", gpus=1, root=tmp_path, clock=SteppedClock()) as node:
            handle = device()
            node.face.calls = None  # type: ignore[assignment]  # the next count fails
            with pytest.raises(pynvml.NVMLError_Unknown):
                pynvml.nvmlDeviceGetPowerUsage(handle)

    with pytest.raises(TypeError):
        fails()


def test_pointers_outlive_a_collection(enter: Enter) -> None:
    enter(gpus=1)
    handle = device()
    before = pynvml.nvmlDeviceGetPowerUsage(handle)
    gc.collect()
    assert pynvml.nvmlDeviceGetPowerUsage(handle) == before


def test_one_face_at_a_time(enter: Enter, tmp_path: Path) -> None:
    node = enter(gpus=1)
    assert install(str(tmp_path / "truth")) is node.face
    with pytest.raises(RuntimeError, match="already"):
        install(str(tmp_path / "another"))


def test_uninstalling_nothing_is_fine() -> None:
    uninstall()
    assert pynvml.nvmlLib is None


def test_a_half_written_truth_is_an_unknown_error(tmp_path: Path) -> None:
    path = tmp_path / "truth"
    node = DiskNode(make_truth(HEALTHY, H100, 1), tmp_path, path, period_ns=1)
    node.write_block(1, 1)
    with installed(str(path)) as face:
        pynvml.nvmlInit()
        content = bytearray(path.read_bytes())
        content[24] = 7
        with path.open("r+b") as file:
            file.write(content)
        with pytest.raises(pynvml.NVMLError_Unknown):
            pynvml.nvmlDeviceGetHandleByIndex(0)
        assert face.errors == []
    node.close()


def test_a_lost_gpu_says_so_and_its_neighbour_does_not_mind(enter: Enter) -> None:
    node = enter("gpu_lost", gpus=4)
    lost, well = device(3), device(2)
    node.advance(10 * S)
    assert pynvml.nvmlDeviceGetCount() == 4
    with pytest.raises(pynvml.NVMLError_GpuIsLost):
        pynvml.nvmlDeviceGetPowerUsage(lost)
    with pytest.raises(pynvml.NVMLError_GpuIsLost):
        pynvml.nvmlDeviceGetFieldValues(lost, [83])
    with pytest.raises(pynvml.NVMLError_GpuIsLost):
        pynvml.nvmlDeviceGetHandleByIndex(3)
    assert pynvml.nvmlDeviceGetPowerUsage(well) > 0


def test_a_driver_that_is_not_loaded_answers_once_it_is(enter: Enter) -> None:
    node = enter("driver_absent_then_present", gpus=1)
    with pytest.raises(pynvml.NVMLError_DriverNotLoaded):
        pynvml.nvmlInit()
    node.advance(15 * S)
    assert pynvml.nvmlDeviceGetName(device()) == "NVIDIA H100 80GB HBM3"


def test_a_hung_call_is_marked_where_time_is_stepped(enter: Enter) -> None:
    node = enter("driver_hang", gpus=4)
    hung, well = device(3), device(2)
    assert not node.is_blocked()
    node.advance(10 * S)
    pynvml.nvmlDeviceGetPowerUsage(hung)
    assert node.is_blocked()
    assert not node.is_blocked(), "it is about calls since it was last asked"
    pynvml.nvmlDeviceGetPowerUsage(well)
    assert not node.is_blocked()
    assert node.truth(3) == ("fault", "hung")
    assert node.truth(2)[0] != "fault"


def test_a_hung_call_waits_for_the_fault_to_end_where_time_is_real(tmp_path: Path) -> None:
    path = tmp_path / "truth"
    node = DiskNode(make_truth(HEALTHY, H100, 1), tmp_path, path, period_ns=40_000_000)
    node.write_block(1, 1, [Fault(effect="hang", gpu=0, function="nvmlDeviceGetPowerUsage")])
    with installed(str(path)):
        handle = device()
        answers: list[int] = []
        thread = threading.Thread(target=lambda: answers.append(pynvml.nvmlDeviceGetPowerUsage(handle)), daemon=True)
        thread.start()
        thread.join(0.1)
        assert thread.is_alive()
        assert pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) == 700_000, "another call goes on meanwhile"
        node.write_block(2, 2)
        thread.join(5)
        assert len(answers) == 1
    node.close()


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(effect="not_supported", function="nvmlDeviceGetPowerUsage"), pynvml.NVML_ERROR_NOT_SUPPORTED),
        (Fault(effect="error", function="nvmlDeviceGetPowerUsage", code=4), pynvml.NVML_ERROR_NO_PERMISSION),
        (Fault(effect="error"), pynvml.NVML_ERROR_UNKNOWN),
        (Fault(effect="lost", gpu=0), pynvml.NVML_ERROR_GPU_IS_LOST),
        (Fault(effect="missing", function="nvmlDeviceGetPowerUsage"), pynvml.NVML_ERROR_FUNCTION_NOT_FOUND),
    ],
)
def test_a_fault_has_its_effect_until_it_is_taken_away(enter: Enter, fault: Fault, error: int) -> None:
    node = enter(gpus=2)
    handle = device()
    node.set_faults(fault)
    with pytest.raises(pynvml.NVMLError) as caught:
        pynvml.nvmlDeviceGetPowerUsage(handle)
    assert caught.value.value == error
    node.set_faults()
    assert pynvml.nvmlDeviceGetPowerUsage(handle) > 0


def test_a_fault_of_one_gpu_or_function_is_of_no_other(enter: Enter) -> None:
    node = enter(gpus=2)
    first, second = device(0), device(1)
    node.set_faults(Fault(effect="error", function="nvmlDeviceGetPowerUsage", gpu=0))
    assert pynvml.nvmlDeviceGetPowerUsage(second) > 0
    assert pynvml.nvmlDeviceGetTotalEnergyConsumption(first) == 0
    assert pynvml.nvmlDeviceGetCount() == 2


def test_a_fault_can_come_after_some_calls(enter: Enter) -> None:
    node = enter(gpus=1)
    handle = device()
    node.set_faults(Fault(effect="not_supported", function="nvmlDeviceGetPowerUsage", after_calls=2))
    assert [pynvml.nvmlDeviceGetPowerUsage(handle) for _ in range(2)] == [637_000, 637_000]
    for _ in range(2):
        with pytest.raises(pynvml.NVMLError_NotSupported):
            pynvml.nvmlDeviceGetPowerUsage(handle)


def test_a_fault_of_one_field_leaves_the_others(enter: Enter) -> None:
    node = enter(gpus=1)
    handle = device()
    node.set_faults(Fault(effect="error", function="nvmlDeviceGetFieldValues", field=83, code=4))
    values = pynvml.nvmlDeviceGetFieldValues(handle, [83, 91])
    assert [value.nvmlReturn for value in values] == [4, 0]


def test_a_fault_of_init_concerns_no_device(enter: Enter) -> None:
    node = enter(gpus=1)
    node.set_faults(Fault(effect="error", function="nvmlInitWithFlags", code=18))
    with pytest.raises(pynvml.NVMLError_LibRmVersionMismatch):
        pynvml.nvmlInit()
    node.set_faults()
    pynvml.nvmlInit()


def test_init_can_hang(enter: Enter) -> None:
    node = enter(gpus=1)
    node.set_faults(Fault(effect="hang", function="nvmlInitWithFlags"))
    pynvml.nvmlInit()
    assert node.is_blocked()


def test_a_table_of_faults_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    writer = BlockWriter(str(tmp_path / "truth"), 1)
    header = Header(
        gpus=1, now_ns=1, wall_ns=1, period_ns=0, has_driver=True, fault_bytes=0, fault_turn=0, model="h100",
        driver_version="570",
    )  # fmt: skip
    too_many = encode([Fault(effect="hang", function=f"nvmlFunction{number}") for number in range(200)])
    with pytest.raises(ValueError, match="faults"):
        writer.write(header, [], too_many)
    writer.close()
