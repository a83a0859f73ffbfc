# SPDX-License-Identifier: Apache-2.0
"""/sys/class/infiniband: one device beside each GPU, with the files that its driver has and that matter."""

from collections.abc import Sequence
from typing import Final

from gpufeed.simulate.hardware import Board
from gpufeed.simulate.trees.fabric_drivers import FabricDriver
from gpufeed.simulate.trees.pci import nic_path
from gpufeed.simulate.trees.writer import TreeWriter
from gpufeed.simulate.truth import GpuTruth

_WORD_BYTES: Final = 4
_MTU_BYTES: Final = 4096
_WORDS_BEFORE: Final = 2_300_000_000_000
"""A node has been up for a while: nothing starts at zero."""

_WAIT_TICKS_PER_S: Final = 1_000_000
_NOTICES_PER_S: Final = 2_000
_WAIT_CEILING: Final = 0xFFFF_FFFF

_QUIET_COUNTERS: Final = {
    "excessive_buffer_overrun_errors": 15,  # a counter of four bits, at its ceiling on many healthy nodes
    "link_error_recovery": 0,
    "local_link_integrity_errors": 0,
    "multicast_rcv_packets": 5120,
    "multicast_xmit_packets": 64,
    "port_rcv_constraint_errors": 0,
    "port_rcv_errors": 0,
    "port_rcv_remote_physical_errors": 0,
    "port_rcv_switch_relay_errors": 0,
    "port_xmit_constraint_errors": 0,
    "port_xmit_discards": 0,
    "symbol_error": 0,
    "VL15_dropped": 0,
}

_HW_COUNTERS: Final = (
    "duplicate_request", "implied_nak_seq_err", "local_ack_timeout_err", "out_of_buffer", "out_of_sequence",
    "packet_seq_err", "req_cqe_error", "req_cqe_flush_error", "req_remote_access_errors",
    "req_remote_invalid_request", "resp_cqe_error", "resp_cqe_flush_error", "resp_local_length_error",
    "resp_remote_access_errors", "rnr_nak_retry_err", "roce_adp_retrans", "roce_adp_retrans_to",
    "roce_slow_restart", "roce_slow_restart_cnps", "roce_slow_restart_trans", "rx_atomic_requests",
    "rx_dct_connect", "rx_icrc_encapsulated", "rx_read_requests", "rx_write_requests",
)  # fmt: skip


def netdev(board: Board, driver: FabricDriver) -> str:
    """The network interface of the device beside a GPU."""
    return f"{'ibp' if driver.link_layer == 'InfiniBand' else 'enp'}{board.bus - 3}s0"


def write_devices(tree: TreeWriter, boards: Sequence[Board], driver: FabricDriver) -> None:
    """What does not change."""
    for board in boards:
        device = device_path(board, driver)
        port = f"{device}/ports/1"
        guid = f"a088:c203:00{board.bus:02x}:4d2e"
        is_infiniband = driver.link_layer == "InfiniBand"
        files = {
            f"{device}/fw_ver": "28.39.1002",
            f"{device}/hca_type": board.model.nic_type if driver.has_hca_type else None,
            f"{device}/board_id": driver.board_id,
            f"{device}/node_guid": guid,
            f"{device}/node_type": "1: CA",
            f"{device}/node_desc": f"node {driver.device.format(board.index)}",
            f"{port}/link_layer": driver.link_layer,
            f"{port}/rate": f"{board.model.nic_gb_per_s} Gb/sec (4X {board.model.nic_speed})",
            f"{port}/lid": f"0x{0x100 + board.index:x}" if is_infiniband else "0x0",
            f"{port}/sm_lid": "0x1" if is_infiniband else "0x0",
            f"{port}/lid_mask_count": "0",
            f"{port}/sm_sl": "0",
            f"{port}/cap_mask": "0xa751e848",
            f"{port}/gids/0": f"fe80:0000:0000:0000:{guid}",
            f"{port}/gid_attrs/types/0": "IB/RoCE v1",
            f"{port}/gid_attrs/ndevs/0": netdev(board, driver) if driver.has_netdev else None,
            f"{port}/pkeys/0": "0xffff",
            f"{port}/hw_counters/lifespan": "10",
        }
        for path, value in files.items():
            if value is not None:
                tree.write(path, f"{value}\n")
        for name, count in (_QUIET_COUNTERS if driver.has_counters else {}).items():
            tree.write(f"{port}/counters/{name}", f"{count}\n")
        for name in _HW_COUNTERS if driver.module == "mlx5_core" else ():
            tree.write(f"{port}/hw_counters/{name}", "0\n")
        tree.link(f"{device}/device", nic_path(board))
        tree.link(f"sys/class/infiniband/{driver.device.format(board.index)}", device)


def write_counters(tree: TreeWriter, gpus: Sequence[GpuTruth], driver: FabricDriver) -> None:
    """What changes."""
    for gpu in gpus:
        port = f"{device_path(gpu.board, driver)}/ports/1"
        tree.write(f"{port}/state", "1: DOWN\n" if gpu.is_port_down else "4: ACTIVE\n")
        tree.write(f"{port}/phys_state", "2: Polling\n" if gpu.is_port_down else "5: LinkUp\n")
        received, sent = gpu.host_total("ib_receive_bytes"), gpu.host_total("ib_transmit_bytes")
        for name, value in _management(gpu, received, sent, driver).items() if driver.has_counters else ():
            tree.write(f"{port}/counters/{name}", f"{value}\n")
        for name, value in _hardware(gpu, received, sent, driver).items():
            tree.write(f"{port}/hw_counters/{name}", f"{value}\n")


def _management(gpu: GpuTruth, received: float, sent: float, driver: FabricDriver) -> dict[str, int]:
    waited = int(gpu.host_total("ib_waiting_s") * _WAIT_TICKS_PER_S) if driver.waits_for_credits else 0
    return {
        "port_rcv_data": _WORDS_BEFORE + int(received / _WORD_BYTES),
        "port_xmit_data": _WORDS_BEFORE + int(sent / _WORD_BYTES),
        "port_rcv_packets": int(received / _MTU_BYTES),
        "port_xmit_packets": int(sent / _MTU_BYTES),
        "unicast_rcv_packets": int(received / _MTU_BYTES),
        "unicast_xmit_packets": int(sent / _MTU_BYTES),
        "link_downed": 1 + (gpu.port_downs if driver.link_layer == "InfiniBand" else 0),
        "port_xmit_wait": min(_WAIT_CEILING, waited),
    }


def _hardware(gpu: GpuTruth, received: float, sent: float, driver: FabricDriver) -> dict[str, int]:
    found: dict[str, int] = {}
    if driver.bytes is not None:
        found |= zip(driver.bytes, (int(received), int(sent)), strict=True)
    if driver.packets is not None:
        found |= zip(driver.packets, (int(received / _MTU_BYTES), int(sent / _MTU_BYTES)), strict=True)
    if driver.slowed is not None:
        found[driver.slowed] = int(gpu.host_total("ib_waiting_s") * _NOTICES_PER_S)
    return found


def device_path(board: Board, driver: FabricDriver) -> str:
    """Where the device beside a GPU stands in sysfs."""
    return f"{nic_path(board)}/infiniband/{driver.device.format(board.index)}"
