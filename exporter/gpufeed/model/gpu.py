# SPDX-License-Identifier: Apache-2.0
"""Samples of a GPU, as NVML gives them. All cumulative values count from driver load unless said otherwise."""

from typing import Literal

from msgspec import Struct

from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.model.sample import Sample

ClockEventReason = Literal[
    "sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal",
    "hw_power_brake", "board_limit", "reliability", "low_utilization", "thermal_policy", "base_clocks",
]  # fmt: skip

TemperatureLimit = Literal["slowdown", "shutdown", "memory_max", "gpu_max"]

GpuConditionWord = Literal["ok", "lost", "reset_required", "denied", "error", "released"]
"""How a GPU's lane found it. `hung` is not among them: a lane that hangs says nothing; the server sees it."""


class DriverInfo(Sample, frozen=True, kw_only=True, tag="driver_info"):
    """The driver as a whole, once per initialisation."""

    driver_version: str | None = None  # nvmlSystemGetDriverVersion
    nvml_version: str | None = None  # nvmlSystemGetNVMLVersion
    cuda_version: str | None = None  # nvmlSystemGetCudaDriverVersion_v2, as "12.4"
    device_count: int  # nvmlDeviceGetCount_v2: may still count a lost GPU

    @property
    def subject(self) -> str:
        """There is one driver."""
        return "driver"


class PciGpus(Sample, frozen=True, kw_only=True, tag="pci_gpus"):
    """PCI bus ids of NVIDIA display and 3D controllers, by sysfs: needs no driver."""

    bus_ids: tuple[str, ...]  # 0000:18:00.0, lower case
    paths: tuple[tuple[str, ...], ...] = ()  # of each, from the host bridge to the function, by their names in sysfs

    @property
    def subject(self) -> str:
        """There is one PCI tree."""
        return "pci"


class GpuIdentity(Sample, frozen=True, kw_only=True, tag="gpu_identity"):
    """What does not change until the driver is initialised again."""

    gpu: GpuKey
    index: int  # NVML index: mutable across boots
    name: str | None = None
    serial: str | None = None
    pci_bus_id: str | None = None  # 0000:18:00.0, the sysfs spelling
    pci_device_id: int | None = None  # device << 16 | vendor, as nvmlPciInfo_t.pciDeviceId
    minor: int | None = None  # /dev/nvidiaN
    architecture: str | None = None
    part_number: str | None = None
    vbios: str | None = None
    inforom: str | None = None
    numa_node: int | None = None  # of the PCI slot, from sysfs
    module_id: int | None = None
    sm_count: int | None = None
    power_limit_default_w: float | None = None
    sm_clock_max_hz: float | None = None
    memory_clock_max_hz: float | None = None
    pcie_generation_max: int | None = None
    pcie_width_max: int | None = None
    nvlink_links: int | None = None  # field 91; 0 where the board has none
    nvlink_speed_bytes_per_s: float | None = None  # of one link and direction, as the driver reports it
    has_gpm: bool = False
    graphics_clock_max_hz: float | None = None
    video_clock_max_hz: float | None = None
    power_limit_min_w: float | None = None
    power_limit_max_w: float | None = None
    temperature_limits_c: dict[TemperatureLimit, float] | None = None  # before Ada: degrees of the sensor
    temperature_limit_margins_c: dict[TemperatureLimit, float] | None = None  # since Ada: margin at which it acts

    @property
    def subject(self) -> GpuKey:
        """The GPU."""
        return self.gpu


class MigInstance(Struct, frozen=True, array_like=True):
    """A part of a board that programs see as a GPU: a compute instance of a GPU instance."""

    gi: int
    ci: int
    uuid: str = ""  # MIG-…, which a device plugin hands out


class MigInstances(Sample, frozen=True, kw_only=True, tag="mig_instances"):
    """How a board is split now; nothing where MIG is off, or on and nothing was created yet."""

    gpu: GpuKey
    instances: tuple[MigInstance, ...] = ()

    @property
    def subject(self) -> GpuKey:
        """The board."""
        return self.gpu


class GpuCondition(Sample, frozen=True, kw_only=True, tag="gpu_condition"):
    """Whether the GPU answers at all, said by its lane at every fast read, also when it does not."""

    index: int
    uuid: GpuUuid | None = None  # None: lost before its identity was ever read
    condition: GpuConditionWord
    detail: str = ""  # the driver's own words

    @property
    def subject(self) -> int:
        """The NVML index."""
        return self.index


