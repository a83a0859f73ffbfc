# SPDX-License-Identifier: Apache-2.0
"""At which temperatures a GPU slows down and stops: degrees of its sensor before Ada, margins (T.Limit) since."""

from typing import Final, NamedTuple

from gpufeed.errors import DeviceLost, DeviceResetRequired, SourceError
from gpufeed.model.gpu import TemperatureLimit
from gpufeed.sources.nvml import quantities
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.field_batch import FieldValues
from gpufeed.sources.nvml.field_ids import TEMPERATURE_LIMIT_MARGINS

_THRESHOLDS: Final[dict[TemperatureLimit, int]] = {"shutdown": 0, "slowdown": 1, "memory_max": 2, "gpu_max": 3}
"""nvmlTemperatureThresholds_t"""


class TemperatureLimits(NamedTuple):
    """Either of them: a board that tells margins is not asked for degrees, which it has no more."""

    degrees_c: dict[TemperatureLimit, float] | None
    margins_c: dict[TemperatureLimit, float] | None


def read_temperature_limits(device: Device, values: FieldValues) -> TemperatureLimits:
    """`values`: of the T.Limit fields. Raises DeviceLost and DeviceResetRequired."""
    margins: dict[TemperatureLimit, float] = {
        name: margin
        for name, field in TEMPERATURE_LIMIT_MARGINS.items()
        if field in values and (margin := quantities.celsius(values[field])) is not None
    }
    if margins:
        return TemperatureLimits(None, margins)
    degrees: dict[TemperatureLimit, float] = {
        name: celsius
        for name, threshold in _THRESHOLDS.items()
        if (celsius := _threshold_c(device, threshold)) is not None
    }
    return TemperatureLimits(degrees or None, None)


def _threshold_c(device: Device, threshold: int) -> float | None:
    try:
        return device.temperature_limit_c(threshold)
    except (DeviceLost, DeviceResetRequired):
        raise
    except SourceError:
        return None
