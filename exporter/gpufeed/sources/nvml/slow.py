# SPDX-License-Identifier: Apache-2.0
"""What changes within minutes: the PCIe link, modes, and what the driver recommends to be done."""

from typing import Final

from gpufeed.errors import Broken, SourceError
from gpufeed.model.gpu import GpuSlow
from gpufeed.model.ids import GpuKey
from gpufeed.sources.nvml import field_ids, quantities
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.field_batch import FieldBatch, FieldValues
from gpufeed.sources.nvml.field_ids import Field
from gpufeed.sources.nvml.getter import Getter

_FIELDS: Final = (field_ids.ECC_MODE, field_ids.PCIE_REPLAYS, field_ids.RECOVERY_ACTION)


class SlowReadings:
    """The slow readings of one GPU. Which of them it has is found out by the first read."""

    def __init__(self, device: Device) -> None:
        self._batch = FieldBatch(device.nvml, device.handle, _FIELDS)
        self._generation = Getter(lambda: device.number("nvmlDeviceGetCurrPcieLinkGeneration"))
        self._width = Getter(lambda: device.number("nvmlDeviceGetCurrPcieLinkWidth"))
        self._replays = Getter(lambda: device.number("nvmlDeviceGetPcieReplayCounter"))
        self._persistence = Getter(lambda: device.flag("nvmlDeviceGetPersistenceMode"))
        self._ecc = Getter(device.ecc_enabled)
        self._mig = Getter(device.mig_enabled)

    def read(self, gpu: GpuKey, failures: list[SourceError]) -> GpuSlow:
        """One GPU now. Raises DeviceLost, DeviceResetRequired, HandleGone."""
        values = self._read_batch(failures)
        replays = _count(values, field_ids.PCIE_REPLAYS)
        ecc = _count(values, field_ids.ECC_MODE)
        return GpuSlow(
            gpu=gpu,
            pcie_generation=self._generation.read(failures),
            pcie_width=self._width.read(failures),
            pcie_replays=self._replays.read(failures) if replays is None else replays,
            persistence_enabled=self._persistence.read(failures),
            ecc_enabled=self._ecc.read(failures) if ecc is None else bool(ecc),
            mig_enabled=self._mig.read(failures),
            recovery_action=_count(values, field_ids.RECOVERY_ACTION),
        )

    def _read_batch(self, failures: list[SourceError]) -> FieldValues:
        try:
            return self._batch.read()
        except Broken as error:
            failures.append(error)
            return {}


def _count(values: FieldValues, field: Field) -> int | None:
    raw = values.get(field)
    return None if raw is None else quantities.count(raw)
