# SPDX-License-Identifier: Apache-2.0
"""Network interfaces: /sys/class/net on one lane, what their drivers count on another.

Statistics of a driver are asked for under a lock that reconfiguring the network holds for long; bytes are not.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from msgspec import Struct

from gpufeed.errors import ParseError, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputStatus
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.network import NetCounters, NetEvents, NetInterface
from gpufeed.parse.ethernet import parse_operstate, parse_speed
from gpufeed.parse.ethtool import sort_statistics
from gpufeed.parse.number import parse_count
from gpufeed.sources.contract import Desk, Group, LanePlan, Outcome
from gpufeed.sources.ethtool import DriverStatisticsReader
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Gathering, Statuses, state_of
from gpufeed.sources.interfaces import CLASS, bond_of, driver_of, numa_node_of, pci_bus_id_of, physical_interfaces
from gpufeed.sources.selection import Selection
from gpufeed.units import NS_PER_S

V = TypeVar("V")

FAST: Final = GroupName("ethernet.fast")
SLOW: Final = GroupName("ethernet.slow")
FAST_AT_LEAST_NS: Final = NS_PER_S
"""No decision about an instant looks at these bytes."""

ERRORS: Final = ("rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "rx_missed_errors")
"""Files of statistics/ none of which is a part of another."""


class NetSpec(Struct, frozen=True):
    """Which interfaces."""

    selection: Selection = Selection()


class EthernetSource:
    """Plans the lanes `net` and `ethtool`."""

    name = "ethernet"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """Two lanes, or none where the collector is off."""
        options = config.options("ethernet")
        if not options.enabled:
            return ()
        spec = NetSpec(Selection(options.include, options.exclude))
        fast = Group(name=FAST, collector="ethernet", period_ns=max(config.period_ns(FAST), FAST_AT_LEAST_NS))
        slow = Group(name=SLOW, collector="ethernet", period_ns=config.period_ns(SLOW))
        return (
            LanePlan(lane=LaneId("net"), groups=(slow, fast), open=open_net, spec=spec),
            LanePlan(lane=LaneId("ethtool"), groups=(slow,), open=open_driver_statistics, spec=spec),
        )


def open_net(spec: NetSpec, desk: Desk) -> "NetReader":
    """A reader of the configured sysfs."""
    return NetReader(spec, desk)


def open_driver_statistics(spec: NetSpec, desk: Desk) -> "DriverReader":
    """A reader of what drivers count."""
    return DriverReader(spec, desk)


class NetReader:
    """Reads bytes fast; looks slowly which interfaces there are, and how they are."""

    def __init__(self, spec: NetSpec, desk: Desk) -> None:
        self._selection = spec.selection
        self._tree = Tree(desk.config.sysfs, desk)
        self._statuses = Statuses()
        self._interfaces: tuple[str, ...] | None = None

    def read(self, group: GroupName) -> Outcome:
        """`ethernet.fast`: a NetCounters per interface. `ethernet.slow`: a NetInterface. Ordered by name."""
        gathering = Gathering(self._statuses)
        if group == SLOW or self._interfaces is None:
            self._list(gathering)
        for name in self._interfaces or ():
            gathering.samples.append(self._counters(name, gathering) if group == FAST else self._state(name, gathering))
        return gathering.outcome()

    def close(self) -> None:
        """Nothing is held."""

    def _list(self, gathering: Gathering) -> None:
        try:
            self._interfaces = physical_interfaces(self._tree, self._selection)
        except SourceError as error:
            self._interfaces = None
            gathering.say(InputStatus("ethernet", "", state_of(error), str(error)))
            gathering.fail(CLASS, error)
            return
        reason = "" if self._interfaces else "no network interface with hardware behind it is wanted or there"
        gathering.say(InputStatus("ethernet", "", "absent" if reason else "available", reason))

    def _counters(self, name: str, gathering: Gathering) -> NetCounters:
        return NetCounters(
            device=name,
            receive_bytes=self._value(name, "statistics/rx_bytes", parse_count, gathering),
            transmit_bytes=self._value(name, "statistics/tx_bytes", parse_count, gathering),
        )

    def _state(self, name: str, gathering: Gathering) -> NetInterface:
        is_up = self._value(name, "operstate", parse_operstate, gathering)
        if is_up is None:
            carrier = self._value(name, "carrier", parse_count, gathering)
            is_up = None if carrier is None else carrier > 0
        errors = {file: self._value(name, f"statistics/{file}", parse_count, gathering) for file in ERRORS}
        return NetInterface(
            device=name,
            is_up=is_up,
            speed_bytes_per_s=self._value(name, "speed", parse_speed, gathering) if is_up else None,
            carrier_changes=self._value(name, "carrier_changes", parse_count, gathering),
            errors={file: count for file, count in errors.items() if count is not None},
            bond=bond_of(self._tree, name),
            driver=driver_of(self._tree, name),
            pci_bus_id=pci_bus_id_of(self._tree, name),
            numa_node=numa_node_of(self._tree, name),
        )

    def _value(self, name: str, file: str, parse: Callable[[bytes, str], V | None], gathering: Gathering) -> V | None:
        where = f"{name}/{file}"
        try:
            return parse(self._tree.attribute(f"{CLASS}/{where}"), where)
        except (SourceError, ParseError) as error:
            gathering.fail(where, error)
            return None


class DriverReader:
    """Asks each driver for its statistics, and keeps those on the list."""

    def __init__(self, spec: NetSpec, desk: Desk) -> None:
        self._selection = spec.selection
        self._tree = Tree(desk.config.sysfs, desk)
        self._drivers = DriverStatisticsReader(desk)
        self._statuses = Statuses()

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """A NetEvents per interface whose driver counts something on the list, ordered by name."""
        gathering = Gathering(self._statuses)
        try:
            interfaces = physical_interfaces(self._tree, self._selection)
        except SourceError as error:
            gathering.fail(CLASS, error)
            return gathering.outcome()
        for name in interfaces:
            try:
                found = sort_statistics(self._drivers.read(name, gathering))
            except (SourceError, ParseError) as error:
                gathering.fail(f"{name}/ethtool", error)
                gathering.say(InputStatus("ethtool", name, state_of(error), str(error)))
                continue
            gathering.say(InputStatus("ethtool", name, "available"))
            if found.events or found.pause_s or found.pci_stall_ratio:
                gathering.samples.append(
                    NetEvents(
                        device=name,
                        events=found.events,
                        pause_s=found.pause_s,
                        priority_pause_s=found.priority_pause_s,
                        pci_stall_ratio=found.pci_stall_ratio,
                    )
                )
        return gathering.outcome()

    def close(self) -> None:
        """Let go of the socket."""
        self._drivers.close()
