# SPDX-License-Identifier: Apache-2.0
"""Whether a GPU has joined the NVLink fabric of its node or rack, and what the fabric says is wrong with it.

The struct is laid out here: what a driver writes does not depend on which releases of the binding know it.
"""

import struct
from collections.abc import Callable, Mapping
from ctypes import create_string_buffer
from types import MappingProxyType
from typing import Final, NamedTuple

from gpufeed.errors import Unsupported
from gpufeed.sources.nvml.device import Device

_NOT_SUPPORTED: Final = 0

# nvmlGpuFabricInfo_v3_t: version, clusterUuid, status, cliqueId, state, healthMask, healthSummary
_VERSIONED: Final = struct.Struct("<I16sIIB3xIB3x")
# nvmlGpuFabricInfo_t: clusterUuid, status, cliqueId, state
_UNVERSIONED: Final = struct.Struct("<16sIIB3x")
_V3: Final = 3 << 24 | _VERSIONED.size
_V2: Final = 2 << 24 | (_VERSIONED.size - 4)  # ends before the summary


class Trouble(NamedTuple):
    """A field of the health mask: its place, and the values that say that the trouble is there and that it is not."""

    shift: int
    mask: int
    there: frozenset[int]
    not_there: int


_TRUE: Final = frozenset({1})
_FALSE: Final = 2

TROUBLES: Final[Mapping[str, Trouble]] = MappingProxyType(
    {
        "degraded_bandwidth": Trouble(0, 0x3, _TRUE, _FALSE),
        "route_recovery": Trouble(2, 0x3, _TRUE, _FALSE),
        "route_unhealthy": Trouble(4, 0x3, _TRUE, _FALSE),
        "access_timeout_recovery": Trouble(6, 0x3, _TRUE, _FALSE),
        "incorrect_configuration": Trouble(8, 0xF, frozenset(range(2, 16)), 1),  # each value is another reason
        "partition_not_assigned": Trouble(12, 0x3, frozenset({2}), 1),
        "manager_disconnected": Trouble(14, 0x3, frozenset({2}), 1),
    }
)
"""NVML_GPU_FABRIC_HEALTH_MASK_…; zero is *not supported* in each."""

_SUMMARY_HEALTHY: Final = 1
_SUMMARIES: Final = {"unhealthy": 2, "limited_capacity": 3}
"""NVML_GPU_FABRIC_HEALTH_SUMMARY_…"""


class Fabric(NamedTuple):
    """State is an nvmlGpuFabricState_t; status, an nvmlReturn_t, means something once that is completed."""

    state: int
    status: int
    trouble: dict[str, bool] | None


def read_v3(device: Device) -> Fabric:
    """Raises SourceError. Source: nvmlDeviceGetGpuFabricInfoV, version 3."""
    _, _, status, _, state, mask, summary = _VERSIONED.unpack(_ask(device, _V3))
    return _fabric(state, status, {**troubles_of(mask), **_summary(summary)})


def read_v2(device: Device) -> Fabric:
    """Raises SourceError. Source: nvmlDeviceGetGpuFabricInfoV, version 2, since 550."""
    _, _, status, _, state, mask, _ = _VERSIONED.unpack(_ask(device, _V2))
    return _fabric(state, status, troubles_of(mask))


def read_v1(device: Device) -> Fabric:
    """Raises SourceError. Source: nvmlDeviceGetGpuFabricInfo, since 525: no health."""
    _, status, _, state = _UNVERSIONED.unpack(_call(device, "nvmlDeviceGetGpuFabricInfo", bytes(_UNVERSIONED.size)))
    return _fabric(state, status, {})


READERS: Final[tuple[Callable[[Device], Fabric], ...]] = (read_v3, read_v2, read_v1)
"""Best first."""


def troubles_of(mask: int) -> dict[str, bool]:
    """What a health mask says of each trouble; what it says nothing of is left out."""
    said: dict[str, bool] = {}
    for name, trouble in TROUBLES.items():
        value = mask >> trouble.shift & trouble.mask
        if value in trouble.there or value == trouble.not_there:
            said[name] = value in trouble.there
    return said


def _summary(summary: int) -> dict[str, bool]:
    if summary != _SUMMARY_HEALTHY and summary not in _SUMMARIES.values():
        return {}
    return {name: summary == value for name, value in _SUMMARIES.items()}


def _fabric(state: int, status: int, trouble: dict[str, bool]) -> Fabric:
    if state == _NOT_SUPPORTED:
        raise Unsupported("nvmlDeviceGetGpuFabricInfo: this board belongs to no fabric")
    return Fabric(state, status, trouble or None)


def _ask(device: Device, version: int) -> bytes:
    return _call(device, "nvmlDeviceGetGpuFabricInfoV", version.to_bytes(4, "little").ljust(_VERSIONED.size, b"\0"))


def _call(device: Device, name: str, template: bytes) -> bytes:
    nvml, answer = device.nvml, create_string_buffer(template, len(template))
    nvml.check(nvml.run_c(name, nvml.function(name), device.handle, answer), name)
    return answer.raw
