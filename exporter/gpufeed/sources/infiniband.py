# SPDX-License-Identifier: Apache-2.0
"""RDMA devices: /sys/class/infiniband. One lane looks which there are; each device is read on a lane of its own.

Every counter file is a command to the device's firmware, so the data counters are read twice a second at most. A file
that a driver lacks, or refuses, is one value less; a port never goes for it.
"""

import re
from typing import Final

import msgspec
from msgspec import Struct

from gpufeed.errors import Absent, ParseError, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.fabric import IbDevice
from gpufeed.model.frame import InputStatus
from gpufeed.model.ids import GroupName, IbPortKey, LaneId
from gpufeed.parse.infiniband import parse_node_guid
from gpufeed.parse.number import parse_count
from gpufeed.parse.pci import is_pci_function, pci_path
from gpufeed.parse.text import clean_text
from gpufeed.sources.contract import Desk, Group, LanePlan, Outcome
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Gathering, Statuses, state_of
from gpufeed.sources.infiniband_port import Port
from gpufeed.sources.interfaces import netdev_of_port
from gpufeed.sources.selection import Selection
from gpufeed.units import NS_PER_MS

FAST: Final = GroupName("infiniband.fast")
SLOW: Final = GroupName("infiniband.slow")
FAST_AT_LEAST_NS: Final = 500 * NS_PER_MS

CLASS: Final = "class/infiniband"
_PORT: Final = re.compile(r"[0-9]{1,3}")
_NO_DATA_PORT: Final = re.compile(r"(?:smi|scif|rxe|siw)")
"""Management functions and devices made of software: exported, but no part of the node's capacity."""

_FRONT_END: Final = re.compile(r"(?:mana|irdma|i40iw)")
_FRONT_END_DRIVERS: Final = frozenset({"mana", "ice", "i40e"})
"""RDMA that comes along with a network card: the fabric where there is no other, else the way to the outside."""


class IbScanSpec(Struct, frozen=True):
    """Which devices, and how often."""

    selection: Selection
    fast_period_ns: int
    slow_period_ns: int


class IbDeviceSpec(Struct, frozen=True):
    """One device."""

    device: str
    is_fabric: bool = True


