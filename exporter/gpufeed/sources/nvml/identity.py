# SPDX-License-Identifier: Apache-2.0
"""Who a GPU is: read when its lane finds it, never in the cycle."""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from gpufeed.errors import DeviceLost, DeviceResetRequired, SourceError
from gpufeed.model.gpu import GpuIdentity
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.sources.nvml import architecture, field_ids, quantities
from gpufeed.sources.nvml.binding import module_id
from gpufeed.sources.nvml.device import GRAPHICS_CLOCK, MEMORY_CLOCK, SM_CLOCK, VIDEO_CLOCK, Device
from gpufeed.sources.nvml.field_batch import FieldBatch, FieldValues
from gpufeed.sources.nvml.field_ids import Field
from gpufeed.sources.nvml.limits import read_temperature_limits
from gpufeed.sources.nvml.nvlink import count_links

T = TypeVar("T")

_FIELDS: Final = (
    field_ids.NVLINK_SPEED,
    field_ids.POWER_LIMIT_MIN,
    field_ids.POWER_LIMIT_MAX,
    field_ids.POWER_LIMIT_DEFAULT,
    *field_ids.TEMPERATURE_LIMIT_MARGINS.values(),
)


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
    fields = _optional(FieldBatch(device.nvml, device.handle, _FIELDS).read) or {}
    speed_mbps = fields.get(field_ids.NVLINK_SPEED)
    power = _power_limits(device, fields)
    temperature = read_temperature_limits(device, fields)
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
        power_limit_default_w=power.default_w,
        sm_clock_max_hz=_optional(lambda: device.clock_max_hz(SM_CLOCK)),
        memory_clock_max_hz=_optional(lambda: device.clock_max_hz(MEMORY_CLOCK)),
        pcie_generation_max=_optional(lambda: device.number("nvmlDeviceGetMaxPcieLinkGeneration")),
        pcie_width_max=_optional(lambda: device.number("nvmlDeviceGetMaxPcieLinkWidth")),
        nvlink_links=links,
        nvlink_speed_bytes_per_s=None if not links or not speed_mbps else quantities.bytes_per_s_of_mbps(speed_mbps),
        has_gpm=bool(_optional(device.has_gpm)),
        graphics_clock_max_hz=_optional(lambda: device.clock_max_hz(GRAPHICS_CLOCK)),
        video_clock_max_hz=_optional(lambda: device.clock_max_hz(VIDEO_CLOCK)),
        power_limit_min_w=power.min_w,
        power_limit_max_w=power.max_w,
        temperature_limits_c=temperature.degrees_c,
        temperature_limit_margins_c=temperature.margins_c,
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


class _PowerLimits(NamedTuple):
    min_w: float | None
    max_w: float | None
    default_w: float | None


def _power_limits(device: Device, fields: FieldValues) -> _PowerLimits:
    """By fields, since 535; by calls before."""

    def watts(field: Field) -> float | None:
        return quantities.watts_of_mw(fields[field]) if field in fields else None

    if field_ids.POWER_LIMIT_DEFAULT in fields:
        return _PowerLimits(
            watts(field_ids.POWER_LIMIT_MIN), watts(field_ids.POWER_LIMIT_MAX), watts(field_ids.POWER_LIMIT_DEFAULT)
        )
    lowest_w, highest_w = _optional(device.power_limit_constraints_w) or (None, None)
    return _PowerLimits(lowest_w, highest_w, _optional(device.power_limit_default_w))


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
