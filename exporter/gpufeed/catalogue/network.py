# SPDX-License-Identifier: Apache-2.0
"""Ethernet and other network interfaces: the cards that storage, RoCE and everything else go over."""

from functools import partial
from typing import Final

from gpufeed.catalogue.define import MetricDef, RowProfile

TITLE: Final = "Network interfaces"

NOTABLE_EVENTS: Final = (
    "rx_discards_phy", "tx_discards_phy", "rx_out_of_buffer", "link_down_events_phy", "rx_crc_errors_phy",
    "rx_pcs_symbol_err_phy", "rx_pause_ctrl_phy", "tx_pause_ctrl_phy", "tx_pause_storm_warning_events",
    "tx_pause_storm_error_events", "outbound_pci_stalled_rd_events", "outbound_pci_stalled_wr_events",
    "link_down_events", "rx_pause_frames", "tx_pause_frames", "rx_fcs_err_frames", "link_xoff_rx.nic",
    "link_xoff_tx.nic", "rx_dropped.nic", "port.rx_dropped", "frames_rx_pripause", "frames_tx_pripause",
    "bw_in_allowance_exceeded", "bw_out_allowance_exceeded", "pps_allowance_exceeded",
)  # fmt: skip
"""Events that profile `default` has, of whichever driver: loss, pause, a bad cable, a slot that is too slow."""

_family = partial(MetricDef, collector="ethernet", labels=("device",), profile="default", sheds="port")
_gauge = partial(_family, type="gauge")
_counter = partial(_family, type="counter")

NET_INFO = _family(
    name="gpufeed_net_info",
    type="info",
    unit="info",
    help="What a physical network interface is, and the bond that it is a member of.",
    labels=("device", "driver", "pci_bus_id", "numa_node", "bond"),
    source="/sys/class/net/*",
    sheds="",
)

NET_UP = _gauge(
    name="gpufeed_net_up",
    unit="boolean",
    help="1: the interface can pass packets.",
    source="operstate, else carrier",
)

NET_SPEED_BYTES_PER_SECOND = _gauge(
    name="gpufeed_net_speed_bytes_per_second",
    unit="bytes_per_second",
    help="Speed of the interface in one direction while it is up.",
    source="speed",
)

NET_CARRIER_CHANGES_TOTAL = _counter(
    name="gpufeed_net_carrier_changes_total",
    unit="count",
    help="Times the link went up or down.",
    source="carrier_changes",
)

NET_RECEIVE_BYTES_TOTAL = _counter(
    name="gpufeed_net_receive_bytes_total",
    unit="bytes",
    help="Bytes received through the kernel. Remote memory access goes past it.",
    source="statistics/rx_bytes",
)

NET_TRANSMIT_BYTES_TOTAL = _counter(
    name="gpufeed_net_transmit_bytes_total",
    unit="bytes",
    help="Bytes sent through the kernel. Remote memory access goes past it.",
    source="statistics/tx_bytes",
)

NET_ERRORS_TOTAL = _counter(
    name="gpufeed_net_errors_total",
    unit="count",
    help="Packets that were bad or dropped, by the name of the kernel's file; none is a part of another.",
    labels=("device", "type"),
    source="statistics/*",
)

NET_EVENTS_TOTAL = _counter(
    name="gpufeed_net_events_total",
    unit="count",
    help="What the driver counts, by its own name: loss, pause frames, bad symbols, back-pressure of PCIe.",
    labels=("device", "event"),
    source="ethtool statistics, an allow-list",
    row_profile=RowProfile(label="event", kept=NOTABLE_EVENTS, others="full"),
)

NET_PAUSE_SECONDS_TOTAL = _counter(
    name="gpufeed_net_pause_seconds_total",
    unit="seconds",
    help="Time of pause, added up over priorities. receive: the network kept us from sending; transmit: we kept it.",
    labels=("device", "direction"),
    source="ethtool statistics",
)

NET_PRIORITY_PAUSE_SECONDS_TOTAL = _counter(
    name="gpufeed_net_priority_pause_seconds_total",
    unit="seconds",
    help="Time of pause of one priority.",
    labels=("device", "direction", "priority"),
    source="ethtool statistics",
    profile="full",
)

NET_PCI_STALL_RATIO = _gauge(
    name="gpufeed_net_pci_stall_ratio",
    unit="ratio",
    help="Share of the last second in which the card waited for PCIe to read from memory or to write to it.",
    labels=("device", "direction"),
    source="ethtool outbound_pci_stalled_rd and _wr",
)
