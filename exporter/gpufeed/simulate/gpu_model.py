# SPDX-License-Identifier: Apache-2.0
"""What every board of one product has in common."""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

NVIDIA_VENDOR_ID: Final = 0x10DE
DEFAULT_DRIVER: Final = "570.124.06"

_MB: Final = 1_000_000


class TemperatureLimits(NamedTuple):
    """Degrees Celsius: of the sensor before Ada, below the limit (T.Limit) since. None: the board has no such limit."""

    shutdown: int
    slowdown: int
    memory_max: int | None
    gpu_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """What every board of one product has in common."""

    key: str
    name: str  # nvmlDeviceGetName
    architecture: int  # nvmlDeviceArchitecture: 5 Volta, 7 Ampere, 8 Ada, 9 Hopper, 10 Blackwell
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
    driver_version: str = DEFAULT_DRIVER  # where neither the scenario nor the caller says another
    has_serial: bool = True  # an inforom: not on consumer boards
    has_ecc: bool = True
    has_framebuffer: bool = True  # memory of its own: not where it shares the host's
    has_memory_temperature: bool = True  # HBM has a sensor
    has_energy: bool = True
    has_power_limit: bool = True
    has_mig: bool = False
    has_fabric: bool = False  # registers with a fabric manager: NVSwitch systems since Hopper
    repair: Literal["rows", "pages", ""] = "rows"  # how bad memory is replaced
    temperature_limits: TemperatureLimits | None = None  # absolute; T.Limit margins with has_temperature_limits
    nvlink_version: int = 0  # nvmlNvlinkVersion_t
    nvlink_peer: Literal["gpu", "switch"] = "switch"
    c2c_links: int = 0  # to the processor on the same module
    c2c_link_mb_per_s: int = 0

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
