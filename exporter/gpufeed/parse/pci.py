# SPDX-License-Identifier: Apache-2.0
"""Names of the PCI tree in sysfs: what a path through /sys/devices says of how a device is attached."""

import re
from collections.abc import Iterator
from itertools import dropwhile, takewhile
from typing import Final

_HOST_BRIDGE: Final = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_FUNCTION: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def is_pci_function(name: str) -> bool:
    """Whether this is the address of a PCI function as sysfs spells it: `0000:18:00.0`."""
    return _FUNCTION.fullmatch(name) is not None


def pci_path(path: str) -> tuple[str, ...]:
    """From the host bridge through every port to the function, of a path that may go on below; else nothing."""
    parts = dropwhile(lambda part: _HOST_BRIDGE.fullmatch(part) is None, path.lower().split("/"))
    bridge = next(parts, None)
    return () if bridge is None else (bridge, *_functions(parts))


def _functions(parts: Iterator[str]) -> Iterator[str]:
    return takewhile(is_pci_function, parts)
