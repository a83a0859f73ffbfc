# SPDX-License-Identifier: Apache-2.0
"""Statistics of network drivers by ioctl, without a process and without a privilege.

The kernel answers about the interfaces of the network namespace we are in, whatever sysfs we were told to read. So
where that is not ours, an interface counts as the same only if its index and its address are.
Source: net/ethtool/ioctl.c, include/uapi/linux/ethtool.h.
"""

import ctypes
import fcntl
import socket
import struct
from typing import Final

from gpufeed.errors import Absent, Broken, ParseError, SourceError, Unsupported
from gpufeed.parse.ethtool import STRING_BYTES, is_wanted, parse_ethtool_text, parse_names
from gpufeed.parse.number import parse_count
from gpufeed.sources.contract import Desk
from gpufeed.sources.files import Tree, refuse
from gpufeed.sources.gathering import Gathering
from gpufeed.sources.interfaces import CLASS
from gpufeed.sources.keeping import keeper

SIOCETHTOOL: Final = 0x8946
SIOCGIFHWADDR: Final = 0x8927
GSTRINGS: Final = 0x1B
GSTATS: Final = 0x1D
GSSET_INFO: Final = 0x37
_SET_OF_STATISTICS: Final = 1

MAX_STATISTICS: Final = 8192
_ROOM: Final = 2 * MAX_STATISTICS
"""The kernel writes as many as there are by then, not as many as we asked for: more may have come meanwhile."""

_NAME_BYTES: Final = 16
_ADDRESS_BYTES: Final = 6
_REQUEST: Final = struct.Struct(f"{_NAME_BYTES}sP16x")
_INTERFACE: Final = struct.Struct(f"{_NAME_BYTES}sH14s8x")
_SET_INFO: Final = struct.Struct("=IIQI")  # cmd, reserved, sset_mask, data[0]
_STRINGS: Final = struct.Struct("=III")  # cmd, string_set, len; then the names
_STATISTICS: Final = struct.Struct("=II")  # cmd, n_stats; then the values
_VALUE_BYTES: Final = 8
KEPT: Final = "ethtool"
"""Where a kept or simulated tree has these statistics, as text, beside its sysfs."""


class DriverStatisticsReader:
    """Reads the statistics on our list. Names are asked for once; they change when queues are added."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._sys = Tree(desk.config.sysfs, desk)
        self._root = Tree(desk.config.rootfs, desk)
        self._keeper = keeper(desk.config.rootfs, desk.config)
        self._is_kept = desk.config.rootfs != "/" and self._root.has(KEPT)
        self._is_ours = desk.config.sysfs == "/sys"
        self._names: dict[str, tuple[int, dict[int, str]]] = {}  # how many there are; the wanted ones by place
        self._socket: socket.socket | None = None
        self._buffer: ctypes.Array[ctypes.c_char] | None = None

    def read(self, interface: str, gathering: Gathering) -> list[tuple[str, int]]:
        """Names and values of one interface. Raises SourceError, ParseError."""
        if self._is_kept:
            return self._kept(interface, gathering)
        if not (self._is_ours or self._is_same(interface)):
            raise Absent(f"{interface} is not in the network namespace of this process")
        for _ in range(2):
            count, wanted = self._names.get(interface) or self._look(interface)
            values = self._ask_values(interface, count)
            if values is not None:
                found = [(name, values[place]) for place, name in wanted.items()]
                self._keep(interface, found)
                return found
            del self._names[interface]
        raise Broken(f"{interface}: the driver changes what it counts at every look")

    def close(self) -> None:
        """Let go of the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _kept(self, interface: str, gathering: Gathering) -> list[tuple[str, int]]:
        parsed = parse_ethtool_text(self._root.table(f"{KEPT}/{interface}/statistics"))
        for reject in parsed.rejects:
            gathering.fail(f"{interface}/ethtool", reject)
        return [(name, value) for name, value in parsed.rows if is_wanted(name)]

    def _keep(self, interface: str, found: list[tuple[str, int]]) -> None:
        """For a capture: as a kept tree has them."""
        if self._keeper is not None:
            text = "".join(f"     {name}: {value}\n" for name, value in found)
            self._keeper.saw(f"{KEPT}/{interface}/statistics", f"NIC statistics:\n{text}".encode())

    def _look(self, interface: str) -> tuple[int, dict[int, str]]:
        count = self._ask_count(interface)
        if not 0 < count <= MAX_STATISTICS:
            raise Unsupported(f"{interface}: the driver counts {count} things")
        names = parse_names(self._ask_names(interface, count), count)
        self._names[interface] = (count, {place: name for place, name in enumerate(names) if is_wanted(name)})
        return self._names[interface]

    def _ask_count(self, interface: str) -> int:
        answer = self._ask(interface, _SET_INFO.pack(GSSET_INFO, 0, 1 << _SET_OF_STATISTICS, 0))
        _, _, mask, count = _SET_INFO.unpack_from(answer)
        return int(count) if mask else 0

    def _ask_names(self, interface: str, count: int) -> bytes:
        answer = self._ask(interface, _STRINGS.pack(GSTRINGS, _SET_OF_STATISTICS, count))
        *_, there = _STRINGS.unpack_from(answer)
        if there != count:
            raise Unsupported(f"{interface}: {there} names where {count} were counted")
        return bytes(answer[_STRINGS.size : _STRINGS.size + count * STRING_BYTES])

    def _ask_values(self, interface: str, count: int) -> tuple[int, ...] | None:
        """Values in the order of the names; None where there are not as many as names."""
        answer = self._ask(interface, _STATISTICS.pack(GSTATS, count))
        _, there = _STATISTICS.unpack_from(answer)
        return struct.unpack_from(f"={count}Q", answer, _STATISTICS.size) if there == count else None

    def _ask(self, interface: str, command: bytes) -> memoryview:
        """What stands in our buffer after the kernel answered. Raises SourceError."""
        self._desk.call = f"ioctl(SIOCETHTOOL, {interface})"
        self._desk.counts.file_reads += 1
        if self._buffer is None:
            self._buffer = ctypes.create_string_buffer(_STRINGS.size + _ROOM * STRING_BYTES)
        ctypes.memmove(self._buffer, command, len(command))
        self._ioctl(SIOCETHTOOL, _REQUEST.pack(_encoded(interface), ctypes.addressof(self._buffer)), interface)
        return memoryview(self._buffer)

    def _is_same(self, interface: str) -> bool:
        """Whether the interface that the kernel knows by this name is the one that sysfs shows."""
        try:
            index = parse_count(self._sys.attribute(f"{CLASS}/{interface}/ifindex"))
            shown = self._sys.attribute(f"{CLASS}/{interface}/address")
            if index is None or socket.if_nametoindex(interface) != index:
                return False
            answer = self._ioctl(SIOCGIFHWADDR, _INTERFACE.pack(_encoded(interface), 0, b""), interface)
        except (SourceError, ParseError, OSError):
            return False
        return shown.strip().lower().startswith(_spelled(_INTERFACE.unpack(answer)[2]))

    def _ioctl(self, request: int, argument: bytes, interface: str) -> bytes:
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            return fcntl.ioctl(self._socket, request, argument)
        except OSError as error:
            refuse(error, f"ethtool {interface}")


def _encoded(interface: str) -> bytes:
    name = interface.encode("utf-8", "surrogateescape")
    if len(name) >= _NAME_BYTES:
        raise Absent(f"{interface[:80]} is no name of an interface")
    return name


def _spelled(address: bytes) -> bytes:
    """The first bytes of an address as sysfs spells them."""
    return address[:_ADDRESS_BYTES].hex(":").encode()
