# SPDX-License-Identifier: Apache-2.0
"""One GPU's getters, in base units. Each raises SourceError; None is an answer that cannot be a reading."""

from typing import Any, NamedTuple

from gpufeed.sources.nvml import quantities
from gpufeed.sources.nvml.binding import MEMORY_V2, Handle, Nvml
from gpufeed.sources.nvml.faults import InvalidArgument

GRAPHICS_CLOCK = 0
SM_CLOCK = 1
MEMORY_CLOCK = 2
VIDEO_CLOCK = 3
_GPU_SENSOR = 0


class Utilization(NamedTuple):
    """Shares of the driver's own sample period."""

    gpu_ratio: float | None
    memory_ratio: float | None


class Memory(NamedTuple):
    """Frame buffer in bytes. `reserved` is None where the driver counts its reserve as used."""

    total: int | None
    used: int | None
    free: int | None
    reserved: int | None


class Aperture(NamedTuple):
    """The window through which others reach device memory, in bytes."""

    total: int | None
    used: int | None


class Device:
    """A handle and what can be asked of it. A bad handle is found out by the call, not here."""

    def __init__(self, nvml: Nvml, handle: Handle) -> None:
        self.nvml = nvml
        self.handle = handle

    def text(self, function: str) -> str | None:
        """A getter of one string; None if it is empty."""
        return str(self._call(function)).strip() or None

    def number(self, function: str) -> int | None:
        """A getter of one plain number."""
        return quantities.count(self._call(function))

    def flag(self, function: str) -> bool:
        """A getter of an nvmlEnableState_t."""
        return bool(self._call(function))

    def uuid(self) -> str:
        """UUID of the board. Source: nvmlDeviceGetUUID."""
        return str(self._call("nvmlDeviceGetUUID"))

    def utilization(self) -> Utilization:
        """Shares of time; not supported while MIG is on. Source: nvmlDeviceGetUtilizationRates."""
        rates = self._call("nvmlDeviceGetUtilizationRates")
        return Utilization(quantities.ratio_of_percent(rates.gpu), quantities.ratio_of_percent(rates.memory))

    def memory(self) -> Memory:
        """Frame buffer in bytes; used is what processes allocated. Source: nvmlDeviceGetMemoryInfo_v2, since 510."""
        info = self._call("nvmlDeviceGetMemoryInfo", MEMORY_V2)
        return _memory(info.total, info.used, info.free, info.reserved)

    def memory_v1(self) -> Memory:
        """Frame buffer in bytes; used contains the driver's reserve. Source: nvmlDeviceGetMemoryInfo."""
        info = self._call("nvmlDeviceGetMemoryInfo")
        return _memory(info.total, info.used, info.free, None)

    def aperture(self) -> Aperture:
        """BAR1 in bytes; not where the host's memory is the device's. Source: nvmlDeviceGetBAR1MemoryInfo."""
        info = self._call("nvmlDeviceGetBAR1MemoryInfo")
        total = quantities.memory_bytes(info.bar1Total)
        return Aperture(total or None, quantities.memory_bytes(info.bar1Used) if total else None)

    def codec_ratio(self, function: str) -> float | None:
        """Share of the driver's own sample period, of a getter that answers utilization and period."""
        return quantities.ratio_of_percent(self._call(function)[0])

    def temperature_margin_c(self) -> float | None:
        """Degrees left to the nearest slowdown. Source: nvmlDeviceGetMarginTemperature, since 570."""
        return quantities.celsius(self._call("nvmlDeviceGetMarginTemperature"))

    def temperature_limit_c(self, limit: int) -> float | None:
        """Degrees Celsius of an nvmlTemperatureThresholds_t; before Ada. Source: nvmlDeviceGetTemperatureThreshold."""
        celsius = quantities.celsius(self._call("nvmlDeviceGetTemperatureThreshold", limit))
        return celsius or None  # zero stands for a limit that there is not

    def temperature_c(self) -> float | None:
        """Degrees Celsius of the chip. Source: nvmlDeviceGetTemperatureV, since 570."""
        return quantities.celsius(self._call("nvmlDeviceGetTemperatureV", _GPU_SENSOR))

    def temperature_v1_c(self) -> float | None:
        """Degrees Celsius of the chip. Source: nvmlDeviceGetTemperature, to be removed with CUDA 14."""
        return quantities.celsius(self._call("nvmlDeviceGetTemperature", _GPU_SENSOR))

    def power_w(self) -> float | None:
        """Watts: one second's mean, or the moment's on GA100 and before Ampere. Source: nvmlDeviceGetPowerUsage."""
        return quantities.watts_of_mw(self._call("nvmlDeviceGetPowerUsage"))

    def power_limit_enforced_w(self) -> float | None:
        """Watts. Source: nvmlDeviceGetEnforcedPowerLimit."""
        return quantities.watts_of_mw(self._call("nvmlDeviceGetEnforcedPowerLimit"))

    def power_limit_default_w(self) -> float | None:
        """Watts. Source: nvmlDeviceGetPowerManagementDefaultLimit."""
        return quantities.watts_of_mw(self._call("nvmlDeviceGetPowerManagementDefaultLimit"))

    def power_limit_constraints_w(self) -> tuple[float | None, float | None]:
        """Least and greatest limit in watts. Source: nvmlDeviceGetPowerManagementLimitConstraints."""
        lowest, highest = self._call("nvmlDeviceGetPowerManagementLimitConstraints")
        return quantities.watts_of_mw(lowest), quantities.watts_of_mw(highest)

    def energy_j(self) -> float | None:
        """Joules since driver load. Source: nvmlDeviceGetTotalEnergyConsumption."""
        return quantities.joules_of_mj(self._call("nvmlDeviceGetTotalEnergyConsumption"))

    def clock_hz(self, domain: int) -> float | None:
        """Hertz. Source: nvmlDeviceGetClockInfo."""
        return quantities.hertz_of_mhz(self._call("nvmlDeviceGetClockInfo", domain))

    def clock_max_hz(self, domain: int) -> float | None:
        """Hertz. Source: nvmlDeviceGetMaxClockInfo."""
        return quantities.hertz_of_mhz(self._call("nvmlDeviceGetMaxClockInfo", domain))

    def clock_events(self) -> int:
        """Bit mask of the moment. Source: nvmlDeviceGetCurrentClocksEventReasons, since 535."""
        return int(self._call("nvmlDeviceGetCurrentClocksEventReasons"))

    def clock_events_v1(self) -> int:
        """Bit mask of the moment. Source: nvmlDeviceGetCurrentClocksThrottleReasons, the older name."""
        return int(self._call("nvmlDeviceGetCurrentClocksThrottleReasons"))

    def mig_enabled(self) -> bool:
        """Mode in force, not the pending one. Source: nvmlDeviceGetMigMode, Ampere and newer."""
        return bool(self._call("nvmlDeviceGetMigMode")[0])

    def mig_devices_max(self) -> int:
        """How many places for MIG devices there are, used or not. Source: nvmlDeviceGetMaxMigDeviceCount."""
        return int(self._call("nvmlDeviceGetMaxMigDeviceCount"))

    def mig_device(self, place: int) -> "Device":
        """The MIG device in a place; Absent where there is none. Source: nvmlDeviceGetMigDeviceHandleByIndex."""
        return Device(self.nvml, self._call("nvmlDeviceGetMigDeviceHandleByIndex", place))

    def mig_ids(self) -> tuple[int, int]:
        """Of a MIG device: GPU instance and compute instance. Source: nvmlDeviceGetGpuInstanceId and its twin."""
        return int(self._call("nvmlDeviceGetGpuInstanceId")), int(self._call("nvmlDeviceGetComputeInstanceId"))

    def ecc_enabled(self) -> bool:
        """Mode in force, not the pending one. Source: nvmlDeviceGetEccMode."""
        return bool(self._call("nvmlDeviceGetEccMode")[0])

    def has_gpm(self) -> bool:
        """Whether the device samples its engines: Hopper and newer. Source: nvmlGpmQueryDeviceSupport."""
        return bool(self._call("nvmlGpmQueryDeviceSupport").isSupportedDevice)

    def supported_events(self) -> int:
        """Bit mask. Source: nvmlDeviceGetSupportedEventTypes."""
        return int(self._call("nvmlDeviceGetSupportedEventTypes"))

    def link_number(self, function: str, link: int) -> int | None:
        """A getter of one plain number of a link; InvalidArgument where there is no such link."""
        return quantities.count(self._call(function, link))

    def link_errors(self, link: int, counter: int) -> int | None:
        """Errors of an nvmlNvLinkErrorCounter_t. Source: nvmlDeviceGetNvLinkErrorCounter, before Blackwell."""
        return quantities.count(self._call("nvmlDeviceGetNvLinkErrorCounter", link, counter))

    def memory_errors(self, kind: int, life: int, location: int) -> int | None:
        """ECC errors: nvmlMemoryErrorType_t, nvmlEccCounterType_t, nvmlMemoryLocation_t.

        Source: nvmlDeviceGetMemoryErrorCounter.
        """
        return quantities.count(self._call("nvmlDeviceGetMemoryErrorCounter", kind, life, location))

    def is_link_up(self, link: int) -> bool:
        """Whether a link is active; InvalidArgument where there is no such link. Source: nvmlDeviceGetNvLinkState."""
        return bool(self._call("nvmlDeviceGetNvLinkState", link))

    def probe_links(self, limit: int) -> int:
        """How many NVLinks answer, asked one by one up to `limit`: for drivers without the count."""
        for link in range(limit):
            try:
                self.is_link_up(link)
            except InvalidArgument:
                return link
        return limit

    def _call(self, function: str, *arguments: object) -> Any:  # noqa: ANN401  # pynvml has no types
        return self.nvml.call(function, self.handle, *arguments)


def _memory(total: int, used: int, free: int, reserved: int | None) -> Memory:
    size = quantities.memory_bytes(total)
    if not size or used > size:
        return Memory(size or None, None, None, None)
    return Memory(
        size,
        quantities.memory_bytes(used),
        quantities.memory_bytes(free),
        None if reserved is None else quantities.memory_bytes(reserved),
    )
