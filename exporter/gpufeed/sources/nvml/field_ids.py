# SPDX-License-Identifier: Apache-2.0
"""Field ids of nvmlDeviceGetFieldValues, as numbers of our own.

pynvml's constants are those of its own release; three ids moved between driver branches, so that the constant of
one release asks a driver of another for something else. The running driver's version decides, never the binding's.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from gpufeed.model.gpu import ClockEventReason, TemperatureLimit

ALL_LINKS: Final = 0xFFFF_FFFF
"""Scope of the NVLink throughput fields: the sum over all links (nvml.h, at NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX)."""


class Field(NamedTuple):
    """One entry of a batch: a field id, and the link or power domain it is asked for."""

    id: int
    scope: int = 0


ECC_MODE: Final = Field(1)
MEMORY_TEMPERATURE: Final = Field(82)  # °C
ENERGY: Final = Field(83)  # mJ since driver load
NVLINK_SPEED: Final = Field(90)  # MByte/s of one link
NVLINK_LINKS: Final = Field(91)
PCIE_REPLAYS: Final = Field(94)
NVLINK_TRANSMIT: Final = 138  # KiB since driver load; scope: link, or ALL_LINKS
NVLINK_RECEIVE: Final = 139
NVLINK_SPEED_OF_LINK: Final = 164  # MByte/s; scope: link, as of the next two
NVLINK_STATE: Final = 165
NVLINK_VERSION: Final = 166  # nvmlNvlinkVersion_t
C2C_LINKS: Final = Field(170)
C2C_STATUS: Final = 171  # scope: link, as of the next; 1 is active
C2C_SPEED: Final = 172  # MByte/s
POWER_AVERAGE: Final = Field(185)  # mW over one second
POWER_INSTANT: Final = Field(186)  # mW
POWER_LIMIT_MIN: Final = Field(187)  # mW
POWER_LIMIT_MAX: Final = Field(188)  # mW
POWER_LIMIT_DEFAULT: Final = Field(189)  # mW
POWER_LIMIT_ENFORCED: Final = Field(190)  # mW
PCIE_TRANSMIT: Final = Field(197)  # bytes, wraps
PCIE_RECEIVE: Final = Field(198)
NVLINK5_TRANSMIT: Final = 202  # bytes; scope: link
NVLINK5_RECEIVE: Final = 204
RECOVERY_ACTION: Final = Field(230)

TEMPERATURE_LIMIT_MARGINS: Final[Mapping[TemperatureLimit, Field]] = MappingProxyType(
    {"shutdown": Field(193), "slowdown": Field(194), "memory_max": Field(195), "gpu_max": Field(196)}
)
"""T.Limit of each limit, signed °C below the point where the margin is zero; Ada and newer."""

_CLOCK_EVENT_COUNTERS: Final[Mapping[ClockEventReason, Field]] = MappingProxyType(
    {
        "sw_power_cap": Field(74),
        "thermal_policy": Field(75),
        "sync_boost": Field(76),
        "board_limit": Field(77),
        "low_utilization": Field(78),
        "reliability": Field(79),
        "base_clocks": Field(81),
    }
)
"""Nanoseconds since driver load, by reason; these ids have meant the same in every release."""

_MOVED_COUNTERS: Final[Mapping[ClockEventReason, Field]] = MappingProxyType(
    {"sw_thermal": Field(269), "hw_thermal": Field(270), "hw_power_brake": Field(271)}
)
"""The three that moved, where they have been since driver 580.82.

Drivers 575.51 to 580.65 have them at 251 to 253, and power smoothing at 269 to 271. What each driver between did is
not known, and a wrong id gives a plausible number: for those the three are left out. Before 575 there are none.
"""

_MOVED_SINCE: Final = (580, 82)


def clock_event_fields(driver_version: str | None) -> dict[ClockEventReason, Field]:
    """The clock-event counters to ask this driver for."""
    version = _parse_version(driver_version or "")
    if version is not None and version >= _MOVED_SINCE:
        return {**_CLOCK_EVENT_COUNTERS, **_MOVED_COUNTERS}
    return dict(_CLOCK_EVENT_COUNTERS)


def _parse_version(text: str) -> tuple[int, int] | None:
    match = re.match(r"(\d{3,})\.(\d+)", text)
    return None if match is None else (int(match[1]), int(match[2]))
