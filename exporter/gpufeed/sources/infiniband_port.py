# SPDX-License-Identifier: Apache-2.0
"""One port of an RDMA device, file by file."""

from collections.abc import Callable
from typing import Final, TypeVar

from gpufeed.errors import ParseError, SourceError
from gpufeed.model.fabric import IbCounters, IbErrors, IbPort
from gpufeed.model.ids import IbPortKey
from gpufeed.parse.infiniband import (
    CEILINGS,
    ERROR_COUNTERS,
    NARROW_DATA_CEILING,
    Rate,
    is_hw_event,
    parse_data_words,
    parse_lid,
    parse_rate,
    parse_state,
    saturated_counters,
)
from gpufeed.parse.number import MAX_COUNT, parse_count
from gpufeed.parse.text import clean_text
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Gathering
from gpufeed.units import IB_WORD_BYTES

V = TypeVar("V")

MAX_HW_COUNTERS: Final = 256
"""hfi1 has over a hundred; a driver gone wild must not fill the page."""

_OF_THE_DEVICE: Final = "../../hw_counters"
"""Where some drivers count for the device as a whole: of one port that is the same."""

_UNKNOWN_RATE: Final = Rate(bytes_per_s=None)
_DATA: Final = "data"
_PACKETS: Final = "packets"

_HW_RECEIVE_BYTES: Final = (
    ("rx_bytes",),
    ("rx_rdma_ucast_bytes", "rx_rdma_mcast_bytes"),
    ("ip4InOctets", "ip6InOctets"),
)
_HW_TRANSMIT_BYTES: Final = (
    ("tx_bytes",),
    ("tx_rdma_ucast_bytes", "tx_rdma_mcast_bytes"),
    ("ip4OutOctets", "ip6OutOctets"),
)
_HW_RECEIVE_PACKETS: Final = (
    ("rx_pkts",),
    ("rx_rdma_ucast_pkts", "rx_rdma_mcast_pkts"),
    ("ip4InPkts", "ip6InPkts"),
    ("rcvd_pkts",),
)
_HW_TRANSMIT_PACKETS: Final = (
    ("tx_pkts",),
    ("tx_rdma_ucast_pkts", "tx_rdma_mcast_pkts"),
    ("ip4OutPkts", "ip6OutPkts"),
    ("sent_pkts",),
)
"""Drivers without `counters/` count bytes and packets among the hardware counters: bnxt_re, efa and mana; ionic;
irdma; rxe, which counts no bytes.

The first of these sets that a port has any file of is summed.
"""