class InfinibandSource:
    """Plans the lane `infiniband`, which finds the others."""

    name = "infiniband"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One scan lane, or none where the collector is off."""
        options = config.options("infiniband")
        if not options.enabled:
            return ()
        slow_ns = config.period_ns(SLOW)
        spec = IbScanSpec(
            selection=Selection(options.include, options.exclude),
            fast_period_ns=max(config.period_ns(FAST), FAST_AT_LEAST_NS),
            slow_period_ns=slow_ns,
        )
        group = Group(name=SLOW, collector="infiniband", period_ns=slow_ns)
        return (LanePlan(lane=LaneId("infiniband"), groups=(group,), open=open_scan, spec=spec),)


def open_scan(spec: IbScanSpec, desk: Desk) -> "IbScan":
    """A reader that finds devices."""
    return IbScan(spec, desk)


def open_device(spec: IbDeviceSpec, desk: Desk) -> "IbDeviceReader":
    """A reader of one device."""
    return IbDeviceReader(spec, desk)


class IbScan:
    """Lists the class, one level deep: it holds links into the device tree, some of which lead round in circles."""

    def __init__(self, spec: IbScanSpec, desk: Desk) -> None:
        self._spec = spec
        self._tree = Tree(desk.config.sysfs, desk)
        self._statuses = Statuses()

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """No sample; one lane per wanted device, ordered by name. Raises SourceError, but not where there is none."""
        gathering = Gathering(self._statuses)
        try:
            listed = self._tree.names(CLASS)
        except Absent:
            listed = ()
        devices = tuple(name for name in listed if self._spec.selection.takes(name))
        reason = "" if devices else "no RDMA device is wanted" if listed else "no RDMA device is there"
        gathering.say(InputStatus("infiniband", "", "available" if devices else "absent", reason))
        fabric = self._fabric(devices)
        return gathering.outcome(lanes=tuple(self._plan(name, is_fabric=name in fabric) for name in devices))

    def close(self) -> None:
        """Nothing is held."""

    def _fabric(self, devices: tuple[str, ...]) -> frozenset[str]:
        """Devices that may carry what GPUs say to each other."""
        real = [name for name in devices if _NO_DATA_PORT.match(name) is None]
        fabric = [name for name in real if not self._is_front_end(name)] if len(real) > 1 else real
        return frozenset(fabric or real)

    def _is_front_end(self, device: str) -> bool:
        if _FRONT_END.match(device):
            return True
        try:
            return self._tree.link(f"{CLASS}/{device}/device/driver") in _FRONT_END_DRIVERS
        except SourceError:
            return False

    def _plan(self, device: str, *, is_fabric: bool) -> LanePlan:
        spec = self._spec
        periods = ((FAST, spec.fast_period_ns), (SLOW, spec.slow_period_ns))
        return LanePlan(
            lane=LaneId(f"ib:{device}"),
            groups=tuple(Group(name=name, collector="infiniband", period_ns=period_ns) for name, period_ns in periods),
            open=open_device,
            spec=IbDeviceSpec(device, is_fabric),
        )


class IbDeviceReader:
    """Reads one device and its ports."""

    def __init__(self, spec: IbDeviceSpec, desk: Desk) -> None:
        self._device = spec.device
        self._is_fabric = spec.is_fabric
        self._path = f"{CLASS}/{spec.device}"
        self._tree = Tree(desk.config.sysfs, desk)
        self._statuses = Statuses()
        self._ports: dict[int, Port] = {}

    def read(self, group: GroupName) -> Outcome:
        """`infiniband.fast`: an IbCounters per port. `infiniband.slow`: the IbDevice, an IbPort and IbErrors per port.

        Ordered by port. Where the ports cannot be listed, a slow read says why, and a fast one nothing.
        """
        gathering = Gathering(self._statuses)
        try:
            if group == SLOW or not self._ports:
                self._list_ports()
        except SourceError as error:
            if group == SLOW:
                gathering.say(InputStatus("infiniband", self._device, state_of(error), str(error)))
                gathering.fail(self._device, error)
            return gathering.outcome()
        if group == FAST:
            gathering.samples.extend(port.counters(gathering) for port in self._ports.values())
            return gathering.outcome()
        gathering.samples.append(self._describe())
        is_fabric = self._is_fabric and not self._tree.has(f"{self._path}/device/physfn")
        for port in self._ports.values():
            state = port.state(gathering, is_fabric=is_fabric)
            if state.netdev is None:
                netdev = netdev_of_port(self._tree, f"{self._path}/device", port.key.port)
                state = msgspec.structs.replace(state, netdev=netdev)
            gathering.samples.extend((state, port.errors(gathering)))
        gathering.say(self._status())
        return gathering.outcome()

    def close(self) -> None:
        """Nothing is held."""

    def _list_ports(self) -> None:
        numbers = [int(name) for name in self._tree.names(f"{self._path}/ports") if _PORT.fullmatch(name)]
        known = self._ports
        self._ports = {
            number: known.get(number)
            or Port(IbPortKey(self._device, number), f"{self._path}/ports/{number}", self._tree)
            for number in sorted(numbers)
        }
        for port in self._ports.values():
            port.is_only = len(self._ports) == 1

    def _status(self) -> InputStatus:
        silent = [str(number) for number, port in self._ports.items() if not port.has_bytes]
        if not silent:
            return InputStatus("infiniband", self._device, "available")
        reason = f"port {', '.join(silent)} counts no bytes: this driver has no data counters"
        is_silent = len(silent) == len(self._ports)
        return InputStatus("infiniband", self._device, "unsupported" if is_silent else "available", reason)

    def _describe(self) -> IbDevice:
        return IbDevice(
            device=self._device,
            board_id=self._text("board_id"),
            firmware=self._text("fw_ver"),
            hca_type=self._text("hca_type"),
            node_guid=self._guid(),
            pci_bus_id=self._pci_bus_id(),
            numa_node=self._numa_node(),
            pci_path=self._pci_path(),
        )

    def _text(self, name: str) -> str | None:
        try:
            return clean_text(self._tree.attribute(f"{self._path}/{name}")) or None
        except SourceError:
            return None  # several drivers have no such file

    def _guid(self) -> str | None:
        try:
            return parse_node_guid(self._tree.attribute(f"{self._path}/node_guid"))
        except (SourceError, ParseError):
            return None

    def _pci_bus_id(self) -> str | None:
        try:
            target = self._tree.link(f"{self._path}/device").lower()
        except SourceError:
            return None
        return target if is_pci_function(target) else None

    def _pci_path(self) -> tuple[str, ...]:
        """From the class link; where that is a directory, as in a copied tree, from the function's own."""
        for link in (self._path, f"bus/pci/devices/{self._pci_bus_id()}"):
            try:
                if path := pci_path(self._tree.target(link)):
                    return path
            except SourceError:
                continue
        return ()

    def _numa_node(self) -> int | None:
        try:
            return parse_count(self._tree.attribute(f"{self._path}/device/numa_node"))
        except (SourceError, ParseError):
            return None
