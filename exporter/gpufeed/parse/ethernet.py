# SPDX-License-Identifier: Apache-2.0
"""Files below /sys/class/net/*. Source: Documentation/ABI/testing/sysfs-class-net.

Several of them refuse to be read while the interface is down, and print nonsense of before where they do not.
"""

import re
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.parse.number import parse_integer
from gpufeed.units import MEGABYTE

_BITS_PER_BYTE: Final = 8
_UNKNOWN_SPEED: Final = 2**31 - 1
"""SPEED_UNKNOWN is -1: older kernels print it as 4294967295, and nothing is this fast."""

_STATES: Final = {
    b"up": True,
    b"down": False,
    b"notpresent": False,
    b"lowerlayerdown": False,
    b"testing": False,
    b"dormant": False,
}
_REPRESENTOR: Final = re.compile(rb"(?:c\d+)?pf\d+(?:vf|sf)\d+")


def parse_operstate(data: bytes, where: str = "") -> bool | None:
    """Whether the interface can pass packets; None where the driver keeps no state. Raises ParseError."""
    word = data.strip()
    if word in {b"", b"unknown"}:
        return None
    if word not in _STATES:
        raise ParseError("a state such as 'up'", word, where)
    return _STATES[word]


def parse_speed(data: bytes, where: str = "") -> float | None:
    """Bytes per second in one direction, from Mbit/s; None where the driver does not know. Raises ParseError."""
    megabits = parse_integer(data, where)
    if megabits is None or not 0 < megabits < _UNKNOWN_SPEED:
        return None
    return megabits * MEGABYTE / _BITS_PER_BYTE


def is_representor(port_name: bytes) -> bool:
    """Whether `phys_port_name` is that of the near end of a virtual function: its traffic is the card's already."""
    return _REPRESENTOR.fullmatch(port_name.strip()) is not None
