# SPDX-License-Identifier: Apache-2.0
"""NVLink bytes of one GPU, all links together, and how many links are up."""

from collections.abc import Callable
from typing import Final, NamedTuple

from gpufeed.clock import Clock
from gpufeed.errors import Unsupported
from gpufeed.model.gpu import NvlinkTotals
from gpufeed.model.ids import GpuKey
from gpufeed.sources.nvml import field_ids, quantities
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.field_batch import FieldBatch, FieldValues
from gpufeed.sources.nvml.field_ids import ALL_LINKS, Field

_MAX_LINKS: Final = 36
"""NVML_NVLINK_MAX_LINKS since 610; asked one by one only where the driver does not tell the count."""


class _Way(NamedTuple):
    """A way to count bytes: the fields whose sum it is, in each direction, and their unit."""

    transmit: tuple[Field, ...]
    receive: tuple[Field, ...]
    to_bytes: Callable[[float], int | None]


def count_links(device: Device) -> int | None:
    """Links of the board, up or not: field 91, or as many as answer. 0: it has none. Raises SourceError."""
    links = FieldBatch(device.nvml, device.handle, (field_ids.NVLINK_LINKS,)).read().get(field_ids.NVLINK_LINKS)
    if links is not None:
        return int(links) if 0 <= links <= 2 * _MAX_LINKS else None
    try:
        return device.probe_links(_MAX_LINKS)
    except Unsupported:
        return 0


def is_nvlink_5(architecture: str | None) -> bool:
    """Whether the links of a generation count under the ids that NVLink 5 brought."""
    return architecture in {"blackwell", "rubin"}


class NvlinkReadings:
    """The links of one GPU together, on a device that has some."""

    def __init__(self, device: Device, links: int, states: "LinkStates", architecture: str | None = None) -> None:
        self._links = links
        self._way, self._batch = _find_way(device, links, architecture)
        self._states = states

    @property
    def has_bytes(self) -> bool:
        """Whether any way to count bytes answers here."""
        return self._way is not None

    def read(self, gpu: GpuKey) -> NvlinkTotals:
        """Bytes since driver load. Raises SourceError."""
        values = self._batch.read()
        return NvlinkTotals(
            gpu=gpu,
            transmit_bytes=None if self._way is None else _sum(values, self._way.transmit, self._way.to_bytes),
            receive_bytes=None if self._way is None else _sum(values, self._way.receive, self._way.to_bytes),
            links=self._links,
            links_up=self._states.count_up(),
        )


class LinkStates:
    """Which links are up: field 165 of every link, or the older call of every link.

    States change within minutes: 18 of them at every fast read would double what that costs. Whoever reads them
    seldom reads them for all; only where nobody has lately are they asked for here.
    """

    def __init__(self, device: Device, links: int, clock: Clock, period_ns: int) -> None:
        self._device = device
        self._links = links
        self._clock = clock
        self._good_for_ns = period_ns + period_ns // 2  # half a period of grace for him who reads them every period
        self._read_ns: int | None = None
        self._states: dict[int, bool] = {}
        self._batch = FieldBatch(
            device.nvml, device.handle, tuple(Field(field_ids.NVLINK_STATE, link) for link in range(links))
        )
        self._batch.read()
        self._has_fields = len(self._batch.fields) == links

    def read(self) -> dict[int, bool]:
        """Link → is it in any state but inactive, now; a link that did not answer is left out. Raises SourceError."""
        self._states = self._by_fields() if self._has_fields else self._by_calls()
        self._read_ns = self._clock.monotonic_ns()
        return self._states

    def count_up(self) -> int | None:
        """Links that are up, as of not long ago; None if not every link answered. Raises SourceError."""
        if self._read_ns is None or self._clock.monotonic_ns() - self._read_ns >= self._good_for_ns:
            self.read()
        return sum(self._states.values()) if len(self._states) == self._links else None

    def _by_fields(self) -> dict[int, bool]:
        return {field.scope: state != 0 for field, state in self._batch.read().items()}

    def _by_calls(self) -> dict[int, bool]:
        try:
            return {link: self._device.is_link_up(link) for link in range(self._links)}
        except Unsupported:
            return {}


def _find_way(device: Device, links: int, architecture: str | None) -> tuple[_Way | None, FieldBatch]:
    for way in _ways(links, architecture):
        fields = (*way.transmit, *way.receive)
        batch = FieldBatch(device.nvml, device.handle, fields)
        batch.read()
        if batch.fields == fields:
            return way, batch
    return None, FieldBatch(device.nvml, device.handle, ())


def _ways(links: int, architecture: str | None) -> tuple[_Way, ...]:
    def of_each(field_id: int) -> tuple[Field, ...]:
        return tuple(Field(field_id, link) for link in range(links))

    together = _Way(
        (Field(field_ids.NVLINK_TRANSMIT, ALL_LINKS),),
        (Field(field_ids.NVLINK_RECEIVE, ALL_LINKS),),
        quantities.counter_bytes_of_kib,
    )
    fifth = _Way(of_each(field_ids.NVLINK5_TRANSMIT), of_each(field_ids.NVLINK5_RECEIVE), quantities.counter_bytes)
    one_by_one = _Way(
        of_each(field_ids.NVLINK_TRANSMIT), of_each(field_ids.NVLINK_RECEIVE), quantities.counter_bytes_of_kib
    )
    return (fifth, together, one_by_one) if is_nvlink_5(architecture) else (together, fifth, one_by_one)


def _sum(values: FieldValues, fields: tuple[Field, ...], to_bytes: Callable[[float], int | None]) -> int | None:
    """Sum over all fields; None if one did not answer: a sum over fewer links would look like a reset."""
    total = 0
    for field in fields:
        value = to_bytes(values[field]) if field in values else None
        if value is None:
            return None
        total += value
    return total
