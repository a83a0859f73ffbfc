# SPDX-License-Identifier: Apache-2.0
"""What a GPU is, holds, draws and clocks; its PCIe slot, its switches, its processes."""

from functools import partial
from typing import Final

from gpufeed.catalogue.define import GPU_LABELS, SLICE_LABELS, MetricDef, RowProfile

TITLE: Final = "GPU"

_gauge = partial(MetricDef, type="gauge", collector="nvml", labels=GPU_LABELS)
_slice_gauge = partial(MetricDef, type="gauge", collector="nvml", labels=SLICE_LABELS)
_counter = partial(MetricDef, type="counter", collector="nvml", labels=GPU_LABELS)

GPU_INFO = MetricDef(
    name="gpufeed_gpu_info",
    type="info",
    unit="info",
    help="What the GPU is. One row per uuid: join with it on uuid.",
    labels=(
        *GPU_LABELS, "name", "serial", "pci_bus_id", "minor", "architecture", "part_number", "vbios", "inforom",
        "numa_node", "module_id",
    ),
    source="NVML, once per driver initialisation; numa_node from sysfs",
    profile="minimal",
    collector="nvml",
)  # fmt: skip

DRIVER_INFO = MetricDef(
    name="gpufeed_driver_info",
    type="info",
    unit="info",
    help="The NVIDIA driver that is loaded.",
    labels=("driver_version", "nvml_version", "cuda_version"),
    source="nvmlSystemGetDriverVersion and its neighbours",
    profile="minimal",
    collector="nvml",
)

GPUS_EXPECTED = _gauge(
    name="gpufeed_gpus_expected",
    unit="count",
    help="GPUs that this node should have, and who says so: the config, else the inventory, else the PCI bus.",
    labels=("origin",),
    source="config, saved inventory, sysfs",
    profile="minimal",
)

GPUS_PRESENT = _gauge(
    name="gpufeed_gpus_present",
    unit="count",
    help="GPUs that the driver has and that did not fall off the bus.",
    labels=(),
    source="NVML",
    profile="minimal",
)

GPU_UP = _gauge(
    name="gpufeed_gpu_up",
    unit="boolean",
    help="1: the GPU answers. 0: it is lost, missing, hung, or must be reset first. Stands while it is remembered.",
    source="every call to the GPU",
    profile="minimal",
)

GPU_UTILIZATION_RATIO = _gauge(
    name="gpufeed_gpu_utilization_ratio",
    unit="ratio",
    help="Share of the driver's sampling window with a kernel resident. 1 also while it only spins and waits.",
    source="nvmlDeviceGetUtilizationRates",
    profile="default",
)

GPU_MEMORY_UTILIZATION_RATIO = _gauge(
    name="gpufeed_gpu_memory_utilization_ratio",
    unit="ratio",
    help="Share of the driver's sampling window with device memory traffic.",
    source="nvmlDeviceGetUtilizationRates",
    profile="default",
)

GPU_ENCODER_UTILIZATION_RATIO = _gauge(
    name="gpufeed_gpu_encoder_utilization_ratio",
    unit="ratio",
    help="Share of the driver's sampling window in which the video encoder worked.",
    source="nvmlDeviceGetEncoderUtilization",
    profile="full",
    sheds="detail",
)

GPU_DECODER_UTILIZATION_RATIO = _gauge(
    name="gpufeed_gpu_decoder_utilization_ratio",
    unit="ratio",
    help="Share of the driver's sampling window in which the video decoder worked.",
    source="nvmlDeviceGetDecoderUtilization",
    profile="full",
    sheds="detail",
)

GPU_MEMORY_TOTAL_BYTES = _slice_gauge(
    name="gpufeed_gpu_memory_total_bytes",
    unit="bytes",
    help="Device memory there is.",
    source="nvmlDeviceGetMemoryInfo_v2",
    profile="minimal",
)

GPU_MEMORY_USED_BYTES = _slice_gauge(
    name="gpufeed_gpu_memory_used_bytes",
    unit="bytes",
    help="Device memory that is allocated, without the driver's own reserve.",
    source="nvmlDeviceGetMemoryInfo_v2",
    profile="minimal",
)

GPU_MEMORY_RESERVED_BYTES = _slice_gauge(
    name="gpufeed_gpu_memory_reserved_bytes",
    unit="bytes",
    help="Device memory that driver and firmware keep for themselves.",
    source="nvmlDeviceGetMemoryInfo_v2",
    profile="full",
    sheds="detail",
)

