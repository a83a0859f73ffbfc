# SPDX-License-Identifier: Apache-2.0
"""What the files of RDMA devices and of network interfaces say."""

import re

from captured.second_reader import Node, Page

WIDTHS = {
    "symbol_error": 16,
    "link_error_recovery": 8,
    "link_downed": 8,
    "port_rcv_errors": 16,
    "port_rcv_remote_physical_errors": 16,
    "port_rcv_switch_relay_errors": 16,
    "port_xmit_discards": 16,
    "port_xmit_constraint_errors": 8,
    "port_rcv_constraint_errors": 8,
    "local_link_integrity_errors": 4,
    "excessive_buffer_overrun_errors": 4,
    "VL15_dropped": 16,
}
BYTES_OF_DRIVERS = {
    "receive": (("rx_bytes",), ("rx_rdma_ucast_bytes", "rx_rdma_mcast_bytes"), ("ip4InOctets", "ip6InOctets")),
    "transmit": (("tx_bytes",), ("tx_rdma_ucast_bytes", "tx_rdma_mcast_bytes"), ("ip4OutOctets", "ip6OutOctets")),
}
PACKETS_OF_DRIVERS = {
    "receive": (("rx_pkts",), ("rx_rdma_ucast_pkts", "rx_rdma_mcast_pkts"), ("ip4InPkts", "ip6InPkts"), ("rcvd_pkts",)),
    "transmit": (
        ("tx_pkts",),
        ("tx_rdma_ucast_pkts", "tx_rdma_mcast_pkts"),
        ("ip4OutPkts", "ip6OutPkts"),
        ("sent_pkts",),
    ),
}


def infiniband(node: Node) -> Page:
    page = Page()
    for device in node.names("sys/class/infiniband"):
        ports = node.names(f"sys/class/infiniband/{device}/ports")
        if re.match("smi|scif", device) or not ports:
            continue
        home = f"sys/class/infiniband/{device}"
        pci = node.end_of_link(f"{home}/device") or ""
        guid = node.text(f"{home}/node_guid")
        numa = node.number(f"{home}/device/numa_node")
        page.add(
            "ib_info",
            1,
            device=device,
            board_id=node.text(f"{home}/board_id") or "",
            firmware=node.text(f"{home}/fw_ver") or "",
            hca_type=node.text(f"{home}/hca_type") or "",
            node_guid="" if guid is None or not guid.strip("0:") else guid,
            pci_bus_id=pci if re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d", pci) else "",
            numa_node="" if numa is None else str(numa),
        )
        for port in ports:
            _port(node, page, device, port, f"{home}/ports/{port}", is_only=len(ports) == 1)
    return page


def _port(node: Node, page: Page, device: str, port: str, home: str, *, is_only: bool) -> None:
    labels = {"device": device, "port": port}
    for metric, file in (("ib_port_state_id", "state"), ("ib_port_physical_state_id", "phys_state")):
        said = re.match(r"\d+", node.text(f"{home}/{file}") or "")
        page.add(metric, int(said[0]) if said else None, **labels)
    rate = re.match(r"(\d+(?:\.\d+)?)[^(]*(?:\((\d+)X(?: (\w+))?\))?", node.text(f"{home}/rate") or "")
    page.add("ib_port_rate_bytes_per_second", float(rate[1]) * 1e9 / 8 if rate and float(rate[1]) else None, **labels)
    page.add("ib_port_width", int(rate[2]) if rate and rate[2] else None, **labels)
    lid = node.text(f"{home}/lid")
    lid_number = None if lid is None else int(lid, 16 if lid.startswith("0x") else 10)
    netdev = node.text(f"{home}/gid_attrs/ndevs/0")
    if netdev is None:
        beside = node.names(f"sys/class/infiniband/{device}/device/net")
        numbered = [one for one in beside if _dev_port(node, device, one) == int(port) - 1]
        netdev = (beside if len(beside) == 1 else [*numbered, ""])[0]
    page.add(
        "ib_port_info",
        1,
        **labels,
        link_layer=node.text(f"{home}/link_layer") or "",
        lid="" if lid_number in {None, 0, 0xFFFF} else str(lid_number),
        speed=(rate[3] or "") if rate else "",
        netdev=netdev,
    )
    _moved(node, page, labels, home, is_only=is_only)


