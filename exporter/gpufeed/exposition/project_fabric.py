# SPDX-License-Identifier: Apache-2.0
"""InfiniBand and RoCE ports."""

from collections.abc import Iterator

from gpufeed.catalogue import fabric
from gpufeed.exposition.family import Family, Labels
from gpufeed.exposition.rows import Labelled, family, text
from gpufeed.model.fabric import IbCounters, IbDevice, IbErrors, IbPort
from gpufeed.model.ids import IbPortKey
from gpufeed.model.state import NodeState


def families(state: NodeState) -> Iterator[Family]:
    """Devices, ports, traffic, errors."""
    yield Family(
        fabric.IB_INFO,
        [(_description(held.sample), 1) for held in state.latest(IbDevice).values()],
    )
    yield from _ports([(port_labels(held.sample.port), held.sample) for held in state.latest(IbPort).values()])
    yield from _traffic([(port_labels(held.sample.port), held.sample) for held in state.latest(IbCounters).values()])
    yield from _errors([(port_labels(held.sample.port), held.sample) for held in state.latest(IbErrors).values()])
    yield Family(fabric.IB_PORT_FLAPS_TOTAL, [(port_labels(port), flaps) for port, flaps in state.ib_flaps.items()])


def port_labels(port: IbPortKey) -> Labels:
    """Device and port number."""
    return (port.device, str(port.port))


def _description(device: IbDevice) -> Labels:
    return (
        device.device,
        text(device.board_id),
        text(device.firmware),
        text(device.hca_type),
        text(device.node_guid),
        text(device.pci_bus_id),
        text(device.numa_node),
    )


def _ports(ports: Labelled[IbPort]) -> Iterator[Family]:
    yield Family(
        fabric.IB_PORT_INFO,
        [
            ((*labels, text(port.link_layer), text(port.lid), text(port.speed), text(port.netdev)), 1)
            for labels, port in ports
        ],
    )
    yield family(fabric.IB_PORT_STATE_ID, ports, lambda port: port.state_id)
    yield family(fabric.IB_PORT_PHYSICAL_STATE_ID, ports, lambda port: port.physical_state_id)
    yield family(fabric.IB_PORT_RATE_BYTES_PER_SECOND, ports, lambda port: port.rate_bytes_per_s)
    yield family(fabric.IB_PORT_WIDTH, ports, lambda port: port.width)


def _traffic(counters: Labelled[IbCounters]) -> Iterator[Family]:
    yield family(fabric.IB_PORT_RECEIVE_BYTES_TOTAL, counters, lambda counter: counter.receive_bytes)
    yield family(fabric.IB_PORT_TRANSMIT_BYTES_TOTAL, counters, lambda counter: counter.transmit_bytes)
    yield family(fabric.IB_PORT_RECEIVE_PACKETS_TOTAL, counters, lambda counter: counter.receive_packets)
    yield family(fabric.IB_PORT_TRANSMIT_PACKETS_TOTAL, counters, lambda counter: counter.transmit_packets)
    yield family(fabric.IB_PORT_TRANSMIT_WAIT_TICKS_TOTAL, counters, lambda counter: counter.transmit_wait_ticks)


def _errors(errors: Labelled[IbErrors]) -> Iterator[Family]:
    yield Family(
        fabric.IB_PORT_ERRORS_TOTAL,
        [((*labels, name), count) for labels, found in errors for name, count in found.errors.items()],
    )
    yield Family(
        fabric.IB_PORT_HW_EVENTS_TOTAL,
        [((*labels, name), count) for labels, found in errors for name, count in found.hw_events.items()],
    )
    yield family(fabric.IB_PORT_SATURATED_COUNTERS, errors, _saturated)
    yield Family(
        fabric.IB_PORT_SATURATED,
        [((*labels, name), 1) for labels, found in errors for name in found.saturated or ()],
    )


def _saturated(found: IbErrors) -> int | None:
    """Of a port whose counters cannot be read it is not known whether any stands still."""
    return None if found.saturated is None else len(found.saturated)