class Port:
    """Reads one port. What its driver offers is looked up at every slow read; in between it is taken as known."""

    def __init__(self, key: IbPortKey, path: str, tree: Tree) -> None:
        self.key = key
        self.has_bytes = False
        self.is_only = False  # of its device
        self._path = path
        self._tree = tree
        self._files: dict[str, frozenset[str]] = {}
        self._hardware = "hw_counters"
        self._pinned: dict[str, int] = {}  # narrow data counters seen at their ceiling: how often in a row

    def counters(self, gathering: Gathering) -> IbCounters:
        """Bytes, packets, and ticks in which data waited for credits. None where the driver counts none."""
        if not self._files:
            self._look()
        sample = IbCounters(
            port=self.key,
            receive_bytes=self._moved("port_rcv", _DATA, _HW_RECEIVE_BYTES, gathering),
            transmit_bytes=self._moved("port_xmit", _DATA, _HW_TRANSMIT_BYTES, gathering),
            receive_packets=self._moved("port_rcv", _PACKETS, _HW_RECEIVE_PACKETS, gathering),
            transmit_packets=self._moved("port_xmit", _PACKETS, _HW_TRANSMIT_PACKETS, gathering),
            transmit_wait_ticks=self._count("counters", "port_xmit_wait", gathering),
        )
        self.has_bytes = sample.receive_bytes is not None or sample.transmit_bytes is not None
        return sample

    def state(self, gathering: Gathering, *, is_fabric: bool) -> IbPort:
        """State, speed and names of the port."""
        rate = self._value("rate", parse_rate, gathering) or _UNKNOWN_RATE
        return IbPort(
            port=self.key,
            link_layer=self._text("link_layer"),
            lid=self._value("lid", parse_lid, gathering),
            state_id=self._value("state", parse_state, gathering),
            physical_state_id=self._value("phys_state", parse_state, gathering),
            rate_bytes_per_s=rate.bytes_per_s,
            width=rate.width,
            speed=rate.speed,
            netdev=self._text("gid_attrs/ndevs/0"),
            is_fabric=is_fabric,
        )

    def errors(self, gathering: Gathering) -> IbErrors:
        """Error counters and hardware events, by the names of their files, and which of them count no further."""
        self._look()
        counted = {name: value for name in CEILINGS if (value := self._count("counters", name, gathering)) is not None}
        pinned = sorted(name for name, seen in self._pinned.items() if seen > 1)
        events = sorted(filter(is_hw_event, self._files["hw_counters"]))[:MAX_HW_COUNTERS]
        return IbErrors(
            port=self.key,
            errors={name: counted[name] for name in ERROR_COUNTERS if name in counted},
            hw_events={
                name: value for name in events if (value := self._count("hw_counters", name, gathering)) is not None
            },
            saturated=(*saturated_counters(counted), *pinned) if counted or pinned else None,
        )

    def _look(self) -> None:
        """Which files there are. A folder that is missing has none: most drivers lack one or the other."""
        self._files = {folder: self._names(folder) for folder in ("counters", "counters_ext", "hw_counters")}
        self._hardware = "hw_counters"
        if self.is_only and not self._files["hw_counters"]:
            self._hardware = _OF_THE_DEVICE
            self._files["hw_counters"] = self._names(_OF_THE_DEVICE)
        offered = frozenset().union(*self._files.values())
        hardware = {name for names in (*_HW_RECEIVE_BYTES, *_HW_TRANSMIT_BYTES) for name in names}
        self.has_bytes = not offered.isdisjoint({"port_rcv_data", "port_rcv_data_64", *hardware})

    def _names(self, folder: str) -> frozenset[str]:
        try:
            return frozenset(self._tree.names(f"{self._path}/{folder}"))
        except SourceError:
            return frozenset()

    def _moved(
        self, direction: str, what: str, hardware: tuple[tuple[str, ...], ...], gathering: Gathering
    ) -> int | None:
        """Bytes or packets: the wide counter of old kernels, else the ordinary one, else the driver's own."""
        parse = parse_data_words if what == _DATA else parse_count
        name = f"{direction}_{what}"
        for folder, file in (("counters_ext", f"{name}_64"), ("counters", name)):
            if file in self._files[folder]:
                value = self._value(f"{folder}/{file}", parse, gathering)
                if value is not None:
                    self._note_pinned(name, value // (IB_WORD_BYTES if what == _DATA else 1))
                    return value
        for names in hardware:
            values = [value for name in names if (value := self._count("hw_counters", name, gathering)) is not None]
            if values:
                return min(sum(values), MAX_COUNT)
        return None

    def _note_pinned(self, name: str, value: int) -> None:
        """A counter that stands at 32 ones at two reads in a row is one that went no further."""
        self._pinned[name] = self._pinned.get(name, 0) + 1 if value == NARROW_DATA_CEILING else 0

    def _count(self, folder: str, name: str, gathering: Gathering) -> int | None:
        if name not in self._files[folder]:
            return None
        place = self._hardware if folder == "hw_counters" else folder
        return self._value(f"{place}/{name}", parse_count, gathering)

    def _value(self, file: str, parse: Callable[[bytes, str], V | None], gathering: Gathering) -> V | None:
        where = f"{self.key.device}/{self.key.port}/{file}"
        try:
            return parse(self._tree.attribute(f"{self._path}/{file}"), where)
        except (SourceError, ParseError) as error:
            gathering.fail(where, error)
            return None

    def _text(self, file: str) -> str | None:
        try:
            return clean_text(self._tree.attribute(f"{self._path}/{file}")) or None
        except SourceError:
            return None
