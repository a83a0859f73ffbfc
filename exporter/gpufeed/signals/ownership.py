# SPDX-License-Identifier: Apache-2.0
"""Whose the GPUs are: processes joined with the jobs they work for, and what schedulers and open files add to that.

A join by process number of what was read within the last seconds: gone with the process, and never kept.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gpufeed.model.fabric import IbDevice, IbPort
from gpufeed.model.gpu import GpuProcesses, PciGpus
from gpufeed.model.host import JobTasks
from gpufeed.model.ids import GpuKey, GpuUuid, StorageKey
from gpufeed.model.jobs import Allocations, JobFiles, JobOwner, JobUsage, PodName
from gpufeed.model.network import NetInterface
from gpufeed.model.sample import Sample
from gpufeed.model.state import GpuRecord, JobView, Ownership
from gpufeed.model.storage import StorageInfo
from gpufeed.signals.job_storage import targets_of
from gpufeed.signals.job_work import work_of
from gpufeed.signals.nearest import ports_near
from gpufeed.signals.samples import Samples, all_of

SCHEDULERS: Final = ("slurm", "kubernetes")
"""Those that give GPUs away. Others start processes too, but do not say what they gave."""

_OF_JOBS: Final[tuple[type[Sample], ...]] = (GpuProcesses, JobOwner, PodName, Allocations, JobFiles, StorageInfo)
_OF_WORK: Final[tuple[type[Sample], ...]] = (JobUsage, JobTasks, JobOwner, PodName, Allocations)
_OF_PORTS: Final[tuple[type[Sample], ...]] = (PciGpus, IbDevice, IbPort, NetInterface)

Slots = tuple[tuple[GpuUuid, int | None, str | None, int | None], ...]
"""Of each GPU: what names it to a scheduler, and where it is plugged in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """The result, and what it was made from: as long as that is the same, so is the result."""

    result: Ownership = field(default_factory=Ownership)
    of_jobs: tuple[object, ...] = ()
    of_ports: tuple[object, ...] = ()
    of_work: tuple[object, ...] = ()
    slots: Slots = ()


def fold(previous: Owned, samples: Samples, records: Mapping[GpuUuid, GpuRecord]) -> Owned:
    """Ownership as of these samples."""
    slots = tuple(_slot(record) for record in records.values())
    of_jobs = tuple(samples.get(kind) for kind in _OF_JOBS)
    of_ports = tuple(samples.get(kind) for kind in _OF_PORTS)
    of_work = tuple(samples.get(kind) for kind in _OF_WORK)
    result, is_moved = previous.result, slots != previous.slots
    if is_moved or not _are_same(of_ports, previous.of_ports):
        result = replace(result, ports=ports_near(samples, records))
    if is_moved or not _are_same(of_jobs, previous.of_jobs):
        owners = _owners(samples)
        result = replace(
            result,
            jobs=_jobs(owners, samples),
            storages=_storages(owners, samples),
            allocated=_allocated(owners, samples, slots),
        )
    if not _are_same(of_work, previous.of_work):
        result = replace(result, work=work_of(samples, _numbers(samples)))
    return Owned(result=result, of_jobs=of_jobs, of_ports=of_ports, of_work=of_work, slots=slots)


def _slot(record: GpuRecord) -> tuple[GpuUuid, int | None, str | None, int | None]:
    identity = record.identity
    if identity is None:
        return (record.uuid, None, None, None)
    minor = record.index if identity.minor is None else identity.minor
    return (record.uuid, minor, identity.pci_bus_id, identity.numa_node)


def _are_same(now: tuple[object, ...], before: tuple[object, ...]) -> bool:
    return len(now) == len(before) and all(one is other for one, other in zip(now, before, strict=True))


