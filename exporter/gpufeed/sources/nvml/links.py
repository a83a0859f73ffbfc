# SPDX-License-Identifier: Apache-2.0
"""Every NVLink of one GPU by itself: one batch of fields for all of them, and who is at the other end, asked once."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from gpufeed.model.ids import GpuKey
from gpufeed.model.nvlink import NvlinkLink, NvlinkLinks
from gpufeed.sources.nvml import field_ids, quantities
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.field_batch import FieldBatch, FieldValues
from gpufeed.sources.nvml.field_ids import Field
from gpufeed.sources.nvml.link_errors import LinkErrors
from gpufeed.sources.nvml.nvlink import LinkStates, is_nvlink_5
from gpufeed.sources.nvml.remote_ends import RemoteEnd, remote_end

_BYTES: Final = {
    True: (field_ids.NVLINK5_TRANSMIT, field_ids.NVLINK5_RECEIVE),
    False: (field_ids.NVLINK_TRANSMIT, field_ids.NVLINK_RECEIVE),
}
"""Transmit and receive, by whether the links count under the ids of NVLink 5."""

_BIT_ERROR_RATIOS: Final = {"effective": 220, "symbol": 222}
"""Scope: link; packed. Blackwell and newer."""

_NOBODY: Final = RemoteEnd(None, None)


class _Known(NamedTuple):
    """What was found out while so many links were up."""

    up: frozenset[int]
    batch: FieldBatch
    counts_bytes: bool  # and not KiB
    versions: Mapping[int, str]


class _Now(NamedTuple):
    """One read of all links."""

    known: _Known
    values: FieldValues
    states: Mapping[int, bool]
    errors: Mapping[int, dict[str, int]]


class LinkReadings:
    """The links of one GPU, on a device that has some."""

    def __init__(self, device: Device, architecture: str | None, links: int, states: LinkStates) -> None:
        self._device = device
        self._is_nvlink_5 = is_nvlink_5(architecture)
        self._links = links
        self._states = states
        self._errors = LinkErrors(device, architecture, links)
        self._known: _Known | None = None
        self._ends: dict[int, RemoteEnd] = {}

    @property
    def has_errors(self) -> bool | None:
        """Whether any way to count errors answers here; None before the first read."""
        return None if self._known is None else not self._errors.is_missing

    def read(self, gpu: GpuKey) -> NvlinkLinks:
        """Every link now. Raises SourceError."""
        states = self._states.read()
        up = frozenset(link for link, is_up in states.items() if is_up)
        if self._known is None or not up <= self._known.up:
            self._known = self._find_out(up)  # what a link that was down has refused, it may answer now
        values = self._known.batch.read()
        now = _Now(self._known, values, states, self._errors.read(values))
        links = tuple(self._link(link, now) for link in range(self._links))
        return NvlinkLinks(gpu=gpu, links=links, errors=self._errors.sums())

    def _find_out(self, up: frozenset[int]) -> _Known:
        counts_bytes = self._is_nvlink_5 and bool(self._asked_once(field_ids.NVLINK5_RECEIVE))
        by_scope = (field_ids.NVLINK_SPEED_OF_LINK, *_BYTES[counts_bytes], *_BIT_ERROR_RATIOS.values())
        fields = (*(Field(field_id, link) for field_id in by_scope for link in range(self._links)),)
        versions = {
            field.scope: version
            for field, number in self._asked_once(field_ids.NVLINK_VERSION).items()
            if (version := quantities.nvlink_version(int(number))) is not None
        }
        batch = FieldBatch(self._device.nvml, self._device.handle, (*fields, *self._errors.find_out()))
        return _Known(up, batch, counts_bytes, versions)

    def _asked_once(self, field_id: int) -> FieldValues:
        fields = (Field(field_id, link) for link in range(self._links))
        return FieldBatch(self._device.nvml, self._device.handle, fields).read()

    def _link(self, link: int, now: _Now) -> NvlinkLink:
        known, values = now.known, now.values
        is_up = now.states.get(link)
        end = self._end(link) if is_up else _NOBODY
        to_bytes = quantities.counter_bytes if known.counts_bytes else quantities.counter_bytes_of_kib
        transmit, receive = (values.get(Field(field_id, link)) for field_id in _BYTES[known.counts_bytes])
        speed = values.get(Field(field_ids.NVLINK_SPEED_OF_LINK, link))
        return NvlinkLink(
            link=link,
            is_up=is_up,
            receive_bytes=None if receive is None else to_bytes(receive),
            transmit_bytes=None if transmit is None else to_bytes(transmit),
            speed_bytes_per_s=None if speed is None else quantities.bytes_per_s_of_mbps(speed),
            errors=now.errors.get(link),
            bit_error_ratios=_bit_error_ratios(link, values),
            version=known.versions.get(link),
            remote_type=end.type,
            remote_pci_bus_id=end.pci_bus_id,
        )

    def _end(self, link: int) -> RemoteEnd:
        """Asked once: it does not change while the driver is loaded, and costs two calls a link."""
        if link not in self._ends:
            self._ends[link] = remote_end(self._device, link)
        return self._ends[link]


def _bit_error_ratios(link: int, values: FieldValues) -> dict[str, float] | None:
    ratios = {
        name: quantities.bit_error_ratio(int(raw))
        for name, field_id in _BIT_ERROR_RATIOS.items()
        if (raw := values.get(Field(field_id, link))) is not None
    }
    return ratios or None
