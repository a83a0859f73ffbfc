# SPDX-License-Identifier: Apache-2.0
"""Many field values in one driver call, without the cost and the traps of the convenience wrapper.

One array a batch, built once. It is restored from a pristine template before every call, because a driver may add to
what stands in an entry instead of setting it. The C function is called directly, and the answer is decoded in one
pass by the value type each entry names: only the bytes of that type are written.
"""

import ctypes
import struct
from collections.abc import Iterable, Iterator
from typing import Final

from gpufeed.errors import Denied, Unsupported
from gpufeed.sources.nvml.binding import Handle, Nvml, words_of
from gpufeed.sources.nvml.faults import SUCCESS, InvalidArgument, error_of, is_about_the_device, is_refusal
from gpufeed.sources.nvml.field_ids import Field

_CALL: Final = "nvmlDeviceGetFieldValues"

# nvmlFieldValue_t: fieldId, scopeId, timestamp, latencyUsec, valueType, nvmlReturn, value
_ENTRY: Final = struct.Struct("<IIqqIi8s")
_ANSWER: Final = struct.Struct("<24xIi8s")

_VALUE_TYPES: Final = {
    0: struct.Struct("<d"),
    1: struct.Struct("<I4x"),
    2: struct.Struct("<Q"),  # unsigned long, 64 bits on the platforms NVML is built for
    3: struct.Struct("<Q"),
    4: struct.Struct("<q"),
    5: struct.Struct("<i4x"),
    6: struct.Struct("<H6x"),
}

FieldValues = dict[Field, int | float]
"""Raw values of the fields that answered."""


class FieldBatch:
    """The fields of one GPU that are asked for together."""

    def __init__(self, nvml: Nvml, handle: Handle, fields: Iterable[Field]) -> None:
        self._nvml = nvml
        self._handle = handle
        self.is_known = False  # which fields this device has: found out by the first answer
        self._arrange(tuple(fields))

    @property
    def fields(self) -> tuple[Field, ...]:
        """What is asked for: once known, only what this device has."""
        return self._fields

    def read(self) -> FieldValues:
        """Values of the fields that answered. What is refused the first time is not asked for again.

        Raises SourceError; DeviceLost and DeviceResetRequired also where only an entry says so.
        """
        if not self._fields:
            return {}
        try:
            self._ask()
        except (Unsupported, Denied, InvalidArgument):
            if self.is_known:
                raise
            self._know(self._fields_that_answer_alone())
            return self.read()
        answers = tuple(self._answers())
        if not self.is_known:
            self._know(tuple(field for field, code, _ in answers if not is_refusal(code)))
        return _values(answers)

    def _fields_that_answer_alone(self) -> tuple[Field, ...]:
        """Where one field has the whole batch refused, the others need not go with it."""
        if len(self._fields) == 1:
            return ()
        return tuple(field for field in self._fields if FieldBatch(self._nvml, self._handle, (field,)).read())

    def _know(self, fields: tuple[Field, ...]) -> None:
        self.is_known = True
        self._arrange(fields)

    def _arrange(self, fields: tuple[Field, ...]) -> None:
        self._fields = fields
        self._template = b"".join(_ENTRY.pack(field.id, field.scope, 0, 0, 0, 0, bytes(8)) for field in fields)
        self._array = ctypes.create_string_buffer(self._template, max(len(self._template), 1))
        self._length = ctypes.c_int(len(fields))

    def _ask(self) -> None:
        ctypes.memmove(self._array, self._template, len(self._template))
        self._nvml.count_fields(len(self._fields))
        function = self._nvml.function(_CALL)
        self._nvml.check(self._nvml.run_c(_CALL, function, self._handle, self._length, self._array), _CALL)

    def _answers(self) -> Iterator[tuple[Field, int, int | float | None]]:
        answered = memoryview(self._array).cast("B")[: len(self._template)]
        for field, (value_type, code, raw) in zip(self._fields, _ANSWER.iter_unpack(answered), strict=True):
            decoder = _VALUE_TYPES.get(value_type) if code == SUCCESS else None
            yield field, code, None if decoder is None else decoder.unpack(raw)[0]


def _values(answers: Iterable[tuple[Field, int, int | float | None]]) -> FieldValues:
    values: FieldValues = {}
    for field, code, value in answers:
        if value is not None:
            values[field] = value
        elif is_about_the_device(code):
            raise error_of(code, f"{_CALL}({field.id})", words_of(code))
    return values