GPU_MEMORY_FREE_BYTES = _slice_gauge(
    name="gpufeed_gpu_memory_free_bytes",
    unit="bytes",
    help="Device memory that can still be allocated.",
    source="nvmlDeviceGetMemoryInfo_v2",
    profile="full",
    sheds="detail",
)

GPU_BAR1_TOTAL_BYTES = _slice_gauge(
    name="gpufeed_gpu_bar1_total_bytes",
    unit="bytes",
    help="Window through which processor, network cards and other GPUs reach device memory.",
    source="nvmlDeviceGetBAR1MemoryInfo",
    profile="full",
    sheds="detail",
)

GPU_BAR1_USED_BYTES = _slice_gauge(
    name="gpufeed_gpu_bar1_used_bytes",
    unit="bytes",
    help="Part of that window that is mapped.",
    source="nvmlDeviceGetBAR1MemoryInfo",
    profile="full",
    sheds="detail",
)

GPU_POWER_WATTS = _gauge(
    name="gpufeed_gpu_power_watts",
    unit="watts",
    help="Power of the board, as the driver gives it: a mean over one second on recent boards.",
    source="nvmlDeviceGetPowerUsage",
    profile="minimal",
)

GPU_POWER_INSTANT_WATTS = _gauge(
    name="gpufeed_gpu_power_instant_watts",
    unit="watts",
    help="Power of the board at the moment of the read.",
    source="NVML field 186",
    profile="full",
    sheds="detail",
)

GPU_POWER_LIMIT_WATTS = _gauge(
    name="gpufeed_gpu_power_limit_watts",
    unit="watts",
    help="Power limit: enforced (in force now), default (as the board came), min and max (what can be set).",
    labels=(*GPU_LABELS, "limit"),
    source="NVML fields 187 to 190, nvmlDeviceGetEnforcedPowerLimit and its neighbours",
    profile="default",
    row_profile=RowProfile(label="limit", kept=("enforced",), others="full"),
    sheds="detail",
)

GPU_ENERGY_JOULES_TOTAL = _counter(
    name="gpufeed_gpu_energy_joules_total",
    unit="joules",
    help="Energy used by the board since the driver was loaded. Its rate is the exact mean power.",
    source="nvmlDeviceGetTotalEnergyConsumption",
    profile="minimal",
)

GPU_TEMPERATURE_CELSIUS = _gauge(
    name="gpufeed_gpu_temperature_celsius",
    unit="celsius",
    help="Temperature of the GPU die or of its memory.",
    labels=(*GPU_LABELS, "sensor"),
    source="nvmlDeviceGetTemperatureV, NVML field 82",
    profile="minimal",
)

GPU_CLOCK_HERTZ = _gauge(
    name="gpufeed_gpu_clock_hertz",
    unit="hertz",
    help="Clock of a domain at the moment of the read.",
    labels=(*GPU_LABELS, "domain"),
    source="nvmlDeviceGetClockInfo",
    profile="default",
    row_profile=RowProfile(label="domain", kept=("sm", "memory"), others="full"),
    sheds="detail",
)

GPU_CLOCK_MAX_HERTZ = _gauge(
    name="gpufeed_gpu_clock_max_hertz",
    unit="hertz",
    help="Highest clock of a domain.",
    labels=(*GPU_LABELS, "domain"),
    source="nvmlDeviceGetMaxClockInfo",
    profile="default",
    row_profile=RowProfile(label="domain", kept=("sm", "memory"), others="full"),
    sheds="detail",
)

GPU_CLOCK_EVENT_SECONDS_TOTAL = _counter(
    name="gpufeed_gpu_clock_event_seconds_total",
    unit="seconds",
    help="Time in which a reason held the clocks down, as the driver counts it. Reasons overlap: do not add them up.",
    labels=(*GPU_LABELS, "reason"),
    source="NVML violation and clock-event counters",
    profile="default",
    sheds="detail",
)

GPU_CLOCK_EVENT_ACTIVE = _gauge(
    name="gpufeed_gpu_clock_event_active",
    unit="boolean",
    help="1: this reason holds the clocks down at the moment of the read.",
    labels=(*GPU_LABELS, "reason"),
    source="nvmlDeviceGetCurrentClocksEventReasons",
    profile="full",
    sheds="detail",
)

