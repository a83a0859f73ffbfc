# SPDX-License-Identifier: Apache-2.0
"""Files below /sys/class/infiniband. Source: Documentation/ABI/stable/sysfs-class-infiniband, IBTA PortCounters.

A file of this class holds one value. Widths of the counters are those of the management attribute behind the file:
error counters are narrow and stop at their ceiling by specification, they do not wrap.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.parse.number import MAX_COUNT, parse_count
from gpufeed.units import IB_WORD_BYTES

_BITS_PER_BYTE: Final = 8
_BITS_OF_UNIT: Final = MappingProxyType({b"K": 1e3, b"M": 1e6, b"G": 1e9, b"T": 1e12})
_RATE: Final = re.compile(
    rb"(?P<number>[0-9]{1,6}(?:\.[0-9]{1,6})?)"
    rb"(?:\s*(?P<unit>[KMGT])[bB](?:/s(?:ec)?|ps)?)?"
    rb"(?:\s*\((?P<width>[0-9]{1,3})X(?:\s+(?P<speed>[A-Za-z0-9]{1,16}))?\))?"
)
_STATE: Final = re.compile(rb"(?P<number>[0-9]{1,3})(?:\s*:.*)?", re.DOTALL)
_GUID: Final = re.compile(rb"[0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){3}")
_NO_GUID: Final = b"0000:0000:0000:0000"
_NO_LID: Final = frozenset({0, 0xFFFF})

CEILINGS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "symbol_error": 2**16 - 1,
        "link_error_recovery": 2**8 - 1,
        "link_downed": 2**8 - 1,
        "port_rcv_errors": 2**16 - 1,
        "port_rcv_remote_physical_errors": 2**16 - 1,
        "port_rcv_switch_relay_errors": 2**16 - 1,
        "port_xmit_discards": 2**16 - 1,
        "port_xmit_constraint_errors": 2**8 - 1,
        "port_rcv_constraint_errors": 2**8 - 1,
        "local_link_integrity_errors": 2**4 - 1,
        "excessive_buffer_overrun_errors": 2**4 - 1,
        "VL15_dropped": 2**16 - 1,
        "port_xmit_wait": 2**32 - 1,
    }
)
"""Where a counter stops, by the name of its file in `counters/`."""

ERROR_COUNTERS: Final = tuple(name for name in CEILINGS if name != "port_xmit_wait")
"""Files of `counters/` that count errors."""

NARROW_DATA_CEILING: Final = 2**32 - 1
"""Where data and packet counters stop on devices that have PortCounters only."""

_NOT_AN_EVENT: Final = re.compile(r"lifespan|bytes|octets|active_|_active|_current|curr_", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The `rate` file: signalling without encoding as the kernel prints it, in bytes per second."""

    bytes_per_s: float | None
    width: int | None = None  # lanes
    speed: str | None = None  # NDR


def parse_rate(data: bytes, where: str = "") -> Rate:
    """Link rate in bytes per second, lanes and speed name. Raises ParseError.

    Spellings met: `400 Gb/sec (4X NDR)`, `10 Gb/sec (4X)` before 5.x, `0 GB/sec` of an unplugged port, a bare `2.5`.
    A rate of zero is no rate: None. Source: drivers/infiniband/core/sysfs.c, rate_show.
    """
    found = _RATE.fullmatch(data.strip())
    if found is None:
        raise ParseError("a rate such as '400 Gb/sec (4X NDR)'", data.strip(), where)
    bits_per_s = float(found["number"]) * _BITS_OF_UNIT[found["unit"] or b"G"]
    return Rate(
        bytes_per_s=bits_per_s / _BITS_PER_BYTE if bits_per_s else None,
        width=int(found["width"]) or None if found["width"] else None,
        speed=found["speed"].decode() if found["speed"] else None,
    )


def parse_state(data: bytes, where: str = "") -> int:
    """The number of `state` (`4: ACTIVE`) or `phys_state` (`5: LinkUp`). Raises ParseError.

    The word behind it is the kernel's table at work, says nothing more, and is unknown on newer kernels: not read.
    """
    found = _STATE.fullmatch(data.strip())
    if found is None:
        raise ParseError("a state such as '4: ACTIVE'", data.strip(), where)
    return int(found["number"])


def parse_node_guid(data: bytes, where: str = "") -> str | None:
    """A GUID in lower case; None where it is all zero, as on devices without one. Raises ParseError."""
    word = data.strip()
    if not _GUID.fullmatch(word):
        raise ParseError("a GUID such as '0c42:a103:00aa:bb01'", word, where)
    return None if word == _NO_GUID else word.decode().lower()


def parse_lid(data: bytes, where: str = "") -> int | None:
    """A local identifier; None where no subnet manager has given one (0 or 0xffff). Raises ParseError."""
    value = parse_count(data, where)
    return None if value in _NO_LID else value


def parse_data_words(data: bytes, where: str = "") -> int | None:
    """Bytes from `port_rcv_data` and `port_xmit_data`, which count 4-byte words at every width. Raises ParseError."""
    words = parse_count(data, where)
    if words is None or words * IB_WORD_BYTES > MAX_COUNT:
        return None
    return words * IB_WORD_BYTES


def saturated_counters(values: Mapping[str, int]) -> tuple[str, ...]:
    """Names of the counters that stand at their ceiling: they count no further until somebody resets them."""
    return tuple(sorted(name for name, value in values.items() if CEILINGS.get(name) == value))


def is_hw_event(name: str) -> bool:
    """Whether a file of `hw_counters/` counts events: not bytes, not a gauge, not the age of the cache."""
    return _NOT_AN_EVENT.search(name) is None
