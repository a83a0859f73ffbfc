# SPDX-License-Identifier: Apache-2.0
"""Boards and nodes the simulator can be, as rows of data: a new GPU model is a new row, no code."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from uuid import NAMESPACE_OID, uuid5

MAX_GPUS: Final = 16
NVIDIA_VENDOR_ID: Final = 0x10DE
DEFAULT_DRIVER: Final = "570.124.06"

_MIB: Final = 1024 * 1024
_MB: Final = 1_000_000
_SLOTS: Final = (
    0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF,
    0x23, 0x4A, 0x5A, 0x69, 0xA5, 0xCA, 0xD8, 0xE6,
)  # fmt: skip
"""PCI bus of each GPU; its network card sits three buses before, below the same switch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """What every board of one product has in common."""

    key: str
    name: str  # nvmlDeviceGetName
    architecture: int  # nvmlDeviceArchitecture: 7 Ampere, 9 Hopper
    pci_device: int  # PCI device id, without the vendor
    pci_subsystem: int  # subsystem device << 16 | vendor
    part_number: str
    vbios: str
    inforom: str
    cuda_capability: tuple[int, int]
    sm_count: int
    memory_bytes: int
    memory_reserved_bytes: int  # by the driver: in `used` of v1, not of v2
    memory_clock_mhz: int
    sm_clock_max_mhz: int
    sm_clock_idle_mhz: int
    power_limit_w: float
    power_minimum_w: float
    power_idle_w: float
    has_power_average: bool  # PowerUsage is a mean over a second; instantaneous on GA100 and older
    has_gpm: bool
    has_temperature_limits: bool  # fields 193 to 196
    nvlink_links: int
    nvlink_link_mb_per_s: int  # one link, one direction, as the driver reports it
    pcie_generation: int
    pcie_width: int
    pcie_bytes_per_s: float  # one direction, by specification
    nic_gb_per_s: int  # Gbit/s of the network card beside each GPU
    nic_speed: str  # as in `rate`: 400 Gb/sec (4X NDR)
    nic_type: str
    host_product: str

    @property
    def nvlink_bytes_per_s(self) -> float:
        """All links together, one direction."""
        return float(self.nvlink_links * self.nvlink_link_mb_per_s * _MB)

    @property
    def nic_bytes_per_s(self) -> float:
        """The network card's port, one direction."""
        return self.nic_gb_per_s * 1e9 / 8

    @property
    def pci_device_id(self) -> int:
        """As nvmlPciInfo_t.pciDeviceId has it."""
        return self.pci_device << 16 | NVIDIA_VENDOR_ID


H100: Final = GpuModel(
    key="h100",
    name="NVIDIA H100 80GB HBM3",
    architecture=9,
    pci_device=0x2330,
    pci_subsystem=0x16C1_10DE,
    part_number="692-2G520-0200-000",
    vbios="96.00.74.00.01",
    inforom="G520.0200.00.05",
    cuda_capability=(9, 0),
    sm_count=132,
    memory_bytes=81559 * _MIB,
    memory_reserved_bytes=551 * _MIB,
    memory_clock_mhz=2619,
    sm_clock_max_mhz=1980,
    sm_clock_idle_mhz=345,
    power_limit_w=700.0,
    power_minimum_w=200.0,
    power_idle_w=70.0,
    has_power_average=True,
    has_gpm=True,
    has_temperature_limits=True,
    nvlink_links=18,
    nvlink_link_mb_per_s=26562,
    pcie_generation=5,
    pcie_width=16,
    pcie_bytes_per_s=63e9,
    nic_gb_per_s=400,
    nic_speed="NDR",
    nic_type="MT4129",
    host_product="Simulated 8x H100 server",
)

A100: Final = GpuModel(
    key="a100",
    name="NVIDIA A100-SXM4-80GB",
    architecture=7,
    pci_device=0x20B2,
    pci_subsystem=0x1463_10DE,
    part_number="692-2G506-0210-002",
    vbios="92.00.45.00.03",
    inforom="G506.0210.00.04",
    cuda_capability=(8, 0),
    sm_count=108,
    memory_bytes=81920 * _MIB,
    memory_reserved_bytes=627 * _MIB,
    memory_clock_mhz=1593,
    sm_clock_max_mhz=1410,
    sm_clock_idle_mhz=210,
    power_limit_w=400.0,
    power_minimum_w=100.0,
    power_idle_w=52.0,
    has_power_average=False,
    has_gpm=False,
    has_temperature_limits=False,
    nvlink_links=12,
    nvlink_link_mb_per_s=25000,
    pcie_generation=4,
    pcie_width=16,
    pcie_bytes_per_s=31e9,
    nic_gb_per_s=200,
    nic_speed="HDR",
    nic_type="MT4123",
    host_product="Simulated 8x A100 server",
)

MODELS: Final[Mapping[str, GpuModel]] = MappingProxyType({model.key: model for model in (H100, A100)})


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
        return f"165{self.model.architecture}{self.index:09d}"

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
