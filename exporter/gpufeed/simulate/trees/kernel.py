# SPDX-License-Identifier: Apache-2.0
"""Node-wide files of procfs: processors, memory, pressure, and who the node is."""

from typing import Final
from uuid import NAMESPACE_OID, uuid5

from gpufeed.simulate.host import HostTruth
from gpufeed.simulate.trees.writer import TreeWriter
from gpufeed.simulate.truth import NodeTruth

TICKS_PER_S: Final = 100
"""USER_HZ: processor time in procfs counts in these."""

_US_PER_S: Final = 1_000_000
_TICKS_BEFORE: Final = 8_640_000
_SYSTEM_SHARE: Final = 0.08
_MEMORY_KB: Final = 1_056_000_000
_NANOSECONDS: Final = 1_000_000_000


def write_identity(tree: TreeWriter, truth: NodeTruth) -> None:
    """What does not change."""
    files = {
        "proc/sys/kernel/hostname": "simulated-node",
        "proc/sys/kernel/osrelease": "6.8.0-60-generic",
        "proc/sys/kernel/random/boot_id": str(uuid5(NAMESPACE_OID, f"boot of {truth.model.key}")),
        "etc/machine-id": uuid5(NAMESPACE_OID, f"machine of {truth.model.key}").hex,
        "sys/class/dmi/id/product_name": truth.model.host_product,
        "sys/class/dmi/id/sys_vendor": "gpufeed",
        "proc/1/comm": "systemd",
        "proc/1/cgroup": "0::/init.scope",
    }
    for path, value in files.items():
        tree.write(path, f"{value}\n")


def write_kernel(tree: TreeWriter, truth: NodeTruth, wall_ns: int) -> None:
    """What counts."""
    tree.write("proc/stat", _stat(truth, wall_ns))
    tree.write("proc/meminfo", _meminfo(truth))
    tree.write("proc/uptime", f"{_TICKS_BEFORE / TICKS_PER_S + truth.host.elapsed_s:.2f} 0.00\n")
    if truth.has_driver:
        version = truth.driver_version
        tree.write(
            "proc/driver/nvidia/version",
            f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  (simulated)\n",
        )


def write_pressure(tree: TreeWriter, host: HostTruth) -> None:
    """What tasks waited for, where the kernel accounts it."""
    waiting = host.waiting_s
    tree.write("proc/pressure/io", pressure(waiting["io_waiting_s"], waiting["io_stalled_s"]))
    tree.write("proc/pressure/memory", pressure(waiting["memory_waiting_s"], waiting["memory_stalled_s"]))
    # at system level the kernel prints the second line for cpu, and counts nothing in it
    tree.write("proc/pressure/cpu", pressure(waiting["cpu_waiting_s"], 0.0))


def pressure(waiting_s: float, stalled_s: float) -> str:
    """A file of pressure stall information. The averages, which nobody should use, stay at zero."""
    averages = "avg10=0.00 avg60=0.00 avg300=0.00"
    return f"some {averages} total={int(waiting_s * _US_PER_S)}\nfull {averages} total={int(stalled_s * _US_PER_S)}\n"


def _stat(truth: NodeTruth, wall_ns: int) -> str:
    host = truth.host
    one = _ticks(host, 1 / host.cpus)
    cpus = "".join(f"cpu{cpu} {one}\n" for cpu in range(host.cpus))
    running = sum(gpu.activity.host.loaders_running for gpu in truth.gpus) + 1
    boot_s = wall_ns // _NANOSECONDS - int(host.elapsed_s) - _TICKS_BEFORE // TICKS_PER_S
    return (
        f"cpu  {_ticks(host, 1.0)}\n{cpus}intr 184467440 0 9\nctxt 3500000000\nbtime {boot_s}\n"
        f"processes 917504\nprocs_running {running}\nprocs_blocked {host.blocked_tasks}\n"
        "softirq 123595 0 13520 3 7849 39929 0 2 34113 0 28179\n"
    )


def _ticks(host: HostTruth, share: float) -> str:
    """The ten numbers of a cpu line (user, nice, system, idle, iowait, …) for a share of all processors."""
    idle_s = host.elapsed_s * host.cpus - host.busy_s - host.iowait_s
    seconds = (host.busy_s * (1 - _SYSTEM_SHARE), 0.0, host.busy_s * _SYSTEM_SHARE, idle_s, host.iowait_s)
    before = (0, 0, 0, _TICKS_BEFORE * host.cpus, 0)
    ticks = (int((b + s * TICKS_PER_S) * share) for b, s in zip(before, seconds, strict=True))
    return " ".join(str(value) for value in (*ticks, 0, 0, 0, 0, 0))


def _meminfo(truth: NodeTruth) -> str:
    used = 40_000_000 + sum(30_000_000 for gpu in truth.gpus if gpu.activity.occupant == "held")
    available = _MEMORY_KB - used
    values = {
        "MemTotal": _MEMORY_KB,
        "MemFree": available // 2,
        "MemAvailable": available,
        "Buffers": 1_200_000,
        "Cached": available // 2,
        "SwapCached": 0,
        "SwapTotal": 0,
        "SwapFree": 0,
        "Dirty": 4096,
        "Shmem": 8_000_000,
    }
    lines = [f"{name + ':':<15} {value:>9} kB\n" for name, value in values.items()]
    return "".join([*lines, "HugePages_Total:       0\n", "HugePages_Free:        0\n"])
