# SPDX-License-Identifier: Apache-2.0
"""What NVML says as errors of ours, why a library cannot be loaded, and who holds it open."""

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest

from gpufeed.errors import Absent, Broken, Denied, DeviceLost, DeviceResetRequired, SourceError, Unsupported
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.faults import Fault
from gpufeed.sources.contract import Board, Desk
from gpufeed.sources.nvml.binding import Nvml, module_id
from gpufeed.sources.nvml.faults import (
    DriverMismatch,
    DriverNotLoaded,
    HandleGone,
    InvalidArgument,
    LibraryMissing,
    LibraryUnusable,
    NoEvent,
    error_of,
)
from nvml_bench import Bench

POWER = "nvmlDeviceGetPowerUsage"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (1, HandleGone), (2, InvalidArgument), (3, Unsupported), (4, Denied), (6, Absent), (9, DriverNotLoaded),
        (10, NoEvent), (13, Unsupported), (15, DeviceLost), (16, DeviceResetRequired), (17, Denied),
        (18, DriverMismatch), (25, Unsupported), (27, Broken), (28, HandleGone), (999, Broken), (4711, Broken),
    ],
)  # fmt: skip
def test_return_codes_become_our_errors(bench: Bench, code: int, error: type[SourceError]) -> None:
    device, _ = bench.device()
    bench.node.set_faults(Fault(effect="error", function=POWER, code=code))

    with pytest.raises(error) as raised:
        device.power_w()

    assert type(raised.value) is error
    assert POWER in str(raised.value)
    assert str(code) in str(raised.value)


def test_an_error_with_value_zero_means_that_there_is_nothing_to_list(bench: Bench) -> None:
    def answer(*_arguments: Any) -> int:
        return 0  # the sizing call succeeds: the wrapper takes that for an error

    bench.put("nvmlDeviceGetProcessUtilization", (ctypes.c_void_p,) * 4, answer)
    device, _ = bench.device()

    with pytest.raises(Absent):
        device.nvml.call("nvmlDeviceGetProcessUtilization", device.handle, 0)


def test_our_errors_compare_and_hash_where_those_of_the_binding_do_not(bench: Bench) -> None:
    device, _ = bench.device()
    bench.node.set_faults(Fault(effect="error", function=POWER, code=999))

    with pytest.raises(SourceError) as raised:
        device.power_w()

    anything: object = 3
    assert raised.value != anything
    assert len({raised.value, raised.value}) == 1
    assert raised.value.__cause__ is None
    with pytest.raises(AttributeError):
        assert pynvml.NVMLError(3) == 3
    with pytest.raises(TypeError):
        hash(pynvml.NVMLError(3))


def test_a_versioned_function_that_the_driver_lacks_is_unsupported(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="missing", function="nvmlDeviceGetComputeRunningProcesses_v3"))
    device, _ = bench.device()

    with pytest.raises(Unsupported):  # the wrapper raises an error that is no NVMLError
        device.nvml.call("nvmlDeviceGetComputeRunningProcesses", device.handle)


def test_a_function_that_the_driver_lacks_is_unsupported(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="missing", function="nvmlDeviceGetTemperatureV"))
    device, _ = bench.device()

    with pytest.raises(Unsupported, match="nvmlDeviceGetTemperatureV"):
        device.temperature_c()


def test_a_function_that_the_binding_lacks_is_unsupported(bench: Bench) -> None:
    device, _ = bench.device()

    with pytest.raises(Unsupported, match="nvidia-ml-py"):
        device.nvml.call("nvmlDeviceGetSomethingOfTheYear2040", device.handle)


def test_a_name_that_is_no_text_is_an_error_of_that_call(bench: Bench) -> None:
    def answer(_device: Any, buffer: int, _length: int) -> int:
        ctypes.memmove(buffer, b"\xff\xfe\0", 3)
        return 0

    bench.put("nvmlDeviceGetName", (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint), answer)
    device, _ = bench.device()

    with pytest.raises(Broken, match="nvmlDeviceGetName"):
        device.text("nvmlDeviceGetName")


def test_each_call_is_counted_and_named_before_it_starts(bench: Bench) -> None:
    device, desk = bench.device()
    named: list[str] = []

    def answer(*_arguments: Any) -> int:
        named.append(desk.call)
        return 3

    bench.put(POWER, (ctypes.c_void_p, ctypes.c_void_p), answer)
    before = desk.counts.nvml_calls
    with pytest.raises(Unsupported):
        device.power_w()

    assert named == [POWER]
    assert desk.counts.nvml_calls - before == 1


def test_module_ids_of_two_threads_are_not_one_object(bench: Bench) -> None:
    first, _ = bench.device(0)
    second, _ = bench.device(1)

    assert (module_id(first.nvml, first.handle), module_id(second.nvml, second.handle)) == (1, 2)


def test_nvml_stays_open_while_another_lane_holds_it(bench: Bench) -> None:
    first, _ = bench.device(0)
    second, _ = bench.device(1)

    first.nvml.close()

    assert second.power_w() is not None
    second.nvml.close()
    with pytest.raises(HandleGone):
        second.power_w()


def test_closing_twice_gives_back_one_share(bench: Bench) -> None:
    first, _ = bench.device(0)
    second, _ = bench.device(1)

    first.nvml.close()
    first.nvml.close()

    assert second.power_w() is not None


@pytest.fixture
def loader(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """No library is loaded; what is asked for is looked for at the paths put here, in turn."""
    paths: list[str] = []
    load = ctypes.CDLL
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", lambda _name: load(paths.pop(0)))
    yield paths
    pynvml.nvmlLib = None
    pynvml._nvmlGetFunctionPointer_cache.clear()


def lone_nvml(tmp_path: Path) -> Nvml:
    from gpufeed.model.desired import ProbeConfig
    from gpufeed.model.ids import LaneId

    config = ProbeConfig(runtime_dir=str(tmp_path))
    return Nvml(Desk(lane=LaneId("nvml-init"), clock=SteppedClock(), config=config, board=Board()))


def test_a_corrupt_library_says_so_and_is_not_called_missing(loader: list[str], tmp_path: Path) -> None:
    library = tmp_path / "libnvidia-ml.so.1"
    library.write_bytes(b"not a library")
    loader.append(str(library))

    with pytest.raises(LibraryUnusable, match="libnvidia-ml") as raised:
        lone_nvml(tmp_path).open()

    assert raised.value.reason == "broken"
    assert "Not Found" not in str(raised.value)


def test_a_missing_library_is_absent_and_named(loader: list[str], tmp_path: Path) -> None:
    loader.append(str(tmp_path / "libnvidia-ml.so.1"))

    with pytest.raises(LibraryMissing, match=r"libnvidia-ml\.so\.1") as raised:
        lone_nvml(tmp_path).open()

    assert raised.value.reason == "absent"


def test_a_library_that_appears_later_is_found(loader: list[str], tmp_path: Path) -> None:
    nvml = lone_nvml(tmp_path)
    loader.extend([str(tmp_path / "libnvidia-ml.so.1"), str(ctypes.CDLL(None)._name or "libc.so.6")])
    with pytest.raises(LibraryMissing):
        nvml.open()

    with pytest.raises(Unsupported, match="nvmlInit"):  # libc was loaded: it has no such function
        nvml.open()


def test_an_unknown_code_is_an_error_like_any_other() -> None:
    assert type(error_of(4711, "nvmlInit", "?")) is Broken