class GpuFast(Sample, frozen=True, kw_only=True, tag="gpu_fast"):
    """What changes within a second."""

    gpu: GpuKey
    utilization_ratio: float | None = None  # nvmlDeviceGetUtilizationRates.gpu: a kernel was resident
    memory_utilization_ratio: float | None = None  # …memory: share of time with memory traffic
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None  # v2 semantics: without the driver's reserve
    memory_reserved_bytes: int | None = None
    memory_free_bytes: int | None = None
    power_w: float | None = None
    power_instant_w: float | None = None  # field 186
    power_limit_enforced_w: float | None = None
    energy_j: float | None = None  # cumulative
    temperature_c: float | None = None
    memory_temperature_c: float | None = None  # field 82
    graphics_clock_hz: float | None = None
    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    clock_event_ns: dict[ClockEventReason, int] | None = None  # cumulative, per reason the driver counts
    clock_events: int | None = None  # nvmlDeviceGetCurrentClocksEventReasons, the bit mask of the moment

    @property
    def subject(self) -> GpuKey:
        """The GPU."""
        return self.gpu


class GpmInterval(Sample, frozen=True, kw_only=True, tag="gpm"):
    """Means between two GPM samples of one GPU, at least 110 ms apart: exact over [began_ns, ended_ns]."""

    gpu: GpuKey
    began_ns: int
    ended_ns: int
    graphics_ratio: float | None = None  # GPM 1
    sm_ratio: float | None = None  # GPM 2: share of SMs with a warp resident
    occupancy_ratio: float | None = None  # GPM 3
    tensor_ratio: float | None = None  # GPM 5
    dram_ratio: float | None = None  # GPM 10
    pcie_transmit_bytes_per_s: float | None = None  # GPM 20, from the GPU
    pcie_receive_bytes_per_s: float | None = None  # GPM 21, to the GPU
    nvlink_receive_bytes_per_s: float | None = None  # GPM 60
    nvlink_transmit_bytes_per_s: float | None = None  # GPM 61
    pipes: dict[str, float] | None = None  # hmma, imma, dfma, fp64, fp32, fp16, int: ratios

    @property
    def subject(self) -> GpuKey:
        """The GPU."""
        return self.gpu


class PcieBytes(Sample, frozen=True, kw_only=True, tag="pcie_bytes"):
    """Raw PCIe byte counters (fields 197, 198): they wrap at `counter_bits` and are unwrapped in the server."""

    gpu: GpuKey
    transmit_bytes: int | None = None
    receive_bytes: int | None = None
    counter_bits: int = 32

    @property
    def subject(self) -> GpuKey:
        """The GPU."""
        return self.gpu


class NvlinkTotals(Sample, frozen=True, kw_only=True, tag="nvlink_totals"):
    """All links of one GPU together. Fields 138 and 139 with scope all-ones, in bytes."""

    gpu: GpuKey
    receive_bytes: int | None = None
    transmit_bytes: int | None = None
    links: int | None = None
    links_up: int | None = None

    @property
    def subject(self) -> GpuKey:
        """The GPU."""
        return self.gpu


class GpuSlow(Sample, frozen=True, kw_only=True, tag="gpu_slow"):
    """What changes within minutes."""

    gpu: GpuKey
    pcie_generation: int | None = None
    pcie_width: int | None = None
    pcie_replays: int | None = None
    persistence_enabled: bool | None = None
    ecc_enabled: bool | None = None
    mig_enabled: bool | None = None
    recovery_action: int | None = None  # field 230
    fabric_state: int | None = None  # nvmlDeviceGetGpuFabricInfoV.state: 1 not started, 2 in progress, 3 completed
    fabric_status: int | None = None  # …status, an nvmlReturn: means something once completed; 0 is well
    fabric_trouble: dict[str, bool] | None = None  # …healthMask and summary: trouble → whether it is in force
    performance_state: int | None = None  # 0 is the fastest
    compute_mode: int | None = None  # 0 default, 2 prohibited, 3 exclusive process
    encoder_utilization_ratio: float | None = None
    decoder_utilization_ratio: float | None = None
    bar1_total_bytes: int | None = None
    bar1_used_bytes: int | None = None
    video_clock_hz: float | None = None
    temperature_margin_c: float | None = None  # to the nearest slowdown: nvmlDeviceGetMarginTemperature

    @property
    def subject(self) -> GpuKey:
        """The GPU."""
        return self.gpu


class GpuProcess(Struct, frozen=True, array_like=True):
    """A process that holds a context on a GPU."""

    pid: int
    used_memory_bytes: int | None = None


class GpuProcesses(Sample, frozen=True, kw_only=True, tag="gpu_processes"):
    """Processes that hold a context, compute and graphics, each once."""

    gpu: GpuKey
    processes: tuple[GpuProcess, ...]

    @property
    def subject(self) -> GpuKey:
        """The GPU."""
        return self.gpu
