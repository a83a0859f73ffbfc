# SPDX-License-Identifier: Apache-2.0
"""From an activity, in shares of capacity, to what a board of one model and its host do per second."""

from dataclasses import dataclass
from typing import Final

from gpufeed.simulate.activity import LOADERS, Activity
from gpufeed.simulate.block import INTEGRALS
from gpufeed.simulate.hardware import GpuModel

REASON_BITS: Final = {
    "sw_power_cap": 0x4, "hw_slowdown": 0x8, "sync_boost": 0x10, "sw_thermal": 0x20, "hw_thermal": 0x40,
    "hw_power_brake": 0x80, "board_limit": 0x200, "reliability": 0x400,
}  # fmt: skip
"""nvmlClocksEventReason… of each reason that can hold."""

IDLE_BIT: Final = 0x1
NFS_READ_BYTES: Final = 1024 * 1024
"""Size of one READ: rsize of the mount."""

HOST_INTEGRALS: Final = (
    "ib_receive_bytes", "ib_transmit_bytes", "ib_waiting_s",
    "nfs_read_bytes", "nfs_write_bytes", "nfs_reads", "nfs_read_rtt_s", "nfs_read_queue_s",
    "disk_read_bytes", "disk_write_bytes", "trainer_cpu_s", "loader_cpu_s",
    "io_waiting_s", "io_stalled_s", "cpu_waiting_s", "memory_waiting_s", "memory_stalled_s",
)  # fmt: skip
"""What the host side of one GPU's share of the job adds up."""

_BYTES_BEHIND_NO_PROCESS: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Rates of one activity, in the order of INTEGRALS and HOST_INTEGRALS, and the levels that are no rates."""

    gpu: tuple[float, ...]
    host: tuple[float, ...]
    power_w: float
    sm_clock_mhz: float
    memory_used_bytes: float
    clock_events: int


def levels(activity: Activity, model: GpuModel) -> Levels:
    """What `activity` means on a board of this model."""
    power_w = model.power_idle_w + activity.power * (model.power_limit_w - model.power_idle_w)
    bits = sum(REASON_BITS.get(reason, 0) for reason, share in activity.reasons.items() if share > 0)
    is_idle = activity.occupant == "none" and activity.graphics == 0
    usable = model.memory_bytes - model.memory_reserved_bytes
    return Levels(
        gpu=_gpu_rates(activity, model, power_w),
        host=_host_rates(activity, model),
        power_w=power_w,
        sm_clock_mhz=float(model.sm_clock_idle_mhz if is_idle else round(activity.clock * model.sm_clock_max_mhz)),
        memory_used_bytes=float(
            round(activity.memory * usable) if activity.occupant == "held" else _BYTES_BEHIND_NO_PROCESS
        ),
        clock_events=bits | (IDLE_BIT if is_idle else 0),
    )


def _gpu_rates(activity: Activity, model: GpuModel, power_w: float) -> tuple[float, ...]:
    rates = {
        "graphics_s": activity.graphics,
        "sm_s": activity.sm,
        "occupancy_s": activity.occupancy,
        "tensor_s": activity.tensor,
        "dram_s": activity.dram,
        "energy_j": power_w,
        "nvlink_receive_bytes": activity.nvlink * model.nvlink_bytes_per_s,
        "nvlink_transmit_bytes": activity.nvlink * model.nvlink_bytes_per_s,
        "pcie_receive_bytes": activity.pcie_receive * model.pcie_bytes_per_s,
        "pcie_transmit_bytes": activity.pcie_transmit * model.pcie_bytes_per_s,
        **{f"{reason}_s": share for reason, share in activity.reasons.items()},
    }
    return tuple(rates.get(name, 0.0) for name in INTEGRALS)


def _host_rates(activity: Activity, model: GpuModel) -> tuple[float, ...]:
    host = activity.host
    reads = host.nfs_read_bytes_per_s / NFS_READ_BYTES
    rates = {
        "ib_receive_bytes": activity.fabric * model.nic_bytes_per_s,
        "ib_transmit_bytes": activity.fabric * model.nic_bytes_per_s,
        "ib_waiting_s": activity.fabric_waiting,
        "nfs_read_bytes": host.nfs_read_bytes_per_s,
        "nfs_write_bytes": host.nfs_write_bytes_per_s,
        "nfs_reads": reads,
        "nfs_read_rtt_s": reads * host.nfs_read_rtt_s,
        "nfs_read_queue_s": reads * host.nfs_queue_s,
        "disk_read_bytes": host.disk_read_bytes_per_s,
        "disk_write_bytes": host.disk_write_bytes_per_s,
        "trainer_cpu_s": host.trainer_cpu,
        "loader_cpu_s": host.loader_cpu * LOADERS,
        "io_waiting_s": host.io_waiting,
        "io_stalled_s": host.io_stalled,
        "cpu_waiting_s": host.cpu_waiting,
        "memory_waiting_s": host.memory_waiting,
        "memory_stalled_s": host.memory_stalled,
    }
    return tuple(rates[name] for name in HOST_INTEGRALS)
