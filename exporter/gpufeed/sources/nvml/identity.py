# SPDX-License-Identifier: Apache-2.0
"""Who a GPU is: read when its lane finds it, never in the cycle."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from gpufeed.errors import DeviceLost, DeviceResetRequired, SourceError
from gpufeed.model.gpu import GpuIdentity
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.sources.nvml import architecture, field_ids, quantities
from gpufeed.sources.nvml.binding import module_id
from gpufeed.sources.nvml.device import MEMORY_CLOCK, SM_CLOCK, Device
from gpufeed.sources.nvml.field_batch import FieldBatch
from gpufeed.sources.nvml.nvlink import count_links

T = TypeVar("T")


class Pci(NamedTuple):
    """Where a GPU sits."""

    bus_id: str  # 0000:18:00.0, the sysfs spelling
    device_id: int  # device << 16 | vendor


def read_identity(device: Device, index: int, numa_node_of: Callable[[str], int | None]) -> GpuIdentity:
    """Everything that does not change until the driver is initialised again; what cannot be had is None.

    Raises SourceError where not even the UUID can be read, DeviceLost and DeviceResetRequired at any point.
    """
    uuid = GpuUuid(device.uuid())
    pci = _optional(lambda: read_pci(device))
    batch = FieldBatch(device.nvml, device.handle, (field_ids.POWER_LIMIT_DEFAULT, field_ids.NVLINK_SPEED))
    fields = _optional(batch.read) or {}
    default_limit_mw = fields.get(field_ids.POWER_LIMIT_DEFAULT)
    speed_mbps = fields.get(field_ids.NVLINK_SPEED)
    links = _optional(lambda: count_links(device))
    return GpuIdentity(
        gpu=GpuKey(uuid),
        index=index,
        name=_text(device, "nvmlDeviceGetName"),
        serial=_text(device, "nvmlDeviceGetSerial"),
        pci_bus_id=None if pci is None else pci.bus_id,
        pci_device_id=None if pci is None else pci.device_id,
        minor=_optional(lambda: device.number("nvmlDeviceGetMinorNumber")),
        architecture=_optional(lambda: _architecture(device)),
        part_number=_text(device, "nvmlDeviceGetBoardPartNumber"),
        vbios=_text(device, "nvmlDeviceGetVbiosVersion"),
        inforom=_text(device, "nvmlDeviceGetInforomImageVersion"),
        numa_node=None if pci is None else numa_node_of(pci.bus_id),
        module_id=_optional(lambda: module_id(device.nvml, device.handle)),
        sm_count=_optional(lambda: _sm_count(device)),
        power_limit_default_w=(
            _optional(device.power_limit_default_w)
            if default_limit_mw is None
            else quantities.watts_of_mw(default_limit_mw)
        ),
        sm_clock_max_hz=_optional(lambda: device.clock_max_hz(SM_CLOCK)),
        memory_clock_max_hz=_optional(lambda: device.clock_max_hz(MEMORY_CLOCK)),
        pcie_generation_max=_optional(lambda: device.number("nvmlDeviceGetMaxPcieLinkGeneration")),
        pcie_width_max=_optional(lambda: device.number("nvmlDeviceGetMaxPcieLinkWidth")),
        nvlink_links=links,
        nvlink_speed_bytes_per_s=None if not links or not speed_mbps else quantities.bytes_per_s_of_mbps(speed_mbps),
        has_gpm=bool(_optional(device.has_gpm)),
    )


def read_pci(device: Device) -> Pci:
    """nvmlDeviceGetPciInfo_v3. Raises SourceError."""
    info = device.nvml.call("nvmlDeviceGetPciInfo", device.handle)
    return Pci(sysfs_bus_id(_ascii(info.busId)), int(info.pciDeviceId))


def sysfs_bus_id(bus_id: str) -> str:
    """NVML's `00000000:18:00.0` as sysfs spells it: `0000:18:00.0`, longer only where the domain needs it."""
    domain, separator, rest = bus_id.strip().lower().partition(":")
    try:
        return f"{int(domain, 16):04x}{separator}{rest}"
    except ValueError:
        return bus_id.strip().lower()


def _architecture(device: Device) -> str | None:
    number = device.number("nvmlDeviceGetArchitecture")
    return None if number is None else architecture.architecture_name(number)


def _sm_count(device: Device) -> int | None:
    cores = device.number("nvmlDeviceGetNumGpuCores")
    major, minor = device.nvml.call("nvmlDeviceGetCudaComputeCapability", device.handle)
    return None if cores is None else architecture.sm_count(cores, (int(major), int(minor)))


def _text(device: Device, function: str) -> str | None:
    return _optional(lambda: device.text(function))


def _optional(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except (DeviceLost, DeviceResetRequired):
        raise
    except SourceError:
        return None


def _ascii(text: str | bytes) -> str:
    return text.decode("ascii", "replace") if isinstance(text, bytes) else text
