# SPDX-License-Identifier: Apache-2.0
"""What a driver of a given version has and has not: symbols, structs, and ids that mean something else in another."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

Version = tuple[int, int]

FUNCTION_SINCE: Final[Mapping[str, Version]] = MappingProxyType(
    {
        "nvmlDeviceGetModuleId": (535, 0),
        "nvmlDeviceGetCurrentClocksEventReasons": (535, 0),
        "nvmlDeviceGetSramEccErrorStatus": (535, 161),
        "nvmlDeviceGetGpuFabricInfoV": (550, 0),
        "nvmlDeviceGetTemperatureV": (570, 0),
        "nvmlDeviceGetMarginTemperature": (570, 0),
    }
)
"""Symbols that older libraries lack. Those of the table that are not named here are older than any driver played."""

FABRIC_V3_SINCE: Final[Version] = (575, 0)
"""Version 3 of the fabric struct, which has a summary: taken to be as old as the header that has it."""

_SMOOTHING_MOVED: Final = ((575, 0), (580, 82))
"""From the first to before the second, three thermal counters have the first ids of power smoothing."""

_SMOOTHING_IDS: Final = 18


@lru_cache
def version_of(text: str) -> Version:
    """Branch and minor number of a driver version such as 570.124.06."""
    branch, minor = text.split(".")[:2]
    return int(branch), int(minor)


def has_function(driver_version: str, name: str) -> bool:
    """Whether the library of this driver has a symbol that the simulator knows."""
    return version_of(driver_version) >= FUNCTION_SINCE.get(name, (0, 0))


def first_thermal_id(version: Version) -> int | None:
    """Field id of the software thermal counter, with those of the hardware and the power brake behind it."""
    begun, moved_back = _SMOOTHING_MOVED
    if version < begun:
        return None
    return 251 if version < moved_back else 269


def smoothing_ids(version: Version) -> range:
    """Field ids of power smoothing: numbers that would pass for a count of nanoseconds."""
    begun, moved_back = _SMOOTHING_MOVED
    if version < (570, 0):
        return range(0)
    first = 256 if begun <= version < moved_back else 251
    return range(first, first + _SMOOTHING_IDS)
