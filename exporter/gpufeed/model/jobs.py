# SPDX-License-Identifier: Apache-2.0
"""Samples of jobs: whose the processes that hold GPUs are, what the schedulers say, and what the jobs have open."""

from collections.abc import Hashable

from msgspec import Struct

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

    @property
    def subject(self) -> str:
        """The cgroup."""
        return self.cgroup
