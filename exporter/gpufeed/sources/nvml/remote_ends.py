# SPDX-License-Identifier: Apache-2.0
"""What an NVLink leads to."""

import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from gpufeed.errors import DeviceLost, DeviceResetRequired, SourceError
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.identity import sysfs_bus_id

T = TypeVar("T")

_TYPES: Final = {0: "gpu", 1: "cpu", 2: "switch"}
"""nvmlIntNvLinkDeviceType_t; 0xFF is unknown."""

_BUS_ID: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
_HIDDEN: Final = "ffff"  # of a switch that shows no PCI address: all bits set


class RemoteEnd(NamedTuple):
    """The device at the other end; None is not known."""

    type: str | None
    pci_bus_id: str | None  # as sysfs spells it


def remote_end(device: Device, link: int) -> RemoteEnd:
    """Two calls: what the device is, and where. Raises DeviceLost and DeviceResetRequired."""
    number = _optional(lambda: device.link_number("nvmlDeviceGetNvLinkRemoteDeviceType", link))
    pci = _optional(lambda: device.nvml.call("nvmlDeviceGetNvLinkRemotePciInfo", device.handle, link))
    return RemoteEnd(None if number is None else _TYPES.get(number), None if pci is None else _bus_id(pci.busId))


def _bus_id(text: str | bytes) -> str | None:
    bus_id = sysfs_bus_id(text.decode("ascii", "replace") if isinstance(text, bytes) else text)
    return bus_id if _BUS_ID.fullmatch(bus_id) and not bus_id.startswith(_HIDDEN) else None


def _optional(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except (DeviceLost, DeviceResetRequired):
        raise
    except SourceError:
        return None
