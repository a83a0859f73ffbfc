# SPDX-License-Identifier: Apache-2.0
"""nvmlDeviceGetFieldValues: which ids a driver of a given version knows, and what they answer."""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import pynvml

from gpufeed.simulate.nvml.library import INVALID_ARGUMENT, NOT_SUPPORTED, SUCCESS, Gpu, Status, Table
from gpufeed.simulate.nvml.readings import NS_PER_S

TABLE: Final = Table()

_ALL_LINKS: Final = 0xFFFF_FFFF
_KIB: Final = 1024
_BYTE_COUNTER_WRAPS_AT: Final = 1 << 32
_UINT, _U64, _INT = 1, 3, 5
_MEMBERS: Final = {_UINT: "uiVal", _U64: "ullVal", _INT: "siVal"}
_HOPPER: Final = 9
_AMPERE: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One id: the type of its value, and how it follows from the truth. `value` raises Status."""

    kind: int  # nvmlValueType_t
    value: Callable[[Gpu, int], int]  # GPU and scope


@TABLE.device("nvmlDeviceGetFieldValues", ctypes.c_int, ctypes.POINTER(pynvml.c_nvmlFieldValue_t))
def _field_values(gpu: Gpu, count: int, values: Any) -> None:
    known = fields_of(gpu.moment.header.driver_version)
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
    member = _MEMBERS[field.kind]
    told = gpu.face.tell("nvmlDeviceGetFieldValues", gpu.index, entry.fieldId, value, getattr(entry.value, member))
    setattr(entry.value, member, int(told))
    return SUCCESS


@lru_cache
def fields_of(driver_version: str) -> Mapping[int, Field]:
    """The ids that a driver of this version knows. Source: the headers of each branch."""
    numbers = tuple(int(part) for part in driver_version.split(".")[:2])
    known = dict(_ALWAYS)
    if numbers >= (555, 0):
        known |= _SINCE_555
    if numbers >= (565, 0):
        known |= _SINCE_565
    if numbers >= (575, 0):
        # these three were first given ids that belonged to another feature, and moved once more
        first = 269 if numbers >= (580, 82) else 251
        reasons = ("sw_thermal", "hw_thermal", "hw_power_brake")
        known |= {first + at: _reason(reason) for at, reason in enumerate(reasons)}
    return MappingProxyType(known)


def _whole(name: str, kind: int = _U64) -> Field:
    return Field(kind=kind, value=lambda gpu, _scope: gpu.moment.whole(name))


def _fixed(value: int, kind: int = _UINT) -> Field:
    return Field(kind=kind, value=lambda _gpu, _scope: value)


def _reason(*names: str) -> Field:
    return Field(
        kind=_U64,
        value=lambda gpu, _scope: int(NS_PER_S * sum(gpu.moment.value(f"{name}_s") for name in names)),
    )


def _milliwatts(of: Callable[[Gpu], float]) -> Field:
    def value(gpu: Gpu, scope: int) -> int:
        if scope != 0:
            raise Status(NOT_SUPPORTED)  # module and memory power are other products'
        return round(1000 * of(gpu))

    return Field(kind=_UINT, value=value)


def _average_power(gpu: Gpu) -> float:
    if not gpu.board.model.has_power_average:
        raise Status(NOT_SUPPORTED)
    return gpu.moment.value("power_w")


def _nvlink_kib(name: str) -> Field:
    def value(gpu: Gpu, scope: int) -> int:
        links = _require_links(gpu)
        total = gpu.moment.value(name) / _KIB
        if scope == _ALL_LINKS:
            return int(total)
        _require_link(gpu, scope)
        return int(total / links)

    return Field(kind=_U64, value=value)


def _of_link(of: Callable[[Gpu, int], int], kind: int = _UINT) -> Field:
    def value(gpu: Gpu, scope: int) -> int:
        _require_links(gpu)
        _require_link(gpu, scope)
        return of(gpu, scope)

    return Field(kind=kind, value=value)


def _require_links(gpu: Gpu) -> int:
    if not gpu.board.model.nvlink_links:
        raise Status(NOT_SUPPORTED)
    return gpu.board.model.nvlink_links


def _require_link(gpu: Gpu, link: int) -> None:
    if link >= gpu.board.model.nvlink_links:
        raise Status(INVALID_ARGUMENT)


def _link_errors(architecture: int) -> Field:
    def value(gpu: Gpu, _link: int) -> int:
        if gpu.board.model.architecture != architecture:
            raise Status(NOT_SUPPORTED)
        return 0

    return _of_link(value, _U64)


def _pcie(name: str) -> Field:
    return Field(kind=_U64, value=lambda gpu, _scope: gpu.moment.whole(name) % _BYTE_COUNTER_WRAPS_AT)


def _margin(limit: int) -> Field:
    def value(gpu: Gpu, _scope: int) -> int:
        if not gpu.board.model.has_temperature_limits:
            raise Status(NOT_SUPPORTED)
        return limit

    return Field(kind=_INT, value=value)


_ALWAYS: Final[Mapping[int, Field]] = {
    1: _fixed(1),
    2: _fixed(1),
    3: _whole("ecc_volatile_corrected"),
    4: _whole("ecc_volatile_uncorrected"),
    5: _whole("ecc_aggregate_corrected"),
    6: _whole("ecc_aggregate_uncorrected"),
    74: _reason("sw_power_cap"),
    75: _reason("sw_thermal", "hw_thermal"),
    76: _reason("sync_boost"),
    77: _reason("board_limit"),
    78: _reason("low_utilization"),
    79: _reason("reliability"),
    80: _reason(),
    81: _reason(),
    82: Field(kind=_UINT, value=lambda gpu, _scope: round(gpu.moment.value("memory_temperature_c"))),
    83: Field(kind=_U64, value=lambda gpu, _scope: int(1000 * gpu.moment.value("energy_j"))),
    90: Field(kind=_UINT, value=lambda gpu, _scope: _require_links(gpu) and gpu.board.model.nvlink_link_mb_per_s),
    91: Field(kind=_UINT, value=lambda gpu, _scope: gpu.board.model.nvlink_links),
    94: _whole("pcie_replays", _UINT),
    95: _fixed(0),
    138: _nvlink_kib("nvlink_transmit_bytes"),
    139: _nvlink_kib("nvlink_receive_bytes"),
    140: _nvlink_kib("nvlink_transmit_bytes"),
    141: _nvlink_kib("nvlink_receive_bytes"),
    142: _whole("remapped_correctable", _UINT),
    143: _whole("remapped_uncorrectable", _UINT),
    144: _whole("remap_pending", _UINT),
    145: _whole("remap_failed", _UINT),
    161: _link_errors(_HOPPER),
    162: _link_errors(_HOPPER),
    163: _link_errors(_HOPPER),
    164: _of_link(lambda gpu, _link: gpu.board.model.nvlink_link_mb_per_s),
    165: _of_link(lambda gpu, link: int(link < gpu.moment.whole("links_up"))),
    185: _milliwatts(_average_power),
    186: _milliwatts(lambda gpu: gpu.moment.value("power_instant_w")),
    187: _milliwatts(lambda gpu: gpu.board.model.power_minimum_w),
    188: _milliwatts(lambda gpu: gpu.board.model.power_limit_w),
    189: _milliwatts(lambda gpu: gpu.board.model.power_limit_w),
    190: _milliwatts(lambda gpu: gpu.board.model.power_limit_w),
    193: _margin(-8),
    194: _margin(-2),
    195: _margin(0),
    196: _margin(0),
    **dict.fromkeys((38, 45, 52, 59), _fixed(0, _U64)),  # old totals: right before Hopper, and always 0 since
}
_SINCE_555: Final = {197: _pcie("pcie_transmit_bytes"), 198: _pcie("pcie_receive_bytes")}
_SINCE_565: Final = {230: _whole("recovery_action", _UINT)}
