# SPDX-License-Identifier: Apache-2.0
"""/proc/fs/beegfs/CLIENT/config: how a BeeGFS client was told to mount. It has no counters."""

from typing import Final

from gpufeed.parse.text import clean_text

_MANAGEMENT: Final = b"sysMgmtdHost"


def parse_management_host(data: bytes) -> str:
    """The host whose file system this is; empty where the file does not say."""
    for line in data.split(b"\n"):
        key, separator, value = line.partition(b"=")
        if separator and key.strip() == _MANAGEMENT:
            return clean_text(value)
    return ""
