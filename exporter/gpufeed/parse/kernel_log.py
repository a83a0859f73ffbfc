# SPDX-License-Identifier: Apache-2.0
"""Records of /dev/kmsg, and what the NVIDIA driver writes into them about a GPU in trouble.

A record is `priority,sequence,microseconds,flags;text`, with more fields before the semicolon on newer kernels;
lines that begin with a space belong to the record before and are of no interest here. The time is that of the
kernel's log clock, which starts at boot.
"""

import re
from typing import Final, NamedTuple

from gpufeed.errors import ParseError
from gpufeed.parse.number import MAX_COUNT

_RECORD: Final = re.compile(rb"[0-9]{1,10},([0-9]{1,20}),([0-9]{1,20}),[^;]*;(.*)", re.DOTALL)
_XID: Final = re.compile(
    rb"NVRM: Xid \((?:PCI:)?"
    rb"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.[0-7])?"
    rb"(?: GPU-I:[0-9]{1,3})?(?: GPU-CI:[0-9]{1,3})?\): ([0-9]{1,5})\b[,:]?\s*(.*)",
    re.DOTALL,
)
_MAX_TEXT_BYTES: Final = 256
_NS_PER_US: Final = 1000


class Record(NamedTuple):
    """One message of the kernel."""

    sequence: int  # counts up from boot, without holes
    at_ns: int  # by the log's clock, since boot
    text: bytes


class XidLine(NamedTuple):
    """What the driver says of an XID."""

    pci_bus_id: str  # the slot, without the function: 0000:18:00
    xid: int
    text: str


def parse_record(line: bytes, where: str = "") -> Record:
    """One record, as one read of /dev/kmsg gives it. Raises ParseError."""
    match = _RECORD.fullmatch(line)
    if match is None:
        raise ParseError("a record of the kernel log", line, where)
    sequence, microseconds = int(match[1]), int(match[2])
    if max(sequence, microseconds * _NS_PER_US) > MAX_COUNT:
        raise ParseError("numbers of 64 bits", line, where)
    return Record(sequence, microseconds * _NS_PER_US, match[3])


def parse_xid(text: bytes) -> XidLine | None:
    """An XID, of all the spellings that drivers have had; None for any other message, SXids of switches among them."""
    match = _XID.match(text)
    if match is None:
        return None
    domain, bus, device = int(match[1], 16), match[2].decode().lower(), match[3].decode().lower()
    said = match[5][:_MAX_TEXT_BYTES].decode("utf-8", "replace").strip()
    return XidLine(f"{domain:04x}:{bus}:{device}", int(match[4]), said)
