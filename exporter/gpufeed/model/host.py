# SPDX-License-Identifier: Apache-2.0
"""Samples of the host: pressure, processors, memory, and the tasks of the processes that hold GPUs."""

from typing import Literal

from gpufeed.model.ids import GpuUuid
from gpufeed.model.sample import Sample

PressureResource = Literal["cpu", "io", "memory", "irq"]


class NodeInfo(Sample, frozen=True, kw_only=True, tag="node_info"):
    """The machine. Source: /proc/sys/kernel, /etc/machine-id, /sys/class/dmi/id."""

    nodename: str
    machine_id: str | None = None
    boot_id: str | None = None
    product: str | None = None

    @property
    def subject(self) -> str:
        """There is one node."""
        return "node"


class Pressure(Sample, frozen=True, kw_only=True, tag="pressure"):
    """Pressure stall totals of one resource. Source: /proc/pressure/*, cgroup *.pressure (PSI)."""

    resource: PressureResource
    cgroup: str = ""  # empty: the whole system
    waiting_s: float | None = None  # "some" total
    stalled_s: float | None = None  # "full" total; None for cpu at system level, where it means nothing

    @property
    def subject(self) -> tuple[str, str]:
        """Cgroup and resource."""
        return (self.cgroup, self.resource)


class HostCpu(Sample, frozen=True, kw_only=True, tag="host_cpu"):
    """Processor time of the node since boot. Source: /proc/stat."""

    seconds: dict[str, float]  # user, nice, system, idle, iowait, irq, softirq, steal
    cpus: int
    blocked_tasks: int | None = None  # procs_blocked

    @property
    def subject(self) -> str:
        """There is one host."""
        return "host"


class HostMemory(Sample, frozen=True, kw_only=True, tag="host_memory"):
    """Memory of the node. Source: /proc/meminfo."""

    total_bytes: int
    available_bytes: int | None = None

    @property
    def subject(self) -> str:
        """There is one host."""
        return "host"


class JobTasks(Sample, frozen=True, kw_only=True, tag="job_tasks"):
    """Threads of the processes that hold one set of GPUs, and of their children: what they wait for.

    Source: /proc/PID/task/TID/stat. Processes of one cgroup are one entry.
    """

    cgroup: str
    gpus: tuple[GpuUuid, ...]
    processes: int
    threads: int
    running: int  # state R
    blocked: int  # state D: uninterruptible, mostly input and output
    cpu_s: float  # user and system of all threads, cumulative; falls when a process ends
    busiest_thread_cpu_s: float | None = None  # of the thread that used most since the last read, that use
    busiest_thread_wall_s: float | None = None  # over this long
    cpus_allowed: int | None = None  # Cpus_allowed of the first process

    @property
    def subject(self) -> str:
        """The cgroup."""
        return self.cgroup
