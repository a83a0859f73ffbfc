# SPDX-License-Identifier: Apache-2.0
"""How the errors of NVLinks are counted: by other fields on every generation, and the wrong ones answer with zero.

On Hopper the totals of the generations before still succeed, always with zero; on Blackwell the fields of Hopper are
not supported. The architecture says which ways are right; of those the first that answers is taken.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.errors import Denied, Unsupported
from gpufeed.sources.nvml import quantities
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.field_batch import FieldBatch, FieldValues
from gpufeed.sources.nvml.field_ids import Field

Way = Mapping[str, tuple[Field, ...]]
"""Kind of error → the field of each link, in their order."""

_OF_LANES: Final = {"crc_flit": (32, 96), "crc_data": (39, 102), "replay": (46, 108), "recovery": (53, 114)}
"""The first id of links 0 to 5, and that of links 6 to 11: until Ampere each link has ids of its own."""
_LANES: Final = 6

_OF_DATA_LINK: Final = {"replay": 161, "recovery": 162, "crc": 163}
"""Scope: link. Hopper."""

_OF_NVLINK_5: Final = {
    "malformed_packet": 206,
    "buffer_overrun": 207,
    "receive": 208,
    "receive_remote": 209,
    "receive_general": 210,
    "local_link_integrity": 211,
    "transmit_discard": 212,
    "recovery": 213,  # that succeeded: 215 counts those that failed too, and would count them twice
    "recovery_failed": 214,
    "effective": 219,
    "symbol": 221,
}
"""Scope: link. Blackwell and newer."""

_WAYS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "volta": ("lanes",),
        "turing": ("lanes",),
        "ampere": ("lanes", "data_link"),
        "hopper": ("data_link",),
        "blackwell": ("nvlink_5",),
        "rubin": ("nvlink_5",),
    }
)
_OF_UNKNOWN: Final = ("nvlink_5", "data_link")

BIT_ERROR_RATIOS: Final = {"effective": 220, "symbol": 222}
"""Scope: link; packed, see quantities.bit_error_ratio. Blackwell and newer."""

_OF_CALLS: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {
        "volta": {"replay": 0, "recovery": 1, "crc_flit": 2, "crc_data": 3},
        "turing": {"replay": 0, "recovery": 1, "crc_flit": 2, "crc_data": 3},
        "ampere": {"replay": 0, "recovery": 1, "crc_flit": 2, "crc_data": 3},
        "hopper": {"replay": 0, "recovery": 1, "crc": 2},
    }
)
"""nvmlNvLinkErrorCounter_t of nvmlDeviceGetNvLinkErrorCounter: for drivers without the fields."""


class LinkErrors:
    """The errors of every link of one GPU."""

    def __init__(self, device: Device, architecture: str | None, links: int) -> None:
        self._device = device
        self._architecture = architecture or ""
        self._links = links
        self._way: Way = {}
        self._calls: Mapping[str, int] = {}
        self._last: dict[str, dict[int, int]] = {}

    @property
    def is_missing(self) -> bool:
        """Whether nothing answers here, as far as has been found out."""
        return not self._way and not self._calls

    def find_out(self) -> tuple[Field, ...]:
        """The fields to ask for from now on. Raises SourceError."""
        self._way = self._answering_way()
        self._calls = {} if self._way else _OF_CALLS.get(self._architecture, {})
        return tuple(field for fields in self._way.values() for field in fields)

    def read(self, values: FieldValues) -> dict[int, dict[str, int]]:
        """Counts by link and kind, of the links that answered. Raises SourceError."""
        found: dict[int, dict[str, int]] = {}
        for link, kind, counted in self._called() if self._calls else self._decoded(values):
            found.setdefault(link, {})[kind] = counted
            self._last.setdefault(kind, {})[link] = counted
        return found

    def sums(self) -> dict[str, int] | None:
        """By kind, over all links. One that is down keeps what it had: a sum without it would look like a reset."""
        return {kind: sum(of_links.values()) for kind, of_links in sorted(self._last.items())} or None

    def _answering_way(self) -> Way:
        for name in _WAYS.get(self._architecture, _OF_UNKNOWN):
            way = _way(name, self._links)
            fields = tuple(field for of_kind in way.values() for field in of_kind)
            answered = FieldBatch(self._device.nvml, self._device.handle, fields).read()
            if answered:
                return {kind: of_kind for kind, of_kind in way.items() if any(field in answered for field in of_kind)}
        return {}

    def _decoded(self, values: FieldValues) -> Iterator[tuple[int, str, int]]:
        for kind, fields in self._way.items():
            for link, field in enumerate(fields):
                counted = quantities.count(values[field]) if field in values else None
                if counted is not None:
                    yield link, kind, counted

    def _called(self) -> Iterator[tuple[int, str, int]]:
        """One call a link and kind. What a driver refuses of one link it is not asked of any more."""
        for kind, counter in tuple(self._calls.items()):
            try:
                counted = [self._device.link_errors(link, counter) for link in range(self._links)]
            except (Unsupported, Denied):
                self._calls = {other: number for other, number in self._calls.items() if other != kind}
                continue
            yield from ((link, kind, number) for link, number in enumerate(counted) if number is not None)


def _way(name: str, links: int) -> Way:
    if name == "lanes":
        return {kind: tuple(Field(_lane_id(first, link)) for link in range(links)) for kind, first in _OF_LANES.items()}
    by_scope = _OF_DATA_LINK if name == "data_link" else _OF_NVLINK_5
    return {kind: tuple(Field(field_id, link) for link in range(links)) for kind, field_id in by_scope.items()}


def _lane_id(first: tuple[int, int], link: int) -> int:
    return first[0] + link if link < _LANES else first[1] + link - _LANES
