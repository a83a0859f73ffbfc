# SPDX-License-Identifier: Apache-2.0
"""A GPU that has been found: its identity, and the readings it has. Replaced whole when it is found again."""

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from gpufeed.errors import Denied, ParseError, SourceError, Unsupported
from gpufeed.model.frame import InputStatus
from gpufeed.parse.number import parse_count
from gpufeed.sources.contract import Desk
from gpufeed.sources.files import Tree
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.events import EventReadings
from gpufeed.sources.nvml.fast import FastReadings
from gpufeed.sources.nvml.gpm import GpmReadings
from gpufeed.sources.nvml.identity import read_identity
from gpufeed.sources.nvml.nvlink import NvlinkReadings, count_links
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
        sysfs = Tree(desk.config.sysfs, desk)
        self.identity = read_identity(device, index, lambda bus_id: _numa_node(sysfs, bus_id))
        self.fast = FastReadings(device, driver_version)
        self.slow = SlowReadings(device)
        self.processes = ProcessLists(device)
        self.nvlink = Part(lambda: self._nvlink(desk))
        self.gpm = Part(lambda: self._gpm(desk))
        self.events = Part(lambda: EventReadings(device, self.identity, desk.clock))

    def inputs(self) -> Iterator[InputStatus]:
        """What is known by now of what this GPU gives and does not give."""
        fast = self.fast
        if fast.is_known:
            yield self._input("utilization", fast.utilization.refusal if fast.utilization.is_missing else None)
            yield self._input("memory", fast.memory.refusal if fast.memory.is_missing else None)
            yield self._input("power", fast.power.refusal if fast.power.is_missing else None)
            yield self._input("energy", fast.energy.refusal if fast.energy.is_missing else None)
            yield self._input("temperature", fast.temperature.refusal if fast.temperature.is_missing else None)
            yield self._input("clocks", fast.sm_clock.refusal if fast.sm_clock.is_missing else None)
            yield self._input("clock_events", _unless(fast.has_clock_events, "no clock-event counter answers"))
            yield self._input("pcie_bytes", _unless(fast.has_pcie_bytes, "fields 197 and 198 do not answer"))
        if self.processes.is_known:
            yield self._input("processes", self.processes.refusal if self.processes.is_missing else None)
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
        links = self.identity.nvlink_links
        if links is None:
            links = count_links(self.device)  # it failed when the identity was read
        if not links:
            raise Unsupported("this board has no NVLink")
        return NvlinkReadings(self.device, links, desk.clock, desk.config.slow_period_ns)

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


def _numa_node(tree: Tree, bus_id: str) -> int | None:
    """NUMA node of a PCI device; -1 is none. Source: /sys/bus/pci/devices/*/numa_node."""
    try:
        return parse_count(tree.attribute(f"bus/pci/devices/{bus_id}/numa_node"))
    except (SourceError, ParseError):
        return None
