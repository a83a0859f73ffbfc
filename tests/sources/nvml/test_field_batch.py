# SPDX-License-Identifier: Apache-2.0
"""Batches of field values: what is written by type, what is refused, and an array that lives on."""

import ctypes
import struct
from typing import Any

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import Broken, DeviceLost, DeviceResetRequired, Unsupported
from gpufeed.simulate.faults import Fault
from gpufeed.sources.nvml import field_ids
from gpufeed.sources.nvml.field_batch import FieldBatch
from gpufeed.sources.nvml.field_ids import Field
from nvml_bench import Bench

CALL = "nvmlDeviceGetFieldValues"
VALUES = ctypes.POINTER(pynvml.c_nvmlFieldValue_t)
ENERGY = field_ids.ENERGY
REPLAYS = field_ids.PCIE_REPLAYS
MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}


def batch_of(bench: Bench, *fields: Field) -> FieldBatch:
    device, _ = bench.device()
    return FieldBatch(device.nvml, device.handle, fields)


def test_values_are_those_of_the_node(bench: Bench) -> None:
    batch = batch_of(bench, ENERGY, field_ids.POWER_INSTANT, Field(field_ids.NVLINK_STATE, 3))
    bench.step(3)

    assert batch.read() == {
        ENERGY: int(1000 * bench.true("energy_j")),
        field_ids.POWER_INSTANT: round(1000 * bench.true("power_instant_w")),
        Field(field_ids.NVLINK_STATE, 3): 1,
    }


def test_a_field_the_driver_adds_to_does_not_grow_in_an_array_used_again(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="adds", function=CALL, field=ENERGY.id))
    bench.step(4)
    batch = batch_of(bench, ENERGY)

    readings = [batch.read()[ENERGY] for _ in range(3)]

    assert readings == [int(1000 * bench.true("energy_j"))] * 3


def test_a_32_bit_value_is_not_read_as_64_bits(bench: Bench) -> None:
    def answer(_device: Any, _count: int, values: Any) -> int:
        values[0].value.ullVal = 0x4544_4141_0000_1234  # what a driver leaves beside the four bytes it writes
        values[0].valueType = 1
        return 0

    bench.put(CALL, (ctypes.c_void_p, ctypes.c_int, VALUES), answer)

    assert batch_of(bench, REPLAYS).read() == {REPLAYS: 0x1234}


@given(value_type=st.sampled_from(sorted(MEMBERS)), raw=st.binary(min_size=8, max_size=8))
def test_every_value_type_is_decoded_as_the_union_of_the_header_has_it(value_type: int, raw: bytes) -> None:
    from gpufeed.sources.nvml.field_batch import _VALUE_TYPES

    expected = getattr(pynvml.c_nvmlValue_t.from_buffer_copy(raw), MEMBERS[value_type])
    (value,) = _VALUE_TYPES[value_type].unpack(raw)

    assert struct.pack("<d", value) == struct.pack("<d", expected)  # also equal where it is not a number


def test_an_entry_has_the_layout_of_the_header() -> None:
    from gpufeed.sources.nvml.field_batch import _ANSWER, _ENTRY

    fields = pynvml.c_nvmlFieldValue_t
    assert _ENTRY.size == _ANSWER.size == ctypes.sizeof(fields)
    entry = fields.from_buffer_copy(_ENTRY.pack(186, 2, 0, 0, 1, 3, struct.pack("<Q", 7)))
    assert (entry.fieldId, entry.scopeId, entry.valueType, entry.nvmlReturn, entry.value.ullVal) == (186, 2, 1, 3, 7)


def test_what_a_device_refuses_once_is_not_asked_again(bench: Bench) -> None:
    unknown, no_link = Field(9999), Field(field_ids.NVLINK_STATE, 99)  # not supported; invalid argument
    batch = batch_of(bench, unknown, ENERGY, no_link)

    assert batch.read().keys() == {ENERGY}
    asked_before = bench.node.face.field_values
    batch.read()

    assert batch.fields == (ENERGY,)
    assert bench.node.face.field_values - asked_before == 1


