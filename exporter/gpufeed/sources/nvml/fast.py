# SPDX-License-Identifier: Apache-2.0
"""What changes within a second: one batch of fields, and the few calls that no field covers."""

from collections.abc import Callable
from typing import Final

from gpufeed.errors import Broken, SourceError
from gpufeed.model.gpu import ClockEventReason, GpuFast, PcieBytes
from gpufeed.model.ids import GpuKey
from gpufeed.sources.nvml import field_ids, quantities
from gpufeed.sources.nvml.device import GRAPHICS_CLOCK, MEMORY_CLOCK, SM_CLOCK, Device, Memory, Utilization
from gpufeed.sources.nvml.field_batch import FieldBatch, FieldValues
from gpufeed.sources.nvml.field_ids import Field, clock_event_fields
from gpufeed.sources.nvml.getter import Getter

_FIELDS: Final = (
    field_ids.MEMORY_TEMPERATURE,
    field_ids.ENERGY,
    field_ids.POWER_AVERAGE,
    field_ids.POWER_INSTANT,
    field_ids.POWER_LIMIT_ENFORCED,
    field_ids.PCIE_TRANSMIT,
    field_ids.PCIE_RECEIVE,
)
_NO_UTILIZATION: Final = Utilization(None, None)
_NO_MEMORY: Final = Memory(None, None, None, None)
_BITS_32: Final = 32
_BITS_64: Final = 64

Convert = Callable[[float], float | None]


class FastReadings:
    """The fast readings of one GPU. Which of them it has is found out by the first read."""

    def __init__(self, device: Device, driver_version: str | None) -> None:
        self._clock_event_fields = clock_event_fields(driver_version)
        self._batch = FieldBatch(device.nvml, device.handle, (*_FIELDS, *self._clock_event_fields.values()))
        self._pcie_bits = _BITS_32
        self.utilization = Getter(device.utilization)
        self.memory = Getter(device.memory, device.memory_v1)
        self.temperature = Getter(device.temperature_c, device.temperature_v1_c)
        self.clock_mask = Getter(device.clock_events, device.clock_events_v1)
        self.graphics_clock = Getter(lambda: device.clock_hz(GRAPHICS_CLOCK))
        self.sm_clock = Getter(lambda: device.clock_hz(SM_CLOCK))
        self.memory_clock = Getter(lambda: device.clock_hz(MEMORY_CLOCK))
        self.power = FieldOrCall(
            self._batch, (field_ids.POWER_AVERAGE, field_ids.POWER_INSTANT), quantities.watts_of_mw, device.power_w
        )
        self.power_limit = FieldOrCall(
            self._batch, (field_ids.POWER_LIMIT_ENFORCED,), quantities.watts_of_mw, device.power_limit_enforced_w
        )
        self.energy = FieldOrCall(self._batch, (field_ids.ENERGY,), quantities.joules_of_mj, device.energy_j)

    @property
    def is_known(self) -> bool:
        """Whether it has been found out what this device has."""
        return self._batch.is_known

    @property
    def has_pcie_bytes(self) -> bool:
        """Whether the PCIe byte counters answer here."""
        return field_ids.PCIE_RECEIVE in self._batch.fields

    @property
    def has_clock_events(self) -> bool:
        """Whether any clock-event counter answers here."""
        return any(field in self._batch.fields for field in self._clock_event_fields.values())

    def read(self, gpu: GpuKey, failures: list[SourceError]) -> tuple[GpuFast, PcieBytes | None]:
        """One GPU now. A getter that fails loses its own field only; a batch that fails loses the batch's.

        Raises DeviceLost, DeviceResetRequired and HandleGone, and Broken if nothing at all could be read.
        """
        values = self._read_batch(failures)
        utilization = self.utilization.read(failures) or _NO_UTILIZATION
        memory = self.memory.read(failures) or _NO_MEMORY
        sample = GpuFast(
            gpu=gpu,
            utilization_ratio=utilization.gpu_ratio,
            memory_utilization_ratio=utilization.memory_ratio,
            memory_total_bytes=memory.total,
            memory_used_bytes=memory.used,
            memory_reserved_bytes=memory.reserved,
            memory_free_bytes=memory.free,
            power_w=self.power.read(values, failures),
            power_instant_w=_converted(values, field_ids.POWER_INSTANT, quantities.watts_of_mw),
            power_limit_enforced_w=self.power_limit.read(values, failures),
            energy_j=self.energy.read(values, failures),
            temperature_c=self.temperature.read(failures),
            memory_temperature_c=_converted(values, field_ids.MEMORY_TEMPERATURE, quantities.celsius),
            graphics_clock_hz=self.graphics_clock.read(failures),
            sm_clock_hz=self.sm_clock.read(failures),
            memory_clock_hz=self.memory_clock.read(failures),
            clock_event_ns=self._clock_event_ns(values),
            clock_events=self.clock_mask.read(failures),
        )
        if failures and sample == GpuFast(gpu=gpu):
            raise failures[0]
        return sample, self._pcie_bytes(gpu, values)

    def _read_batch(self, failures: list[SourceError]) -> FieldValues:
        try:
            return self._batch.read()
        except Broken as error:
            failures.append(error)
            return {}

    def _clock_event_ns(self, values: FieldValues) -> dict[ClockEventReason, int] | None:
        counted: dict[ClockEventReason, int] = {}
        for reason, field in self._clock_event_fields.items():
            elapsed_ns = quantities.count(values[field]) if field in values else None
            if elapsed_ns is not None:
                counted[reason] = elapsed_ns
        return counted or None

    def _pcie_bytes(self, gpu: GpuKey, values: FieldValues) -> PcieBytes | None:
        transmit_bytes = _counter_bytes(values, field_ids.PCIE_TRANSMIT)
        receive_bytes = _counter_bytes(values, field_ids.PCIE_RECEIVE)
        if transmit_bytes is None and receive_bytes is None:
            return None
        if max(transmit_bytes or 0, receive_bytes or 0) >> _BITS_32:
            self._pcie_bits = _BITS_64  # the header says only that it wraps: 32 bits until more is seen
        return PcieBytes(
            gpu=gpu, transmit_bytes=transmit_bytes, receive_bytes=receive_bytes, counter_bits=self._pcie_bits
        )


class FieldOrCall:
    """A reading that a field of the batch gives, or where the device has none of the fields a call of its own.

    The first field that is there is the only one used: two ways in turn would mix a mean with a moment.
    """

    def __init__(
        self, batch: FieldBatch, fields: tuple[Field, ...], convert: Convert, call: Callable[[], float | None]
    ) -> None:
        self._batch = batch
        self._fields = fields
        self._convert = convert
        self._getter = Getter(call)

    @property
    def is_missing(self) -> bool:
        """Whether this device cannot give it at all."""
        return self._getter.is_missing

    @property
    def refusal(self) -> SourceError | None:
        """Why it is missing."""
        return self._getter.refusal

    def read(self, values: FieldValues, failures: list[SourceError]) -> float | None:
        """The value, in base units."""
        for field in self._fields:
            if field in self._batch.fields:
                return _converted(values, field, self._convert)
        return self._getter.read(failures)


def _converted(values: FieldValues, field: Field, convert: Convert) -> float | None:
    raw = values.get(field)
    return None if raw is None else convert(raw)


def _counter_bytes(values: FieldValues, field: Field) -> int | None:
    raw = values.get(field)
    return None if raw is None else quantities.counter_bytes(raw)
