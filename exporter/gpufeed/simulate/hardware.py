# SPDX-License-Identifier: Apache-2.0
"""The boards of a simulated node: where each sits, what tells it from its neighbours."""

from dataclasses import dataclass
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from gpufeed.simulate.gpu_model import DEFAULT_DRIVER, NVIDIA_VENDOR_ID, GpuModel
from gpufeed.simulate.models import A100, H100, MODELS

__all__ = ["A100", "DEFAULT_DRIVER", "H100", "MAX_GPUS", "MODELS", "NVIDIA_VENDOR_ID", "Board", "GpuModel", "boards"]

MAX_GPUS: Final = 16
_SLOTS: Final = (
    0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF,
    0x23, 0x4A, 0x5A, 0x69, 0xA5, 0xCA, 0xD8, 0xE6,
)  # fmt: skip
"""PCI bus of each GPU; its network card sits three buses before, below the same switch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One GPU of a node: what tells it from its neighbours. The network card beside it has the same index."""

    model: GpuModel
    index: int
    gpus: int  # of the node: the second half sits at the second processor

    @property
    def uuid(self) -> str:
        """The same for the same model and index, in every process."""
        return f"GPU-{uuid5(NAMESPACE_OID, f'{self.model.key}/{self.index}')}"

    @property
    def serial(self) -> str:
        """Thirteen digits, as on a label."""
        return f"165{self.model.architecture % 10}{self.index:09d}"

    @property
    def numa_node(self) -> int:
        """The processor whose PCI root complex it hangs on."""
        return 0 if self.gpus == 1 or self.index < self.gpus / 2 else 1

    @property
    def bus(self) -> int:
        """PCI bus number."""
        return _SLOTS[self.index]

    @property
    def pci_bus_id(self) -> str:
        """As sysfs spells it."""
        return f"0000:{self.bus:02x}:00.0"

    @property
    def nic_pci_bus_id(self) -> str:
        """The network card beside it, as sysfs spells it."""
        return f"0000:{self.bus - 3:02x}:00.0"

    @property
    def nic(self) -> str:
        """Name of the RDMA device beside it."""
        return f"mlx5_{self.index}"


def boards(model: GpuModel, gpus: int) -> tuple[Board, ...]:
    """The boards of a node, ordered by NVML index. Raises ValueError outside 1 to 16."""
    if not 1 <= gpus <= MAX_GPUS:
        raise ValueError(f"a simulated node has 1 to {MAX_GPUS} GPUs, not {gpus}")
    return tuple(Board(model=model, index=index, gpus=gpus) for index in range(gpus))
