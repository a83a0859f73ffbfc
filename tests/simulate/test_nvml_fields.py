# SPDX-License-Identifier: Apache-2.0
"""Field values: ids by driver version, scopes, types, and that they count the truth."""

from collections.abc import Callable
from typing import Any

import pynvml
import pytest

from gpufeed.simulate.hardware import H100
from gpufeed.simulate.nvml.fields import fields_of
from gpufeed.simulate.stepped import SteppedNode

S = 1_000_000_000
ALL_LINKS = 0xFFFF_FFFF
Enter = Callable[..., SteppedNode]


def device(index: int = 0) -> Any:
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByIndex(index)


def one(handle: Any, field: int, scope: int = 0) -> Any:
    return pynvml.nvmlDeviceGetFieldValues(handle, [(field, scope)])[0]


def number(handle: Any, field: int, scope: int = 0) -> int:
    value = one(handle, field, scope)
    assert value.nvmlReturn == 0
    member = {1: "uiVal", 3: "ullVal", 5: "siVal"}[value.valueType]
    return int(getattr(value.value, member))


@pytest.mark.parametrize(
    ("version", "thermal", "absent"),
    [
        ("550.54.15", (), (197, 198, 230, 251, 269)),
        ("555.42.06", (), (230, 252, 270)),
        ("570.124.06", (), (251, 252, 253, 269, 270, 271)),
        ("575.57.08", (251, 252, 253), (269, 270, 271)),
        ("580.65.06", (251, 252, 253), (269, 270, 271)),
        ("580.82.07", (269, 270, 271), (251, 252, 253)),
        ("580.95.05", (269, 270, 271), (251, 252, 253)),
    ],
)
def test_thermal_counters_have_the_ids_of_their_driver(
    version: str, thermal: tuple[int, ...], absent: tuple[int, ...]
) -> None:
    known = fields_of(version)
    assert all(field in known for field in thermal)
    assert not any(field in known for field in absent)


def test_each_kind_of_slowdown_counts_by_itself(enter: Enter) -> None:
    node = enter("thermal_throttle", gpus=1)
    handle = device()
    node.advance(4 * S)  # two cycles of 1.6 s hot and 0.4 s not
    assert number(handle, 270) == pytest.approx(3.2 * S, abs=10)
    assert number(handle, 75) == pytest.approx(3.2 * S, abs=10)
    assert number(handle, 269) == number(handle, 271) == 0
    assert number(handle, 74) == pytest.approx(0.8 * 0.4 * S, abs=10)


def test_nvlink_totals_are_kib_since_the_driver_was_loaded(enter: Enter) -> None:
    node = enter("nvlink_bound", gpus=1)
    handle = device()
    node.advance(10 * S)
    total = 10 * (0.4 * 0.10 + 0.6 * 0.92) * 18 * 26562 * 1e6 / 1024
    for field in (138, 139, 140, 141):
        assert number(handle, field, ALL_LINKS) == pytest.approx(total, rel=1e-9, abs=2)
        assert number(handle, field, 17) == pytest.approx(total / 18, rel=1e-9, abs=2)
        assert one(handle, field, 18).nvmlReturn == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_pcie_bytes_wrap_at_32_bits(enter: Enter) -> None:
    node = enter("healthy", gpus=1)
    handle = device()
    node.advance(10 * S)
    received = 10 * 0.9 * 0.02 * 63e9
    sent = 10 * 0.9 * 0.01 * 63e9
    assert received > 2**32
    assert number(handle, 198) == pytest.approx(received % 2**32, abs=2)
    assert number(handle, 197) == pytest.approx(sent % 2**32, abs=2)


def test_what_a_link_is_asked_for_needs_its_number(enter: Enter) -> None:
    enter("healthy", gpus=1)
    handle = device()
    assert number(handle, 90) == number(handle, 164, 17) == H100.nvlink_link_mb_per_s
    assert number(handle, 91) == 18
    assert number(handle, 165, 0) == 1
    assert number(handle, 161, 3) == 0
    for field in (161, 164, 165):
        assert one(handle, field, 18).nvmlReturn == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_limits_and_margins(enter: Enter) -> None:
    enter("healthy", gpus=1)
    handle = device()
    assert [number(handle, field) for field in (187, 188, 189, 190)] == [200_000, 700_000, 700_000, 700_000]
    assert number(handle, 186) == 637_000
    assert number(handle, 193) == -8  # a signed number, with a type of its own
    assert number(handle, 82) == 70
    assert one(handle, 186, 1).nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_an_a100_has_no_mean_power_and_no_margins(enter: Enter) -> None:
    enter("healthy", "a100", 1)
    handle = device()
    for field in (185, 193, 194, 195, 196):
        assert one(handle, field).nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert one(handle, 161, 0).nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert number(handle, 91) == 12


def test_energy_and_errors(enter: Enter) -> None:
    node = enter("idle_free", gpus=1)
    handle = device()
    node.advance(100 * S)
    assert number(handle, 83) == pytest.approx(100 * 70 * 1000, abs=2)
    fixed = {1: 1, 2: 1, 3: 0, 4: 0, 5: 0, 6: 0, 38: 0, 94: 0, 95: 0, 142: 0, 143: 0, 144: 0, 145: 0, 230: 0}
    assert {field: number(handle, field) for field in fixed} == fixed
    assert [number(handle, field) for field in (76, 77, 78, 79, 80, 81)] == [0] * 6


def test_one_unknown_field_fails_alone(enter: Enter) -> None:
    enter("healthy", gpus=1)
    values = pynvml.nvmlDeviceGetFieldValues(device(), [83, 4711, 91])
    assert [value.nvmlReturn for value in values] == [0, pynvml.NVML_ERROR_NOT_SUPPORTED, 0]


def test_only_the_bytes_of_the_type_are_written(enter: Enter) -> None:
    enter("healthy", gpus=1)
    values = (pynvml.c_nvmlFieldValue_t * 1)()
    values[0].fieldId = 91
    values[0].value.ullVal = 0xFFFF_FFFF_FFFF_FFFF
    function = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetFieldValues")
    assert function(device(), 1, values) == 0
    assert values[0].value.ullVal == 0xFFFF_FFFF_0000_0012
