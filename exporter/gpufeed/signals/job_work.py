# SPDX-License-Identifier: Apache-2.0
"""What the jobs on the GPUs do: threads of their processes, and what they have used, by step or pod."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gpufeed.model.host import JobTasks
from gpufeed.model.jobs import JobOwner, JobUsage, PodName
from gpufeed.model.state import JobView, JobWork
from gpufeed.signals.samples import Samples, all_of

JobName = tuple[str, str, str]
"""Scheduler, job, step."""


@dataclass(slots=True)
class _Threads:
    """Of all cgroups of one step."""

    threads: int = 0
    running: int = 0
    blocked: int = 0
    busiest: list[float] = field(default_factory=list)


def work_of(samples: Samples, numbers: Mapping[str, str]) -> tuple[JobWork, ...]:
    """Of every step or pod with GPUs, ordered. `numbers`: of jobs that their cgroup calls otherwise."""
    pods = {pod.uid: pod for pod in all_of(samples, PodName)}
    owners = {owner.cgroup: owner for owner in all_of(samples, JobOwner) if not owner.is_scheduler_own}
    work: dict[JobName, JobWork] = {}
    for usage in all_of(samples, JobUsage):
        name = (usage.scheduler, usage.job_id, usage.step)
        work[name] = JobWork(job=_view(name, usage.pod_uid, pods, numbers), usage=usage)
    for name, (uid, seen) in _threads(samples, owners).items():
        known = work.get(name) or JobWork(job=_view(name, uid, pods, numbers))
        work[name] = replace(
            known,
            threads=seen.threads,
            running=seen.running,
            blocked=seen.blocked,
            busiest_thread_ratio=max(seen.busiest, default=None),
        )
    return tuple({found.job: found for _, found in sorted(work.items())}.values())  # no two of one name


def _view(name: JobName, uid: str | None, pods: Mapping[str, PodName], numbers: Mapping[str, str]) -> JobView:
    scheduler, job_id, step = name
    pod = pods.get(uid or "")
    return JobView(
        scheduler=scheduler,
        job_id=numbers.get(job_id, job_id) if scheduler == "slurm" else job_id,
        step=step,
        k8s_namespace=pod.namespace if pod is not None else "",
        k8s_pod=pod.pod if pod is not None else "",
    )


def _threads(samples: Samples, owners: Mapping[str, JobOwner]) -> dict[JobName, tuple[str | None, _Threads]]:
    found: dict[JobName, tuple[str | None, _Threads]] = {}
    for tasks in all_of(samples, JobTasks):
        owner = owners.get(tasks.cgroup)
        if owner is None:
            continue
        _, seen = found.setdefault((owner.scheduler, owner.job_id, owner.step), (owner.pod_uid, _Threads()))
        seen.threads += tasks.threads
        seen.running += tasks.running
        seen.blocked += tasks.blocked
        if tasks.busiest_thread_cpu_s is not None and tasks.busiest_thread_wall_s:
            seen.busiest.append(min(1.0, tasks.busiest_thread_cpu_s / tasks.busiest_thread_wall_s))
    return found
