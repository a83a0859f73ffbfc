# SPDX-License-Identifier: Apache-2.0
"""/dev/kmsg: what the driver writes there of XIDs, among what other drivers write. It only grows."""

from collections.abc import Sequence
from typing import Final

from gpufeed.simulate.trees.writer import TreeWriter
from gpufeed.simulate.truth import GpuTruth

_PATH: Final = "dev/kmsg"
_BEGIN: Final = (
    "6,0,0,-;Linux version 6.8.0\n",
    "6,1,812345,-;pci 0000:1b:00.0: [10de:2330] type 00 class 0x030200\n SUBSYSTEM=pci\n DEVICE=+pci:0000:1b:00.0\n",
    "4,2,9112233,-,caller=T812;NVRM: loading NVIDIA UNIX x86_64 Kernel Module\n",
)


class KernelLog:
    """The log of a node since it booted."""

    def __init__(self, tree: TreeWriter) -> None:
        self._tree = tree
        self._text = "".join(_BEGIN)
        self._sequence = len(_BEGIN)
        self._told: dict[int, int] = {}  # GPU → XIDs written
        tree.write(_PATH, self._text)

    def write(self, gpus: Sequence[GpuTruth], boot_ns: int) -> None:
        """XIDs that have come, at this time since boot."""
        for gpu in gpus:
            for xid in gpu.xids[self._told.get(gpu.board.index, 0) :]:
                slot = gpu.board.pci_bus_id.rpartition(".")[0]
                said = f"NVRM: Xid (PCI:{slot}): {xid}, pid='<unknown>', name=<unknown>, simulated"
                self._text += f"4,{self._sequence},{boot_ns // 1000},-;{said}\n"
                self._sequence += 1
            self._told[gpu.board.index] = len(gpu.xids)
        self._tree.write(_PATH, self._text)
