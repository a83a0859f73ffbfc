# SPDX-License-Identifier: Apache-2.0
"""nvmlDeviceGetFieldValues: which ids a driver of a given version knows, and what they answer."""

import ctypes
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import pynvml

from gpufeed.simulate.nvml.errors import ECC_FIELDS
from gpufeed.simulate.nvml.field import (
    BLACKWELL,
    INT,
    MEMBERS,
    U64,
    UINT,
    Field,
    fixed,
    nanoseconds,
    require,
    where,
    whole,
)
from gpufeed.simulate.nvml.library import NOT_SUPPORTED, SUCCESS, Gpu, Status, Table
from gpufeed.simulate.nvml.link_fields import LANE_FIELDS, LINK_FIELDS
from gpufeed.simulate.nvml.personality import first_thermal_id, smoothing_ids, version_of

TABLE: Final = Table()

_BYTE_COUNTER_WRAPS_AT: Final = 1 << 32
_POWER_SINCE: Final = (525, 0)
_LIMITS_SINCE: Final = (535, 0)
_PCIE_BYTES_SINCE: Final = (555, 0)
_RECOVERY_SINCE: Final = (565, 0)


@TABLE.device("nvmlDeviceGetFieldValues", ctypes.c_int, ctypes.POINTER(pynvml.c_nvmlFieldValue_t))
def _field_values(gpu: Gpu, count: int, values: Any) -> None:
    known = _known_to(gpu.moment.header.driver_version)
    gpu.face.field_values += count
    for at in range(count):
        entry = values[at]
        entry.timestamp = gpu.moment.header.wall_ns // 1000
        entry.latencyUsec = 0
        entry.nvmlReturn = _fill(gpu, known, entry)


def _fill(gpu: Gpu, known: Mapping[int, Field], entry: Any) -> int:
    field = known.get(entry.fieldId)
    try:
        gpu.face.suffer("nvmlDeviceGetFieldValues", gpu.index, entry.fieldId)
        if field is None:
            return NOT_SUPPORTED
        value = field.value(gpu, entry.scopeId)
    except Status as status:
        return status.code
    # only the bytes of the stated type are written, as a driver does it
    entry.valueType = field.kind
    member = MEMBERS[field.kind]
    told = gpu.face.tell("nvmlDeviceGetFieldValues", gpu.index, entry.fieldId, value, getattr(entry.value, member))
    setattr(entry.value, member, int(told))
    return SUCCESS


@lru_cache
def fields_of(driver_version: str) -> Mapping[int, Field]:
    """The ids that a driver of this version knows, power smoothing left out. Source: the headers of each branch."""
    version = version_of(driver_version)
    known = {at: field for at, field in _FIELDS.items() if version >= field.since}
    first = first_thermal_id(version)
    if first is not None:
        reasons = ("sw_thermal", "hw_thermal", "hw_power_brake")
        known |= {first + at: nanoseconds(reason) for at, reason in enumerate(reasons)}
    return MappingProxyType(known)


@lru_cache
def _known_to(driver_version: str) -> Mapping[int, Field]:
    smoothing = where(lambda model: model.architecture >= BLACKWELL, fixed(_SMOOTHING_PERCENT))
    return {**dict.fromkeys(smoothing_ids(version_of(driver_version)), smoothing), **fields_of(driver_version)}


_SMOOTHING_PERCENT: Final = 50
"""What every field of power smoothing answers."""


def _milliwatts(of: Callable[[Gpu], float], since: tuple[int, int] = _LIMITS_SINCE) -> Field:
    def value(gpu: Gpu, scope: int) -> int:
        require(scope == 0)  # module and memory power are other products'
        return round(1000 * of(gpu))

    return Field(kind=UINT, value=value, since=since)


def _power(name: str) -> Field:
    return _milliwatts(lambda gpu: gpu.moment.value(name), _POWER_SINCE)


def _limit_milliwatts(of: Callable[[Gpu], float]) -> Field:
    return where(lambda model: model.has_power_limit, _milliwatts(of))


def _pcie(name: str) -> Field:
    return Field(
        kind=U64,
        value=lambda gpu, _scope: gpu.moment.whole(name) % _BYTE_COUNTER_WRAPS_AT,
        since=_PCIE_BYTES_SINCE,
    )


def _margin(limit: int) -> Field:
    """One of the four T.Limit margins, in the order of the ids."""

    def value(gpu: Gpu, _scope: int) -> int:
        model = gpu.board.model
        require(model.has_temperature_limits)
        margin = model.temperature_limits[limit] if model.temperature_limits is not None else None
        require(margin is not None)
        return margin or 0

    return Field(kind=INT, value=value, since=_LIMITS_SINCE)


_FIELDS: Final[Mapping[int, Field]] = {
    **ECC_FIELDS,
    **LANE_FIELDS,
    **LINK_FIELDS,
    74: nanoseconds("sw_power_cap"),
    75: nanoseconds("sw_thermal", "hw_thermal"),
    76: nanoseconds("sync_boost"),
    77: nanoseconds("board_limit"),
    78: nanoseconds("low_utilization"),
    79: nanoseconds("reliability"),
    80: nanoseconds(),
    81: nanoseconds(),
    82: where(
        lambda model: model.has_memory_temperature,
        Field(kind=UINT, value=lambda gpu, _scope: round(gpu.moment.value("memory_temperature_c"))),
    ),
    83: where(
        lambda model: model.has_energy,
        Field(kind=U64, value=lambda gpu, _scope: int(1000 * gpu.moment.value("energy_j"))),
    ),
    94: whole("pcie_replays", UINT),
    95: fixed(0),
    169: whole("pcie_l0_to_recovery", UINT, _POWER_SINCE),
    **{
        173 + at: whole(f"pcie_{kind}", UINT, _POWER_SINCE)
        for at, kind in enumerate(
            ("correctable", "naks_received", "receiver", "bad_tlp", "naks_sent", "bad_dllp", "non_fatal", "fatal",
             "unsupported_request", "lcrc")
        )
    },
    183: whole("pcie_lane", UINT, _LIMITS_SINCE),
    185: where(lambda model: model.has_power_average, _power("power_w")),
    186: _power("power_instant_w"),
    187: _limit_milliwatts(lambda gpu: gpu.board.model.power_minimum_w),
    188: _limit_milliwatts(lambda gpu: gpu.board.model.power_limit_w),
    189: _limit_milliwatts(lambda gpu: gpu.board.model.power_limit_w),
    190: _limit_milliwatts(lambda gpu: gpu.board.model.power_limit_w),
    **{193 + limit: _margin(limit) for limit in range(4)},
    197: _pcie("pcie_transmit_bytes"),
    198: _pcie("pcie_receive_bytes"),
    230: whole("recovery_action", UINT, _RECOVERY_SINCE),
}  # fmt: skip
