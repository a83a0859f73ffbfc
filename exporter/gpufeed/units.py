# SPDX-License-Identifier: Apache-2.0
"""Named conversions to base units. A raw reading is converted once, where it is parsed, nowhere after."""

from typing import Final

NS_PER_S: Final = 1_000_000_000
NS_PER_MS: Final = 1_000_000
MS_PER_S: Final = 1_000
US_PER_S: Final = 1_000_000

SECTOR_BYTES: Final = 512
"""Unit of /proc/diskstats, whatever the device's own sector size (Documentation/admin-guide/iostats.rst)."""

IB_WORD_BYTES: Final = 4
"""port_xmit_data and port_rcv_data count 4-octet words (InfiniBand Architecture Specification, PortCounters)."""

KIBIBYTE: Final = 1024
MEBIBYTE: Final = 1024 * 1024
MEGABYTE: Final = 1_000_000
MEGAHERTZ: Final = 1_000_000


def seconds(ns: int) -> float:
    """Nanoseconds as seconds."""
    return ns / NS_PER_S


def nanoseconds(duration_s: float) -> int:
    """Seconds as whole nanoseconds, rounded."""
    return round(duration_s * NS_PER_S)
