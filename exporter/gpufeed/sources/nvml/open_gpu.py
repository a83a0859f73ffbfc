# SPDX-License-Identifier: Apache-2.0
"""A GPU that has been found: its identity, and the readings it has. Replaced whole when it is found again."""

import os
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from gpufeed.errors import Denied, SourceError, Unsupported
from gpufeed.model.frame import InputStatus
from gpufeed.sources.contract import Desk
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.events import EventReadings
from gpufeed.sources.nvml.fast import FastReadings
from gpufeed.sources.nvml.gpm import GpmReadings
from gpufeed.sources.nvml.identity import read_identity
from gpufeed.sources.nvml.nvlink import NvlinkReadings
from gpufeed.sources.nvml.processes import ProcessLists
from gpufeed.sources.nvml.slow import SlowReadings

T = TypeVar("T")

DEVICE_ACCESS: Final = (
    "let the probe open /dev/nvidia* and /dev/nvidiactl (DeviceAllow of its unit, cgroup of its container)"
)
_NO_GPM: Final = "nvmlGpmQueryDeviceSupport: this device has no GPM; Hopper and newer have"


class Part(Generic[T]):
    """Readings of one kind, made at their first read. A GPU that refuses them is not asked again."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self.refusal: SourceError | None = None

    @property
    def made(self) -> T | None:
        """What there is to close."""
        return self._made

    def get(self) -> T | None:
        """The readings; None where this GPU has none. Raises SourceError for what may pass."""
        if self._made is None and self.refusal is None:
            try:
                self._made = self._make()
            except (Unsupported, Denied) as error:
                self.refusal = error
        return self._made


class OpenGpu:
    """What one GPU can give. Reading its identity and nothing else happens here; the rest at its first read."""

    def __init__(self, device: Device, index: int, desk: Desk, driver_version: str | None) -> None:
        self.device = device
        self.identity = read_identity(device, index, lambda bus_id: _numa_node(desk.config.sysfs, bus_id))
        self.fast = Part(lambda: FastReadings(device, driver_version))
        self.slow = Part(lambda: SlowReadings(device))
        self.processes = Part(lambda: ProcessLists(device))
        self.nvlink = Part(lambda: self._nvlink(desk))
        self.gpm = Part(lambda: self._gpm(desk))
        self.events = Part(lambda: EventReadings(device, self.identity, desk.clock))

    def inputs(self) -> Iterator[InputStatus]:
        """What is known by now of what this GPU gives and does not give."""
        fast = self.fast.made
        if fast is not None:
            yield self._input("utilization", fast.utilization.refusal if fast.utilization.is_missing else None)
            yield self._input("memory", fast.memory.refusal if fast.memory.is_missing else None)
            yield self._input("power", fast.power.refusal if fast.power.is_missing else None)
            yield self._input("energy", fast.energy.refusal if fast.energy.is_missing else None)
            yield self._input("temperature", fast.temperature.refusal if fast.temperature.is_missing else None)
            yield self._input("clocks", fast.sm_clock.refusal if fast.sm_clock.is_missing else None)
            yield self._input("clock_events", _unless(fast.has_clock_events, "no clock-event counter answers"))
            yield self._input("pcie_bytes", _unless(fast.has_pcie_bytes, "fields 197 and 198 do not answer"))
        processes = self.processes.made
        if processes is not None:
            yield self._input("processes", processes.refusal if processes.is_missing else None)
        nvlink = self.nvlink.made
        if nvlink is not None:
            yield self._input("nvlink", _unless(nvlink.has_bytes, "no byte counter of the links answers"))
        for name, part in (("nvlink", self.nvlink), ("gpm", self.gpm), ("xid", self.events)):
            if part.refusal is not None:
                yield self._input(name, part.refusal)
        for name, made in (("gpm", self.gpm.made), ("xid", self.events.made)):
            if made is not None:
                yield self._input(name, None)

    def close(self) -> None:
        """Free what was allocated, as far as NVML lets it."""
        for made in (self.gpm.made, self.events.made):
            try:
                if made is not None:
                    made.close()
            except SourceError:
                continue  # of a GPU that is gone nothing is left to free

    def _nvlink(self, desk: Desk) -> NvlinkReadings:
        if not self.identity.nvlink_links:
            raise Unsupported("this board has no NVLink")
        return NvlinkReadings(self.device, self.identity.nvlink_links, desk.clock, desk.config.slow_period_ns)

    def _gpm(self, desk: Desk) -> GpmReadings:
        if not self.identity.has_gpm:
            raise Unsupported(_NO_GPM)
        return GpmReadings(self.device, desk.clock)

    def _input(self, name: str, refusal: SourceError | None) -> InputStatus:
        scope = self.identity.gpu.uuid
        if refusal is None:
            return InputStatus(name, scope, "available")
        is_denied = isinstance(refusal, Denied)
        return InputStatus(
            name, scope, "denied" if is_denied else "unsupported", str(refusal), DEVICE_ACCESS if is_denied else ""
        )


def _unless(is_there: bool, reason: str) -> SourceError | None:  # noqa: FBT001  # the name says it
    return None if is_there else Unsupported(reason)


def _numa_node(sysfs: str, bus_id: str) -> int | None:
    """NUMA node of a PCI device. Source: /sys/bus/pci/devices/*/numa_node; -1 is none."""
    try:
        descriptor = os.open(f"{sysfs}/bus/pci/devices/{bus_id}/numa_node", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        node = int(os.read(descriptor, 32))
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
    return node if node >= 0 else None
