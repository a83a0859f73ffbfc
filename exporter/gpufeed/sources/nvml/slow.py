# SPDX-License-Identifier: Apache-2.0
"""What changes within minutes: the PCIe link, modes, errors, the fabric, and what the driver recommends to be done."""

from collections.abc import Callable
from functools import partial
from typing import Final

from gpufeed.errors import Broken, SourceError
from gpufeed.model.gpu import GpuSlow
from gpufeed.model.gpu_errors import GpuErrors
from gpufeed.model.ids import GpuKey
from gpufeed.sources.nvml import errors, fabric, field_ids, quantities
from gpufeed.sources.nvml.device import VIDEO_CLOCK, Aperture, Device
from gpufeed.sources.nvml.field_batch import FieldBatch, FieldValues
from gpufeed.sources.nvml.field_ids import Field
from gpufeed.sources.nvml.getter import Getter

_FIELDS: Final = (field_ids.ECC_MODE, field_ids.PCIE_REPLAYS, field_ids.RECOVERY_ACTION, *errors.FIELDS)
_NO_APERTURE: Final = Aperture(None, None)
_UNKNOWN_PERFORMANCE: Final = 32
"""NVML_PSTATE_UNKNOWN"""


class SlowReadings:
    """The slow readings of one GPU. Which of them it has is found out by the first read."""

    def __init__(self, device: Device) -> None:
        self._batch = FieldBatch(device.nvml, device.handle, _FIELDS)
        self._generation = _number(device, "nvmlDeviceGetCurrPcieLinkGeneration")
        self._width = _number(device, "nvmlDeviceGetCurrPcieLinkWidth")
        self._replays = _number(device, "nvmlDeviceGetPcieReplayCounter")
        self._performance = _number(device, "nvmlDeviceGetPerformanceState")
        self._compute_mode = _number(device, "nvmlDeviceGetComputeMode")
        self._persistence = Getter(lambda: device.flag("nvmlDeviceGetPersistenceMode"))
        self._ecc = Getter(device.ecc_enabled)
        self._mig = Getter(device.mig_enabled)
        self._encoder = Getter(lambda: device.codec_ratio("nvmlDeviceGetEncoderUtilization"))
        self._decoder = Getter(lambda: device.codec_ratio("nvmlDeviceGetDecoderUtilization"))
        self._aperture = Getter(device.aperture)
        self._video_clock = Getter(lambda: device.clock_hz(VIDEO_CLOCK))
        self.margin = Getter(device.temperature_margin_c)
        self.fabric = Getter(*(partial(read, device) for read in fabric.READERS))

    @property
    def is_known(self) -> bool:
        """Whether it has been found out what this device has."""
        return self._batch.is_known

    def has(self, *fields: Field) -> bool:
        """Whether one of these fields answers here."""
        return any(field in self._batch.fields for field in fields)

    def read(self, gpu: GpuKey, failures: list[SourceError]) -> tuple[GpuSlow, GpuErrors | None]:
        """One GPU now. Raises DeviceLost, DeviceResetRequired, HandleGone."""
        values = self._read_batch(failures)
        replays = _count(values, field_ids.PCIE_REPLAYS)
        ecc = _count(values, field_ids.ECC_MODE)
        aperture = self._aperture.read(failures) or _NO_APERTURE
        joined = self.fabric.read(failures)
        performance = self._performance.read(failures)
        slow = GpuSlow(
            gpu=gpu,
            pcie_generation=self._generation.read(failures),
            pcie_width=self._width.read(failures),
            pcie_replays=self._replays.read(failures) if replays is None else replays,
            persistence_enabled=self._persistence.read(failures),
            ecc_enabled=self._ecc.read(failures) if ecc is None else bool(ecc),
            mig_enabled=self._mig.read(failures),
            recovery_action=_count(values, field_ids.RECOVERY_ACTION),
            fabric_state=None if joined is None else joined.state,
            fabric_status=None if joined is None else joined.status,
            fabric_trouble=None if joined is None else joined.trouble,
            performance_state=None if performance == _UNKNOWN_PERFORMANCE else performance,
            compute_mode=self._compute_mode.read(failures),
            encoder_utilization_ratio=self._encoder.read(failures),
            decoder_utilization_ratio=self._decoder.read(failures),
            bar1_total_bytes=aperture.total,
            bar1_used_bytes=aperture.used,
            video_clock_hz=self._video_clock.read(failures),
            temperature_margin_c=self.margin.read(failures),
        )
        return slow, errors.errors_of(gpu, values)

    def _read_batch(self, failures: list[SourceError]) -> FieldValues:
        try:
            return self._batch.read()
        except Broken as error:
            failures.append(error)
            return {}


def _number(device: Device, function: str) -> Getter[int | None]:
    read: Callable[[], int | None] = partial(device.number, function)
    return Getter(read)


def _count(values: FieldValues, field: Field) -> int | None:
    raw = values.get(field)
    return None if raw is None else quantities.count(raw)
