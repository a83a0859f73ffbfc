# SPDX-License-Identifier: Apache-2.0
"""/sys/bus/pci: GPUs, the network cards beside them below the same switch, NVSwitches, and where they hang."""

from collections.abc import Sequence
from typing import Final

from gpufeed.simulate.activity import LOADERS
from gpufeed.simulate.hardware import NVIDIA_VENDOR_ID, Board
from gpufeed.simulate.trees.writer import TreeWriter

_MELLANOX: Final = 0x15B3
_CONNECTX: Final = 0x1021
_STORAGE_MODULE: Final = "mlx5_core"
_CLASS_3D: Final = 0x030200
_CLASS_INFINIBAND: Final = 0x020700
_CLASS_ETHERNET: Final = 0x020000
_CLASS_BRIDGE: Final = 0x068000
_NVSWITCH: Final = 0x22A3
_SPEEDS: Final = {1: "2.5 GT/s PCIe", 2: "5.0 GT/s PCIe", 3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe"}

STORAGE_NIC_BUS_ID: Final = "0000:0d:00.0"
STORAGE_NIC_PATH: Final = f"sys/devices/pci0000:0a/0000:0a:01.0/{STORAGE_NIC_BUS_ID}"
"""An Ethernet card that NFS goes over; of no GPU in particular."""


def gpu_path(board: Board) -> str:
    """Directory of a GPU's PCI function."""
    return f"{_switch_path(board)}/0000:{board.bus - 4:02x}:02.0/{board.pci_bus_id}"


def nic_path(board: Board) -> str:
    """Directory of the PCI function of the network card beside a GPU."""
    return f"{_switch_path(board)}/0000:{board.bus - 4:02x}:00.0/{board.nic_pci_bus_id}"


def local_cpus(board: Board) -> str:
    """Processors at the same memory node, as a list of ranges."""
    half = board.gpus * LOADERS // 2
    if board.gpus == 1:
        return f"0-{LOADERS - 1}"
    return f"0-{half - 1}" if board.numa_node == 0 else f"{half}-{board.gpus * LOADERS - 1}"


def write_pci(tree: TreeWriter, boards: Sequence[Board], card_module: str) -> None:
    """Nothing of it changes."""
    for board in boards:
        _write_function(tree, gpu_path(board), board, (NVIDIA_VENDOR_ID, board.model.pci_device, _CLASS_3D))
        _write_function(tree, nic_path(board), board, (_MELLANOX, _CONNECTX, _CLASS_INFINIBAND))
        _bind(tree, nic_path(board), card_module)
    if boards[0].model.nvlink_links:
        # they are of the same vendor, and no GPU
        for bus in range(0x04, 0x08):
            path = f"sys/devices/pci0000:00/0000:00:01.{bus - 4}/0000:{bus:02x}:00.0"
            _write_function(tree, path, boards[0], (NVIDIA_VENDOR_ID, _NVSWITCH, _CLASS_BRIDGE))
    _write_function(tree, STORAGE_NIC_PATH, boards[0], (_MELLANOX, _CONNECTX, _CLASS_ETHERNET))
    _bind(tree, STORAGE_NIC_PATH, _STORAGE_MODULE)


def _switch_path(board: Board) -> str:
    root = board.bus - 6
    return f"sys/devices/pci0000:{root:02x}/0000:{root:02x}:01.0/0000:{board.bus - 5:02x}:00.0"


def _bind(tree: TreeWriter, path: str, module: str) -> None:
    driver = f"sys/bus/pci/drivers/{module}"
    tree.make_directory(driver)
    tree.link(f"{path}/driver", driver)


def _write_function(tree: TreeWriter, path: str, board: Board, ids: tuple[int, int, int]) -> None:
    vendor, device, pci_class = ids
    speed = _SPEEDS[board.model.pcie_generation]
    attributes = {
        "vendor": f"0x{vendor:04x}",
        "device": f"0x{device:04x}",
        "class": f"0x{pci_class:06x}",
        "subsystem_vendor": f"0x{vendor:04x}",
        "subsystem_device": f"0x{board.model.pci_subsystem >> 16:04x}",
        "numa_node": str(board.numa_node),
        "local_cpulist": local_cpus(board),
        "current_link_speed": speed,
        "current_link_width": str(board.model.pcie_width),
        "max_link_speed": speed,
        "max_link_width": str(board.model.pcie_width),
    }
    for name, value in attributes.items():
        tree.write(f"{path}/{name}", f"{value}\n")
    tree.link(f"sys/bus/pci/devices/{path.rpartition('/')[2]}", path)