def _owners(samples: Samples) -> dict[GpuKey, tuple[JobOwner, ...]]:
    """Of each board or GPU instance. What looks after a job counts only where nothing else is there."""
    by_pid: dict[int, list[JobOwner]] = {}
    for owner in all_of(samples, JobOwner):
        for pid in owner.pids:
            by_pid.setdefault(pid, []).append(owner)
    found: dict[GpuKey, dict[Hashable, JobOwner]] = {}
    for held in all_of(samples, GpuProcesses):
        owners = found.setdefault(GpuKey(held.gpu.uuid, held.gpu.gi), {})
        for process in held.processes:
            owners.update({owner.subject: owner for owner in by_pid.get(process.pid, ())})
    split = {key.uuid for key in found if key.is_instance}
    return {
        key: tuple(owner for owner in owners.values() if not owner.is_scheduler_own) or tuple(owners.values())
        for key, owners in found.items()
        if owners and (key.is_instance or key.uuid not in split)
    }


def _jobs(owners: Mapping[GpuKey, tuple[JobOwner, ...]], samples: Samples) -> dict[GpuKey, JobView]:
    pods = {pod.uid: pod for pod in all_of(samples, PodName)}
    numbers = _numbers(samples)
    return {key: _common([_view(owner, pods, numbers) for owner in found]) for key, found in owners.items()}


def _numbers(samples: Samples) -> dict[str, str]:
    """Of jobs whose cgroups Slurm calls by another name."""
    return {job.sluid: job.job_id for given in all_of(samples, Allocations) for job in given.jobs if job.sluid}


def _view(owner: JobOwner, pods: Mapping[str, PodName], numbers: Mapping[str, str]) -> JobView:
    pod = pods.get(owner.pod_uid or "")
    container = owner.container
    if container is None and pod is not None:
        container = pod.containers.get(owner.container_id or "")
    return JobView(
        scheduler=owner.scheduler,
        job_id=numbers.get(owner.job_id, owner.job_id) if owner.scheduler == "slurm" else owner.job_id,
        step=owner.step,
        k8s_namespace=pod.namespace if pod is not None else "",
        k8s_pod=pod.pod if pod is not None else "",
        k8s_container=container or "",
        user=owner.user or "",
    )


def _common(views: list[JobView]) -> JobView:
    """What all of them say alike."""
    first = views[0]
    return JobView(
        scheduler=_alike(view.scheduler for view in views),
        job_id=_alike(view.job_id for view in views),
        step=_alike(view.step for view in views),
        k8s_namespace=_alike(view.k8s_namespace for view in views),
        k8s_pod=_alike(view.k8s_pod for view in views),
        k8s_container=_alike(view.k8s_container for view in views),
        user=_alike(view.user for view in views),
        is_shared=any((view.scheduler, view.job_id) != (first.scheduler, first.job_id) for view in views),
    )


def _alike(values: Iterable[str]) -> str:
    different = set(values)
    return different.pop() if len(different) == 1 else ""


def _storages(owners: Mapping[GpuKey, tuple[JobOwner, ...]], samples: Samples) -> dict[GpuKey, tuple[StorageKey, ...]]:
    """What the jobs' processes have open, among the targets that are known."""
    files = {found.cgroup: found for found in all_of(samples, JobFiles)}
    infos = all_of(samples, StorageInfo)
    read_by = {cgroup: frozenset(targets_of(found, infos)) for cgroup, found in files.items()}
    reads = {
        key: tuple(sorted({target for owner in found for target in read_by.get(owner.cgroup, ())}))
        for key, found in owners.items()
    }
    return {key: targets for key, targets in reads.items() if targets}


def _allocated(owners: Mapping[GpuKey, tuple[JobOwner, ...]], samples: Samples, slots: Slots) -> dict[GpuUuid, bool]:
    """Given to a job: a scheduler says so, or a process of its job is there. Not given: only where all is known."""
    tables = all_of(samples, Allocations)
    uuids = {uuid for table in tables for job in table.jobs for uuid in job.uuids}
    minors = {minor for table in tables for job in table.jobs for minor in job.minors}
    worked_on = {key.uuid for key, found in owners.items() if any(owner.scheduler in SCHEDULERS for owner in found)}
    known = {uuid for uuid, *_ in slots}
    is_complete = bool(tables) and all(table.is_complete for table in tables) and uuids <= known
    allocated: dict[GpuUuid, bool] = {}
    for uuid, minor, *_ in slots:
        if uuid in uuids or uuid in worked_on or minor in minors:
            allocated[uuid] = True
        elif is_complete:
            allocated[uuid] = False
    return allocated
