# SPDX-License-Identifier: Apache-2.0
"""Jobs as their cgroups and open files show them: whose the processes are, what they wait for, what they read."""

from collections.abc import Mapping, Sequence
from typing import Final

from gpufeed.model.frame import AnySample
from gpufeed.model.jobs import Allocation, Allocations, JobFiles, JobOwner, JobUsage
from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.sensors.host import pressure
from gpufeed.simulate.sensors.scene import Scene, job_id
from gpufeed.simulate.sensors.storage import JOB_DISK, source_of
from gpufeed.simulate.sensors.tasks import held_cgroups

_NAMES: Final = ("io_waiting_s", "io_stalled_s", "cpu_waiting_s", "memory_waiting_s", "memory_stalled_s")
_SWITCHES_PER_S: Final = 250


class JobSensors:
    """All jobs of the node."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def owners(self, _age_ns: int) -> tuple[AnySample, ...]:
        """Whose the processes are that hold GPUs."""
        return tuple(
            JobOwner(
                cgroup=cgroup,
                pids=tuple(process.pid for gpu in gpus for process in self._scene.processes(gpu)),
                scheduler="slurm",
                job_id=job_id(gpus[0].job),
                step="0",
            )
            for cgroup, gpus in held_cgroups(self._scene).items()
        )

    def allocations(self, _age_ns: int) -> tuple[AnySample, ...]:
        """What the scheduler has given away."""
        given = []
        for job in self._scene.jobs():
            gpus = self._scene.ranks(job)
            if gpus:
                given.append(Allocation(job_id=job_id(job), uuids=tuple(self._scene.uuid(gpu) for gpu in gpus)))
        return (Allocations(scheduler="slurm", jobs=tuple(given), is_complete=True),)

    def pressure(self, _age_ns: int) -> tuple[AnySample, ...]:
        """Of each cgroup with GPUs."""
        found: list[AnySample] = []
        for cgroup, gpus in held_cgroups(self._scene).items():
            found.extend(pressure(cgroup, self._waited(gpus)))
        return tuple(found)

    def usage(self, _age_ns: int) -> tuple[AnySample, ...]:
        """Of each step."""
        ranks = [(job, self._scene.ranks(job)) for job in self._scene.jobs()]
        return tuple(self._usage(job, gpus) for job, gpus in ranks if gpus)

    def files(self, _age_ns: int) -> tuple[AnySample, ...]:
        """What the processes of each cgroup have open."""
        found = []
        for cgroup, gpus in held_cgroups(self._scene).items():
            kinds = {kind for gpu in gpus for kind, _ in gpu.site.meter.transfers}
            mounts = (
                tuple(("nfs4", source_of(job)) for job in sorted({gpu.job for gpu in gpus})) if "nfs" in kinds else ()
            )
            found.append(JobFiles(cgroup=cgroup, mounts=mounts, disks=(JOB_DISK,) if "disk" in kinds else ()))
        return tuple(found)

    def _usage(self, job: int, gpus: Sequence[JudgedGpu]) -> JobUsage:
        hosts = [self._scene.host(gpu) for gpu in gpus]
        cpu_s = sum(host["trainer_cpu_s"] + host["loader_cpu_s"] for host in hosts)
        waited = self._waited(gpus) if self._scene.sensing.inputs.pressure else {}
        kinds = ("nfs", "disk", "object")
        return JobUsage(
            scheduler="slurm",
            job_id=job_id(job),
            step="0",
            waiting_s={name: waited[f"{name}_waiting_s"] for name in ("cpu", "io", "memory")} if waited else {},
            stalled_s={name: waited[f"{name}_stalled_s"] for name in ("io", "memory")} if waited else {},
            cpu_s=int(cpu_s * 1e6) / 1e6,
            throttled_s=0.0,
            throttled_periods=0,
            read_call_bytes=int(sum(host.get(f"{kind}_read_bytes", 0.0) for host in hosts for kind in kinds)),
            block_read_bytes=int(sum(host.get("disk_read_bytes", 0.0) for host in hosts)),
            voluntary_switches=int(cpu_s * _SWITCHES_PER_S),
            involuntary_switches=int(sum(host["cpu_waiting_s"] for host in hosts) * _SWITCHES_PER_S),
        )

    def _waited(self, gpus: Sequence[JudgedGpu]) -> Mapping[str, float]:
        """Of one rank, or of all ranks of a job: some wait while any of them does."""
        if len(gpus) == 1:
            return self._scene.host(gpus[0])
        crowd = self._scene.node.crowds[gpus[0].job]
        crowd.settle(self._scene.node.age_ns)
        calm_s = max(self._scene.host(gpu)["cpu_waiting_s"] for gpu in gpus)
        waited = {name: float(getattr(crowd, name)) for name in _NAMES}
        return waited | {"cpu_waiting_s": max(calm_s, waited["cpu_waiting_s"])}
