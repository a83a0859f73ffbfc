# SPDX-License-Identifier: Apache-2.0
"""A GPU that has been found: its identity, and the readings it has. Replaced whole when it is found again."""

from collections.abc import Callable
from functools import cached_property
from typing import Final, Generic, TypeVar

from gpufeed.errors import Denied, ParseError, SourceError, Unsupported
from gpufeed.parse.number import parse_count
from gpufeed.sources.contract import Desk
from gpufeed.sources.files import Tree
from gpufeed.sources.nvml.c2c import C2cReadings
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.events import EventReadings
from gpufeed.sources.nvml.fast import FastReadings
from gpufeed.sources.nvml.gpm import GpmReadings
from gpufeed.sources.nvml.identity import read_identity
from gpufeed.sources.nvml.links import LinkReadings
from gpufeed.sources.nvml.mig import MigReadings
from gpufeed.sources.nvml.nvlink import LinkStates, NvlinkReadings, count_links
from gpufeed.sources.nvml.processes import ProcessLists
from gpufeed.sources.nvml.rare import RareReadings
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
        self._desk = desk
        sysfs = Tree(desk.config.sysfs, desk)
        self.identity = read_identity(device, index, lambda bus_id: _numa_node(sysfs, bus_id))
        self.fast = FastReadings(device, driver_version)
        self.slow = SlowReadings(device)
        self.rare = RareReadings(device)
        self.processes = ProcessLists(device)
        self.mig = MigReadings(device, self.identity, desk.clock)
        self.nvlink = Part(self._nvlink)
        self.links = Part(self._link_readings)
        self.c2c = Part(lambda: C2cReadings(device))
        self.gpm = Part(self._gpm)
        self.events = Part(lambda: EventReadings(device, self.identity, desk.clock))

    def close(self) -> None:
        """Free what was allocated, as far as NVML lets it."""
        for made in (self.mig, self.gpm.made, self.events.made):
            try:
                if made is not None:
                    made.close()
            except SourceError:
                continue  # of a GPU that is gone nothing is left to free

    def _nvlink(self) -> NvlinkReadings:
        links, states = self._links
        return NvlinkReadings(self.device, links, states, self.identity.architecture)

    def _link_readings(self) -> LinkReadings:
        links, states = self._links
        return LinkReadings(self.device, self.identity.architecture, links, states)

    @cached_property
    def _links(self) -> tuple[int, LinkStates]:
        """How many links there are, and their states, which both groups of links share."""
        links = self.identity.nvlink_links
        if links is None:
            links = count_links(self.device)  # it failed when the identity was read
        if not links:
            raise Unsupported("this board has no NVLink")
        return links, LinkStates(self.device, links, self._desk.clock, self._desk.config.slow_period_ns)

    def _gpm(self) -> GpmReadings:
        if not self.identity.has_gpm:
            raise Unsupported(_NO_GPM)
        return GpmReadings(self.device, self._desk.clock)


def _numa_node(tree: Tree, bus_id: str) -> int | None:
    """NUMA node of a PCI device; -1 is none. Source: /sys/bus/pci/devices/*/numa_node."""
    try:
        return parse_count(tree.attribute(f"bus/pci/devices/{bus_id}/numa_node"))
    except (SourceError, ParseError):
        return None
