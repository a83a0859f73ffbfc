# SPDX-License-Identifier: Apache-2.0
"""What the jobs on the GPUs do."""

from collections.abc import Hashable, Mapping
from typing import Any

from gpufeed.model.host import JobTasks
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.jobs import JobOwner, JobUsage, PodName
from gpufeed.model.sample import Sample
from gpufeed.model.state import Held, JobView, JobWork
from gpufeed.signals.job_work import work_of

SLURM = JobOwner(cgroup="/a", pids=(10,), scheduler="slurm", job_id="7", step="0")
POD = JobOwner(cgroup="/pod", pids=(20,), scheduler="kubernetes", job_id="uid", pod_uid="uid")


def holding(*samples: Sample) -> Mapping[type[Sample], Mapping[Hashable, Held[Any]]]:
    found: dict[type[Sample], dict[Hashable, Held[Any]]] = {}
    for sample in samples:
        held = Held(
            sample=sample, lane=LaneId("x"), group=GroupName("x.slow"), collector="jobs", read_at_ns=0, stale_at_ns=1
        )
        found.setdefault(type(sample), {})[sample.subject] = held
    return found


def tasks(
    cgroup: str, threads: int, running: int, blocked: int, busiest: tuple[float, float] | None = None
) -> JobTasks:
    return JobTasks(
        cgroup=cgroup,
        gpus=(),
        processes=1,
        threads=threads,
        running=running,
        blocked=blocked,
        cpu_s=0.0,
        busiest_thread_cpu_s=None if busiest is None else busiest[0],
        busiest_thread_wall_s=None if busiest is None else busiest[1],
    )


def test_threads_of_all_cgroups_of_a_step_are_one_sum_and_the_busiest_of_all_is_the_busiest() -> None:
    other = JobOwner(cgroup="/b", pids=(11,), scheduler="slurm", job_id="7", step="0")
    found = work_of(
        holding(
            SLURM, other, tasks("/a", 10, 2, 1, (0.5, 1.0)), tasks("/b", 20, 3, 0, (1.8, 2.0)), tasks("/x", 9, 9, 0)
        ),
        {},
    )
    job = JobView(scheduler="slurm", job_id="7", step="0")
    assert found == (JobWork(job=job, threads=30, running=5, blocked=1, busiest_thread_ratio=0.9),)


def test_a_busiest_thread_that_was_not_measured_is_absent() -> None:
    (found,) = work_of(holding(SLURM, tasks("/a", 10, 2, 1)), {})
    assert found.busiest_thread_ratio is None
    (found,) = work_of(holding(SLURM, tasks("/a", 10, 2, 1, (0.5, 0.0))), {})
    assert found.busiest_thread_ratio is None


def test_usage_and_threads_of_one_job_stand_together() -> None:
    usage = JobUsage(scheduler="kubernetes", job_id="uid", pod_uid="uid", cpu_s=5.0)
    name = PodName(uid="uid", namespace="ml", pod="p-0", containers={})
    (found,) = work_of(holding(POD, usage, name, tasks("/pod", 4, 1, 0)), {})
    assert found.job == JobView(scheduler="kubernetes", job_id="uid", k8s_namespace="ml", k8s_pod="p-0")
    assert (found.usage, found.threads) == (usage, 4)


def test_a_job_that_its_cgroup_calls_otherwise_has_its_number_and_only_one_entry() -> None:
    usages = (JobUsage(scheduler="slurm", job_id="sEKNKTV3WPV500"), JobUsage(scheduler="slurm", job_id="4242"))
    (found,) = work_of(holding(*usages), {"sEKNKTV3WPV500": "4242"})
    assert found.job == JobView(scheduler="slurm", job_id="4242")


def test_threads_of_what_looks_after_a_job_are_not_the_jobs() -> None:
    own = JobOwner(cgroup="/a", pids=(10,), scheduler="slurm", job_id="7", is_scheduler_own=True)
    assert work_of(holding(own, tasks("/a", 4, 1, 0)), {}) == ()
