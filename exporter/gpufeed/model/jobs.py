# SPDX-License-Identifier: Apache-2.0
"""Samples of jobs: whose the processes that hold GPUs are, what the schedulers say, and what the jobs have open."""

from collections.abc import Hashable

from msgspec import Struct, field

from gpufeed.model.ids import GpuUuid
from gpufeed.model.sample import Sample


class JobOwner(Sample, frozen=True, kw_only=True, tag="job_owner"):
    """Processes that hold GPUs and work for one job. Source: /proc/PID/cgroup; in a namespace /proc/PID/mountinfo."""

    cgroup: str
    pids: tuple[int, ...]
    scheduler: str  # slurm, kubernetes, …; container: of no scheduler that we know
    job_id: str  # Kubernetes: the pod's UID
    step: str = ""
    pod_uid: str | None = None
    container_id: str | None = None
    container: str | None = None  # its name, where the process's mounts tell
    user: str | None = None  # only where the configuration wants it
    is_scheduler_own: bool = False  # they look after the job, and are no part of it

    @property
    def subject(self) -> Hashable:
        """Cgroup and job."""
        return (self.cgroup, self.scheduler, self.job_id, self.step, self.container)


class PodName(Sample, frozen=True, kw_only=True, tag="pod_name"):
    """What a pod is called. Source: names in /var/log/pods and /var/log/containers."""

    uid: str
    namespace: str
    pod: str
    containers: dict[str, str]  # names by id

    @property
    def subject(self) -> str:
        """The pod."""
        return self.uid


class Allocation(Struct, frozen=True, array_like=True):
    """GPUs given to one job, by whichever name the scheduler has for them."""

    job_id: str
    uuids: tuple[GpuUuid, ...] = ()
    minors: tuple[int, ...] = ()  # /dev/nvidiaN
    sluid: str = ""  # by which Slurm may call the job's cgroup


class Allocations(Sample, frozen=True, kw_only=True, tag="allocations"):
    """What one scheduler has given away on this node."""

    scheduler: str
    jobs: tuple[Allocation, ...]
    is_complete: bool  # what is not among them is free, as far as this scheduler knows

    @property
    def subject(self) -> str:
        """The scheduler."""
        return self.scheduler


class JobFiles(Sample, frozen=True, kw_only=True, tag="job_files"):
    """File systems and disks that the processes of a cgroup with GPUs have had files open on, since it was seen."""

    cgroup: str
    mounts: tuple[tuple[str, str], ...]  # type and source, as in a mount table
    disks: tuple[str, ...]  # block devices below local file systems
    devices: tuple[str, ...] = ()  # major:minor of each of `mounts`; empty where a record is older

    @property
    def subject(self) -> str:
        """The cgroup."""
        return self.cgroup


class JobUsage(Sample, frozen=True, kw_only=True, tag="job_usage"):
    """What a step or pod with GPUs has used and waited for, cumulative; never less for a process that ended.

    Sources: *.pressure and cpu.stat of its cgroups; /proc/PID/io and status of its processes.
    """

    scheduler: str
    job_id: str
    step: str = ""
    pod_uid: str | None = None
    waiting_s: dict[str, float] = field(default_factory=dict)  # some of its tasks waited, by resource: cpu, io, memory
    stalled_s: dict[str, float] = field(default_factory=dict)  # all of them did
    cpu_s: float | None = None  # processor time of all its tasks
    throttled_s: float | None = None  # its quota kept tasks from running; added up over cgroups that have one
    throttled_periods: int | None = None
    read_call_bytes: int | None = None  # what read calls returned: caches, pipes and network file systems too
    block_read_bytes: int | None = None  # what was fetched from block devices for it
    voluntary_switches: int | None = None  # of first threads: they waited for something
    involuntary_switches: int | None = None  # others wanted the processor

    @property
    def subject(self) -> Hashable:
        """The step or pod."""
        return (self.scheduler, self.job_id, self.step)


class JobReport(Sample, frozen=True, kw_only=True, tag="job_report"):
    """What one process of a job says of itself, since it began to report."""

    scheduler: str
    job_id: str
    step: str = ""
    pod_uid: str | None = None
    pid: int
    elapsed_s: float
    data_wait_s: float | None = None
    model_flops: float | None = None
    samples: float | None = None
    tokens: float | None = None
    dtype: str = "bf16"  # of the peak that the FLOPs are held against

    @property
    def subject(self) -> int:
        """The process."""
        return self.pid


class RefusedReports(Sample, frozen=True, kw_only=True, tag="refused_reports"):
    """Reports that were not believed, since the probe began."""

    by_reason: dict[str, int]

    @property
    def subject(self) -> str:
        """There is one."""
        return "reports"
