# SPDX-License-Identifier: Apache-2.0
"""InfiniBand and RoCE: the interconnect between nodes, as /sys/class/infiniband has it."""

from functools import partial
from typing import Final

from gpufeed.catalogue.define import MetricDef, RowProfile

TITLE: Final = "InfiniBand and RoCE"

PORT_LABELS: Final = ("device", "port")

NOTABLE_ERRORS: Final = (
    "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_rcv_remote_physical_errors",
    "port_xmit_discards", "port_xmit_constraint_errors", "port_rcv_constraint_errors", "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
)  # fmt: skip
"""Error counters that profile `default` has: each names a fault somebody can act on."""

NOTABLE_HW_EVENTS: Final = (
    "out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err",
    "req_transport_retries_exceeded", "out_of_buffer", "roce_adp_retrans", "np_cnp_sent", "rp_cnp_handled",
)  # fmt: skip
"""Hardware events that profile `default` has: loss, congestion, and a receiver that is too slow."""

_info = partial(MetricDef, type="info", unit="info", collector="infiniband", profile="default")
_gauge = partial(MetricDef, type="gauge", collector="infiniband", labels=PORT_LABELS, profile="minimal")
_counter = partial(MetricDef, type="counter", collector="infiniband", labels=PORT_LABELS)

IB_INFO = _info(
    name="gpufeed_ib_info",
    help="What an RDMA device is.",
    labels=("device", "board_id", "firmware", "hca_type", "node_guid", "pci_bus_id", "numa_node"),
    source="/sys/class/infiniband/*",
)

IB_PORT_INFO = _info(
    name="gpufeed_ib_port_info",
    help="What a port is. link_layer tells InfiniBand from RoCE (Ethernet).",
    labels=(*PORT_LABELS, "link_layer", "lid", "speed", "netdev"),
    source="/sys/class/infiniband/*/ports/*",
)

IB_PORT_STATE_ID = _gauge(
    name="gpufeed_ib_port_state_id",
    unit="id",
    help="Logical state: 1 down, 2 init, 3 armed, 4 active, 5 active deferred.",
    source="ports/*/state",
)

IB_PORT_PHYSICAL_STATE_ID = _gauge(
    name="gpufeed_ib_port_physical_state_id",
    unit="id",
    help="Physical state: 1 sleep, 2 polling, 3 disabled, 4 training, 5 link up, 6 link error recovery, 7 test.",
    source="ports/*/phys_state",
)

IB_PORT_RATE_BYTES_PER_SECOND = _gauge(
    name="gpufeed_ib_port_rate_bytes_per_second",
    unit="bytes_per_second",
    help="Speed of the port in one direction, as the kernel prints it. Not meaningful while the port is down.",
    source="ports/*/rate",
)

IB_PORT_WIDTH = _gauge(
    name="gpufeed_ib_port_width",
    unit="count",
    help="Lanes in use.",
    source="ports/*/rate",
)

IB_PORT_RECEIVE_BYTES_TOTAL = _counter(
    name="gpufeed_ib_port_receive_bytes_total",
    unit="bytes",
    help="Bytes received, headers included.",
    source="counters/port_rcv_data × 4",
    profile="minimal",
)

IB_PORT_TRANSMIT_BYTES_TOTAL = _counter(
    name="gpufeed_ib_port_transmit_bytes_total",
    unit="bytes",
    help="Bytes sent, headers included.",
    source="counters/port_xmit_data × 4",
    profile="minimal",
)

IB_PORT_RECEIVE_PACKETS_TOTAL = _counter(
    name="gpufeed_ib_port_receive_packets_total",
    unit="count",
    help="Packets received.",
    source="counters/port_rcv_packets",
    profile="full",
    sheds="port",
)

IB_PORT_TRANSMIT_PACKETS_TOTAL = _counter(
    name="gpufeed_ib_port_transmit_packets_total",
    unit="count",
    help="Packets sent.",
    source="counters/port_xmit_packets",
    profile="full",
    sheds="port",
)

IB_PORT_TRANSMIT_WAIT_TICKS_TOTAL = _counter(
    name="gpufeed_ib_port_transmit_wait_ticks_total",
    unit="ticks",
    help="Ticks with data ready to go and no credit to send it. The length of a tick differs by device.",
    source="counters/port_xmit_wait",
    profile="default",
    sheds="port",
)

IB_PORT_ERRORS_TOTAL = _counter(
    name="gpufeed_ib_port_errors_total",
    unit="count",
    help="Errors by the name of the kernel's file. Most stop at their ceiling: see gpufeed_ib_port_saturated.",
    labels=(*PORT_LABELS, "type"),
    source="counters/*",
    profile="default",
    row_profile=RowProfile(label="type", kept=NOTABLE_ERRORS, others="full"),
    sheds="port",
)

IB_PORT_HW_EVENTS_TOTAL = _counter(
    name="gpufeed_ib_port_hw_events_total",
    unit="count",
    help="Transport events by the name of the kernel's file.",
    labels=(*PORT_LABELS, "event"),
    source="hw_counters/*",
    profile="default",
    row_profile=RowProfile(label="event", kept=NOTABLE_HW_EVENTS, others="full"),
    sheds="port",
)

IB_PORT_SATURATED_COUNTERS = _gauge(
    name="gpufeed_ib_port_saturated_counters",
    unit="count",
    help="Counters of the port that stand at their ceiling and count no further until somebody resets them.",
    source="counters/*",
    profile="default",
    sheds="port",
)

IB_PORT_SATURATED = _gauge(
    name="gpufeed_ib_port_saturated",
    unit="boolean",
    help="1: this counter stands at its ceiling. Only counters that do have a row.",
    labels=(*PORT_LABELS, "counter"),
    source="counters/*",
    profile="full",
    sheds="port",
)

IB_PORT_FLAPS_TOTAL = _counter(
    name="gpufeed_ib_port_flaps_total",
    unit="count",
    help="Times the port went down and came back, as seen from here.",
    source="ports/*/state, remembered",
    profile="minimal",
)