def _moved(node: Node, page: Page, labels: dict[str, str], home: str, *, is_only: bool) -> None:
    hardware = f"{home}/hw_counters"
    if is_only and not node.names(hardware):
        hardware = f"sys/class/infiniband/{labels['device']}/hw_counters"
    for way, short in (("receive", "rcv"), ("transmit", "xmit")):
        words = [
            node.number(f"{home}/counters_ext/port_{short}_data_64"),
            node.number(f"{home}/counters/port_{short}_data"),
        ]
        moved = next((4 * count for count in words if count is not None), None)
        if moved is None:
            moved = _first_set(node, hardware, BYTES_OF_DRIVERS[way])
        page.add(f"ib_port_{way}_bytes_total", moved, **labels)
        counts = [
            node.number(f"{home}/counters_ext/port_{short}_packets_64"),
            node.number(f"{home}/counters/port_{short}_packets"),
        ]
        packets = next((count for count in counts if count is not None), None)
        if packets is None:
            packets = _first_set(node, hardware, PACKETS_OF_DRIVERS[way])
        page.add(f"ib_port_{way}_packets_total", packets, **labels)
    _counted(node, page, labels, home, hardware)


def _counted(node: Node, page: Page, labels: dict[str, str], home: str, hardware: str) -> None:
    waited = node.number(f"{home}/counters/port_xmit_wait")
    page.add("ib_port_transmit_wait_ticks_total", waited, **labels)
    pinned = ["port_xmit_wait"] if waited == 2**32 - 1 else []
    for name, bits in WIDTHS.items():
        counted = node.number(f"{home}/counters/{name}")
        page.add("ib_port_errors_total", counted, **labels, type=name)
        if counted == 2**bits - 1:
            pinned.append(name)
    is_any_readable = waited is not None or any(node.number(f"{home}/counters/{name}") is not None for name in WIDTHS)
    page.add("ib_port_saturated_counters", len(pinned) if is_any_readable else None, **labels)
    page.metrics.add("gpufeed_ib_port_saturated")
    for name in pinned:
        page.add("ib_port_saturated", 1, **labels, counter=name)
    page.metrics.add("gpufeed_ib_port_hw_events_total")
    for name in node.names(hardware):
        if not re.search(r"lifespan|bytes|octets|active", name, re.IGNORECASE):
            page.add("ib_port_hw_events_total", node.number(f"{hardware}/{name}"), **labels, event=name)


def _dev_port(node: Node, device: str, interface: str) -> int | None:
    return node.number(f"sys/class/infiniband/{device}/device/net/{interface}/dev_port")


def _first_set(node: Node, folder: str, sets: tuple[tuple[str, ...], ...]) -> int | None:
    for names in sets:
        found = [count for name in names if (count := node.number(f"{folder}/{name}")) is not None]
        if found:
            return sum(found)
    return None


def interfaces(node: Node) -> Page:
    page = Page()
    page.metrics.add("gpufeed_net_errors_total")
    for device in node.names("sys/class/net"):
        home = f"sys/class/net/{device}"
        files = node.names(home)
        near_end = re.fullmatch(r"(?:c\d+)?pf\d+(?:vf|sf)\d+", node.text(f"{home}/phys_port_name") or "")
        if "device" not in files or "physfn" in node.names(f"{home}/device") or near_end:
            continue
        state = node.text(f"{home}/operstate")
        carrier = node.number(f"{home}/carrier")
        is_up = carrier == 1 if state in {None, "unknown"} and carrier is not None else state == "up"
        page.add("net_up", None if state in {None, "unknown"} and carrier is None else int(is_up), device=device)
        megabits = node.number(f"{home}/speed")
        known = is_up and megabits is not None and 0 < megabits < 2**31 - 1
        page.add("net_speed_bytes_per_second", (megabits or 0) * 125_000 if known else None, device=device)
        page.add("net_carrier_changes_total", node.number(f"{home}/carrier_changes"), device=device)
        for way, short in (("receive", "rx"), ("transmit", "tx")):
            page.add(f"net_{way}_bytes_total", node.number(f"{home}/statistics/{short}_bytes"), device=device)
        for name in ("rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "rx_missed_errors"):
            page.add("net_errors_total", node.number(f"{home}/statistics/{name}"), device=device, type=name)
    return page