def test_a_field_that_fails_for_a_moment_is_asked_again(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="error", function=CALL, field=ENERGY.id, code=999))
    batch = batch_of(bench, ENERGY, REPLAYS)

    assert batch.read().keys() == {REPLAYS}
    bench.node.set_faults()

    assert batch.read().keys() == {ENERGY, REPLAYS}


@pytest.mark.parametrize(("code", "error"), [(15, DeviceLost), (16, DeviceResetRequired)])
def test_an_entry_that_tells_of_the_whole_device_is_believed(bench: Bench, code: int, error: type[Exception]) -> None:
    batch = batch_of(bench, ENERGY, REPLAYS)
    bench.node.set_faults(Fault(effect="error", function=CALL, field=ENERGY.id, code=code))

    with pytest.raises(error):
        batch.read()


def test_a_driver_without_field_values_gives_none_and_is_asked_once(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="missing", function=CALL))
    batch = batch_of(bench, ENERGY)

    assert batch.read() == {}
    before = bench.calls()

    assert batch.read() == {}
    assert batch.fields == ()
    assert bench.calls() == before


@pytest.mark.parametrize("code", [2, 3, 4])
def test_a_batch_that_is_refused_whole_is_not_asked_again(bench: Bench, code: int) -> None:
    bench.node.set_faults(Fault(effect="error", function=CALL, code=code))
    batch = batch_of(bench, ENERGY)

    assert batch.read() == {}
    assert batch.is_known
    assert batch.fields == ()


def test_one_field_that_has_the_batch_refused_does_not_take_the_others_with_it(bench: Bench) -> None:
    def answer(_device: Any, count: int, values: Any) -> int:
        if any(entry.fieldId == 9999 for entry in values[:count]):
            return 2
        for entry in values[:count]:
            entry.valueType, entry.value.ullVal = 3, entry.fieldId
        return 0

    bench.put(CALL, (ctypes.c_void_p, ctypes.c_int, VALUES), answer)

    assert batch_of(bench, ENERGY, Field(9999), REPLAYS).read() == {ENERGY: ENERGY.id, REPLAYS: REPLAYS.id}


def test_a_refusal_after_answers_counts_for_that_read_only(bench: Bench) -> None:
    batch = batch_of(bench, ENERGY)
    batch.read()
    bench.node.set_faults(Fault(effect="not_supported", function=CALL))
    with pytest.raises(Unsupported):
        batch.read()
    bench.node.set_faults()

    assert batch.read().keys() == {ENERGY}


def test_a_batch_that_fails_at_first_finds_out_later_what_there_is(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="error", function=CALL, code=999))
    batch = batch_of(bench, ENERGY, Field(9999))
    with pytest.raises(Broken):
        batch.read()
    bench.node.set_faults()

    assert not batch.is_known
    assert batch.read().keys() == {ENERGY}
    assert batch.fields == (ENERGY,)


def test_a_batch_that_fails_whole_raises(bench: Bench) -> None:
    batch = batch_of(bench, ENERGY)
    bench.node.set_faults(Fault(effect="error", function=CALL, code=999))

    with pytest.raises(Broken, match="nvmlDeviceGetFieldValues"):
        batch.read()


def test_a_value_of_an_unknown_type_is_no_value(bench: Bench) -> None:
    def answer(_device: Any, _count: int, values: Any) -> int:
        values[0].valueType = 77
        return 0

    bench.put(CALL, (ctypes.c_void_p, ctypes.c_int, VALUES), answer)

    assert batch_of(bench, ENERGY).read() == {}


def test_calls_and_fields_are_counted_and_named(bench: Bench) -> None:
    device, desk = bench.device()
    batch = FieldBatch(device.nvml, device.handle, (ENERGY, REPLAYS))
    calls = desk.counts.nvml_calls
    batch.read()

    assert (desk.counts.nvml_calls - calls, desk.counts.field_values, desk.call) == (1, 2, CALL)
