# SPDX-License-Identifier: Apache-2.0
"""/sys/class/net: the interface of each network card, the Ethernet card that storage is behind, and loopback.

What the Ethernet card's driver counts stands as text beside the trees: a request to a driver has no file.
"""

from collections.abc import Sequence
from typing import Final

from gpufeed.simulate.hardware import Board
from gpufeed.simulate.trees.fabric_drivers import FabricDriver
from gpufeed.simulate.trees.infiniband import netdev
from gpufeed.simulate.trees.pci import STORAGE_NIC_PATH, nic_path
from gpufeed.simulate.trees.writer import TreeWriter
from gpufeed.simulate.truth import GpuTruth

STORAGE_NETDEV: Final = "enp13s0np0"
_STORAGE_MB_PER_S: Final = 200_000
_ETHERNET, _INFINIBAND, _LOOPBACK = 1, 32, 772
_MTU_BYTES: Final = 9000
_US_PER_S: Final = 1_000_000
_OVERHEAD: Final = 1.02
"""Bytes on the wire for one byte of a file."""

_QUIET: Final = (
    "rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "rx_crc_errors", "rx_missed_errors", "tx_carrier_errors",
)  # fmt: skip
_QUEUES: Final = 4
_DRIVER_COUNTS_NONE: Final = (
    "rx_discards_phy", "tx_discards_phy", "rx_out_of_buffer", "link_down_events_phy", "rx_crc_errors_phy",
    "rx_pcs_symbol_err_phy", "rx_corrected_bits_phy", "tx_pause_storm_warning_events", "tx_pause_storm_error_events",
    "outbound_pci_stalled_rd", "outbound_pci_stalled_wr", "outbound_pci_stalled_rd_events",
    "outbound_pci_stalled_wr_events", "outbound_pci_buffer_overflow", "rx_pause_ctrl_phy", "tx_pause_ctrl_phy",
    "rx_prio3_pause", "rx_prio3_pause_duration", "rx_prio3_pause_transition", "tx_prio3_pause",
    "tx_prio3_pause_duration", "module_unplug",
)  # fmt: skip


def write_interfaces(tree: TreeWriter, boards: Sequence[Board], driver: FabricDriver) -> None:
    """What does not change."""
    kind = _INFINIBAND if driver.link_layer == "InfiniBand" else _ETHERNET
    for board in boards if driver.has_netdev else ():
        path = f"{nic_path(board)}/net/{netdev(board, driver)}"
        _write_interface(tree, path, kind, speed=board.model.nic_gb_per_s)
    _write_interface(tree, f"{STORAGE_NIC_PATH}/net/{STORAGE_NETDEV}", _ETHERNET, speed=_STORAGE_MB_PER_S // 1000)
    _write_interface(tree, "sys/devices/virtual/net/lo", _LOOPBACK, speed=None)


def write_statistics(tree: TreeWriter, gpus: Sequence[GpuTruth], driver: FabricDriver) -> None:
    """What changes. Remote memory access goes past the interfaces of its cards; NFS is counted by its own."""
    received = sum(gpu.host_total("nfs_read_bytes") for gpu in gpus) * _OVERHEAD
    sent = sum(gpu.host_total("nfs_write_bytes") for gpu in gpus) * _OVERHEAD
    for gpu in gpus if driver.has_netdev else ():
        name = netdev(gpu.board, driver)
        path = f"{nic_path(gpu.board)}/net/{name}"
        tree.write(f"{path}/operstate", "down\n" if gpu.is_port_down else "up\n")
        tree.write(f"{path}/carrier", f"{int(not gpu.is_port_down)}\n")
        tree.write(f"{path}/carrier_down_count", f"{1 + gpu.port_downs}\n")
        tree.write(f"{path}/carrier_changes", f"{2 + gpu.port_downs}\n")
        if driver.pause_us is not None:
            paused_us = int(gpu.host_total("ib_waiting_s") * _US_PER_S)
            tree.write(f"ethtool/{name}/statistics", f"NIC statistics:\n     {driver.pause_us}: {paused_us}\n")
    statistics = f"{STORAGE_NIC_PATH}/net/{STORAGE_NETDEV}/statistics"
    for name, value in (("rx", received), ("tx", sent)):
        tree.write(f"{statistics}/{name}_bytes", f"{int(value)}\n")
        tree.write(f"{statistics}/{name}_packets", f"{int(value / _MTU_BYTES)}\n")
    tree.write(f"ethtool/{STORAGE_NETDEV}/statistics", _driver_statistics(received, sent))


def _driver_statistics(received: float, sent: float) -> str:
    """As `ethtool -S` prints them: what is on the wire, what each queue had, and what went wrong."""
    moved = {"rx": received, "tx": sent}
    of_queues = {
        f"{way}{queue}_bytes": int(value / _QUEUES) for way, value in moved.items() for queue in range(_QUEUES)
    }
    on_the_wire = {f"{way}_bytes_phy": int(value) for way, value in moved.items()}
    counted = on_the_wire | dict.fromkeys(_DRIVER_COUNTS_NONE, 0) | of_queues
    return "NIC statistics:\n" + "".join(f"     {name}: {value}\n" for name, value in counted.items())


def _write_interface(tree: TreeWriter, path: str, kind: int, *, speed: int | None) -> None:
    files = {
        "type": str(kind),
        "operstate": "unknown" if kind == _LOOPBACK else "up",
        "carrier": "1",
        "carrier_changes": "2",
        "carrier_up_count": "1",
        "carrier_down_count": "1",
        "dev_port": "0",
        "mtu": "65536" if kind == _LOOPBACK else str(_MTU_BYTES),
        **{f"statistics/{name}": "0" for name in _QUIET},
        **{f"statistics/{way}_{unit}": "0" for way in ("rx", "tx") for unit in ("bytes", "packets")},
    }
    if speed is not None:
        files["speed"] = str(speed * 1000)
        tree.link(f"{path}/device", path.rpartition("/net/")[0])
    for name, value in files.items():
        tree.write(f"{path}/{name}", f"{value}\n")
    tree.link(f"sys/class/net/{path.rpartition('/')[2]}", path)
