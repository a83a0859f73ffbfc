# SPDX-License-Identifier: Apache-2.0
"""Network interfaces."""

from collections.abc import Iterator

from gpufeed.catalogue import network
from gpufeed.exposition.family import Family
from gpufeed.exposition.rows import Labelled, family, text
from gpufeed.model.network import NetCounters, NetEvents, NetInterface
from gpufeed.model.state import NodeState


def families(state: NodeState) -> Iterator[Family]:
    """Interfaces, their traffic, what their drivers count."""
    yield from _interfaces([((held.sample.device,), held.sample) for held in state.latest(NetInterface).values()])
    counters = [((held.sample.device,), held.sample) for held in state.latest(NetCounters).values()]
    yield family(network.NET_RECEIVE_BYTES_TOTAL, counters, lambda counter: counter.receive_bytes)
    yield family(network.NET_TRANSMIT_BYTES_TOTAL, counters, lambda counter: counter.transmit_bytes)
    yield from _events([held.sample for held in state.latest(NetEvents).values()])


def _interfaces(interfaces: Labelled[NetInterface]) -> Iterator[Family]:
    yield Family(
        network.NET_INFO,
        [
            ((*labels, text(one.driver), text(one.pci_bus_id), text(one.numa_node), text(one.bond)), 1)
            for labels, one in interfaces
        ],
    )
    yield family(network.NET_UP, interfaces, lambda one: one.is_up)
    yield family(network.NET_SPEED_BYTES_PER_SECOND, interfaces, lambda one: one.speed_bytes_per_s)
    yield family(network.NET_CARRIER_CHANGES_TOTAL, interfaces, lambda one: one.carrier_changes)
    yield Family(
        network.NET_ERRORS_TOTAL,
        [((*labels, name), count) for labels, one in interfaces for name, count in one.errors.items()],
    )


def _events(found: list[NetEvents]) -> Iterator[Family]:
    yield Family(
        network.NET_EVENTS_TOTAL,
        [((one.device, name), count) for one in found for name, count in one.events.items()],
    )
    yield Family(
        network.NET_PAUSE_SECONDS_TOTAL,
        [((one.device, way), paused_s) for one in found for way, paused_s in one.pause_s.items()],
    )
    yield Family(
        network.NET_PRIORITY_PAUSE_SECONDS_TOTAL,
        [
            ((one.device, way, priority), paused_s)
            for one in found
            for way, priorities in one.priority_pause_s.items()
            for priority, paused_s in priorities.items()
        ],
    )
    yield Family(
        network.NET_PCI_STALL_RATIO,
        [((one.device, way), ratio) for one in found for way, ratio in one.pci_stall_ratio.items()],
    )
