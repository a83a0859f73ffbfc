# SPDX-License-Identifier: Apache-2.0
"""The links between a GPU and the processor on its module: Grace Hopper, Grace Blackwell."""

from typing import Final

from gpufeed.errors import Unsupported
from gpufeed.model.gpu_errors import GpuC2c
from gpufeed.model.ids import GpuKey
from gpufeed.sources.nvml import field_ids, quantities
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.field_batch import FieldBatch, FieldValues
from gpufeed.sources.nvml.field_ids import Field

_ERRORS: Final = {"crc": 231, "replay": 232, "replay_back_to_back": 233}
_MAX_LINKS: Final = 64


class C2cReadings:
    """The C2C links of one GPU."""

    def __init__(self, device: Device) -> None:
        """Raises Unsupported where the board has none, and SourceError."""
        answer = FieldBatch(device.nvml, device.handle, (field_ids.C2C_LINKS,)).read().get(field_ids.C2C_LINKS)
        links = 0 if answer is None else int(answer)
        if not 0 < links <= _MAX_LINKS:
            raise Unsupported("field 170: this board has no C2C links")
        self._links = links
        ids = (field_ids.C2C_STATUS, field_ids.C2C_SPEED, *_ERRORS.values())
        self._batch = FieldBatch(
            device.nvml, device.handle, (Field(field_id, link) for field_id in ids for link in range(links))
        )

    def read(self, gpu: GpuKey) -> GpuC2c:
        """Raises SourceError."""
        values = self._batch.read()
        states = self._of_each(field_ids.C2C_STATUS, values)
        speeds = self._of_each(field_ids.C2C_SPEED, values)
        errors = {
            name: sum(counted)
            for name, field_id in _ERRORS.items()
            if (counted := self._of_each(field_id, values)) is not None
        }
        return GpuC2c(
            gpu=gpu,
            links=self._links,
            links_up=None if states is None else sum(state == 1 for state in states),
            speed_bytes_per_s=None if speeds is None else quantities.bytes_per_s_of_mbps(sum(speeds)),
            errors=errors or None,
        )

    def _of_each(self, field_id: int, values: FieldValues) -> list[int] | None:
        """A number of each link; None if one did not answer."""
        found = [
            number
            for link in range(self._links)
            if (raw := values.get(Field(field_id, link))) is not None and (number := quantities.count(raw)) is not None
        ]
        return found if len(found) == self._links else None
