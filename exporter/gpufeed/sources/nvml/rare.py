# SPDX-License-Identifier: Apache-2.0
"""What hardly ever changes: where ECC errors were, whether the SRAM has had too many, how many spare rows are left."""

import struct
from collections.abc import Callable, Mapping
from ctypes import create_string_buffer
from types import MappingProxyType
from typing import Final

from gpufeed.errors import Broken, SourceError, Unsupported
from gpufeed.model.gpu_errors import GpuErrorDetail
from gpufeed.model.ids import GpuKey
from gpufeed.sources.nvml import quantities
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.errors import counts
from gpufeed.sources.nvml.field_batch import FieldBatch, FieldValues
from gpufeed.sources.nvml.field_ids import Field
from gpufeed.sources.nvml.getter import Getter

Locations = dict[str, dict[str, int]]

_KINDS: Final = ("corrected", "uncorrected")
"""By number of nvmlMemoryErrorType_t."""
_LIVES: Final = ("volatile", "aggregate")
"""By number of nvmlEccCounterType_t."""
_SRAM: Final = 7

_FIRST: Final = {"volatile": 7, "aggregate": 18}
_IN_PAIRS: Final = ("l1_cache", "l2_cache", "device_memory", "register_file", "texture_memory")
_CBU: Final = 10

_GUEST: Final = 2
_BANKS: Final = ("max", "high", "partial", "low", "none")

# nvmlEccSramErrorStatus_v1_t: version, eleven counters, bThresholdExceeded
_SRAM_STATUS: Final = struct.Struct("<I4x11QI4x")
_SRAM_STATUS_V1: Final = 1 << 24 | _SRAM_STATUS.size


def _location_fields(life: str) -> Mapping[str, Mapping[str, Field]]:
    """Ids stand in pairs, corrected and uncorrected, and one more for the converged barrier unit."""
    first = _FIRST[life]
    corrected = {name: Field(first + 2 * at) for at, name in enumerate(_IN_PAIRS)}
    uncorrected = {name: Field(first + 2 * at + 1) for at, name in enumerate(_IN_PAIRS)}
    return {"corrected": corrected, "uncorrected": {**uncorrected, "cbu": Field(first + _CBU)}}


LOCATIONS: Final[Mapping[str, Mapping[str, Mapping[str, Field]]]] = MappingProxyType(
    {life: _location_fields(life) for life in _LIVES}
)
"""Fields 7 to 28 by life of the counter, kind of the error and location. SRAM as a whole has only a call."""


class RareReadings:
    """The rare readings of one GPU. Which of them it has is found out by the first read."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._batch = FieldBatch(
            device.nvml,
            device.handle,
            (field for of_life in LOCATIONS.values() for of_kind in of_life.values() for field in of_kind.values()),
        )
        self._sram = {
            (life, kind): Getter(_sram_getter(device, at_life, at_kind))
            for at_life, life in enumerate(_LIVES)
            for at_kind, kind in enumerate(_KINDS)
        }
        self.sram_status = Getter(self._threshold_exceeded)
        self._banks = Getter(self._read_banks)
        self._virtualization: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether it has been found out what this device has."""
        return self._batch.is_known

    def read(self, gpu: GpuKey, failures: list[SourceError]) -> GpuErrorDetail | None:
        """One GPU now; None where it has nothing of this. Raises DeviceLost, DeviceResetRequired, HandleGone."""
        values = self._read_batch(failures)
        sample = GpuErrorDetail(
            gpu=gpu,
            ecc_volatile_locations=self._locations("volatile", values, failures),
            ecc_aggregate_locations=self._locations("aggregate", values, failures),
            sram_threshold_exceeded=self.sram_status.read(failures),
            row_remap_banks=self._banks.read(failures),
        )
        return None if sample == GpuErrorDetail(gpu=gpu) else sample

    def _locations(self, life: str, values: FieldValues, failures: list[SourceError]) -> Locations | None:
        found: Locations = {}
        for kind, fields in LOCATIONS[life].items():
            counted = counts(fields, values) or {}
            sram = self._sram[life, kind].read(failures)
            if sram is not None:
                counted["sram"] = sram
            if counted:
                found[kind] = counted
        return found or None

    def _read_batch(self, failures: list[SourceError]) -> FieldValues:
        try:
            return self._batch.read()
        except Broken as error:
            failures.append(error)
            return {}

    def _threshold_exceeded(self) -> bool:
        """Whether so many uncorrected errors were in one place that the board is bad.

        Wants root on some drivers. Source: nvmlDeviceGetSramEccErrorStatus, since 535.161, Ampere and newer.
        """
        name = "nvmlDeviceGetSramEccErrorStatus"
        nvml = self._device.nvml
        status = create_string_buffer(_SRAM_STATUS_V1.to_bytes(4, "little"), _SRAM_STATUS.size)
        nvml.check(nvml.run_c(name, nvml.function(name), self._device.handle, status), name)
        return bool(_SRAM_STATUS.unpack(status.raw)[-1])

    def _read_banks(self) -> dict[str, int] | None:
        """Memory banks by how many spare rows they have left. Source: nvmlDeviceGetRowRemapperHistogram."""
        if self._is_guest():
            raise Unsupported("nvmlDeviceGetRowRemapperHistogram: in a virtual machine each call is a kernel warning")
        answer = self._device.nvml.call("nvmlDeviceGetRowRemapperHistogram", self._device.handle)
        banks = {name: quantities.count(getattr(answer, name)) for name in _BANKS}
        return {name: number for name, number in banks.items() if number is not None} or None

    def _is_guest(self) -> bool:
        if self._virtualization is None:
            try:
                self._virtualization = self._device.number("nvmlDeviceGetVirtualizationMode") or 0
            except Unsupported:
                self._virtualization = 0
        return self._virtualization == _GUEST


def _sram_getter(device: Device, life: int, kind: int) -> Callable[[], int | None]:
    return lambda: device.memory_errors(kind, life, _SRAM)