GPU_PCIE_RECEIVE_BYTES_TOTAL = _counter(
    name="gpufeed_gpu_pcie_receive_bytes_total",
    unit="bytes",
    help="Bytes to the GPU over PCIe, protocol included. The hardware counter wraps; here it does not.",
    source="NVML field 198, or the integral of GPM 21",
    profile="default",
)

GPU_PCIE_TRANSMIT_BYTES_TOTAL = _counter(
    name="gpufeed_gpu_pcie_transmit_bytes_total",
    unit="bytes",
    help="Bytes from the GPU over PCIe, protocol included. The hardware counter wraps; here it does not.",
    source="NVML field 197, or the integral of GPM 20",
    profile="default",
)

GPU_PCIE_LINK_GENERATION = _gauge(
    name="gpufeed_gpu_pcie_link_generation",
    unit="id",
    help="PCIe generation in use. Falls by itself when the GPU is idle.",
    source="nvmlDeviceGetCurrPcieLinkGeneration",
    profile="default",
    sheds="detail",
)

GPU_PCIE_LINK_WIDTH = _gauge(
    name="gpufeed_gpu_pcie_link_width",
    unit="count",
    help="PCIe lanes in use.",
    source="nvmlDeviceGetCurrPcieLinkWidth",
    profile="default",
    sheds="detail",
)

GPU_PCIE_LINK_GENERATION_MAX = _gauge(
    name="gpufeed_gpu_pcie_link_generation_max",
    unit="id",
    help="Highest PCIe generation that GPU and slot can use together.",
    source="nvmlDeviceGetMaxPcieLinkGeneration",
    profile="full",
    sheds="detail",
)

GPU_PCIE_LINK_WIDTH_MAX = _gauge(
    name="gpufeed_gpu_pcie_link_width_max",
    unit="count",
    help="Most PCIe lanes that GPU and slot can use together.",
    source="nvmlDeviceGetMaxPcieLinkWidth",
    profile="full",
    sheds="detail",
)

GPU_PCIE_REPLAYS_TOTAL = _counter(
    name="gpufeed_gpu_pcie_replays_total",
    unit="count",
    help="PCIe packets sent again. A steady increase is a bad slot, riser or board.",
    source="nvmlDeviceGetPcieReplayCounter",
    profile="default",
)

GPU_PERSISTENCE_ENABLED = _gauge(
    name="gpufeed_gpu_persistence_enabled",
    unit="boolean",
    help="1: the driver stays initialised while nobody uses the GPU.",
    source="nvmlDeviceGetPersistenceMode",
    profile="default",
    sheds="detail",
)

GPU_ECC_ENABLED = _gauge(
    name="gpufeed_gpu_ecc_enabled",
    unit="boolean",
    help="1: device memory is protected by ECC.",
    source="nvmlDeviceGetEccMode",
    profile="default",
    sheds="detail",
)

GPU_MIG_ENABLED = _gauge(
    name="gpufeed_gpu_mig_enabled",
    unit="boolean",
    help="1: the board is split into MIG instances.",
    source="nvmlDeviceGetMigMode",
    profile="default",
    sheds="detail",
)

GPU_RECOVERY_ACTION = _gauge(
    name="gpufeed_gpu_recovery_action",
    unit="boolean",
    help="What the driver itself asks for. Rows: none, as 0 or 1, and the action that is in force, as 1.",
    labels=(*GPU_LABELS, "action"),
    source="NVML field 230",
    profile="default",
)

GPU_PROCESSES = _slice_gauge(
    name="gpufeed_gpu_processes",
    unit="count",
    help="Processes that hold a context on the GPU.",
    source="nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses",
    profile="default",
)

GPU_IN_USE_RECENTLY = _gauge(
    name="gpufeed_gpu_in_use_recently",
    unit="boolean",
    help="1: a process held the GPU within the last 15 minutes.",
    source="process lists, remembered",
    profile="minimal",
)

RECOVERY_ACTIONS: Final = (
    "none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset", "recover_imex", "bus_reset", "system_reboot",
)  # fmt: skip
"""Values of field 230, by number (nvmlDeviceGpuRecoveryAction_t)."""

CLOCK_EVENT_BITS: Final = {
    "idle": 0x1, "sw_power_cap": 0x4, "hw_slowdown": 0x8, "sync_boost": 0x10, "sw_thermal": 0x20, "hw_thermal": 0x40,
    "hw_power_brake": 0x80, "board_limit": 0x200, "reliability": 0x400,
}  # fmt: skip
"""Reasons in the mask of nvmlDeviceGetCurrentClocksEventReasons; the others are settings, not events."""
