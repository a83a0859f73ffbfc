# SPDX-License-Identifier: Apache-2.0
"""Whose the GPUs are, and what their jobs use."""

from collections.abc import Iterator

from gpufeed.catalogue import jobs
from gpufeed.exposition import rows
from gpufeed.exposition.family import Family, Labels
from gpufeed.exposition.rows import family
from gpufeed.model.jobs import JobUsage, RefusedReports
from gpufeed.model.state import JobView, JobWork, NodeState


def families(state: NodeState) -> Iterator[Family]:
    """Jobs, what they read, the ports beside them, and what is given away."""
    owned = state.ownership
    yield Family(
        jobs.GPU_JOB_INFO,
        [((*labels[:3], *_job(view)), 1) for labels, view in rows.slices(state, owned.jobs)],
    )
    yield Family(
        jobs.GPU_STORAGE_INFO,
        [
            ((*labels[:3], target.kind, target.target), 1)
            for labels, targets in rows.slices(state, owned.storages)
            for target in targets
        ],
    )
    records = rows.records(state)
    yield Family(
        jobs.GPU_NIC_INFO,
        [
            ((*labels, near.port.device, str(near.port.port), near.netdev, near.path), 1)
            for labels, gpu in records
            for near in owned.ports.get(gpu.uuid, ())
        ],
    )
    yield Family(
        jobs.GPU_ALLOCATED,
        [(labels, int(owned.allocated[gpu.uuid])) for labels, gpu in records if gpu.uuid in owned.allocated],
    )
    yield from _usage([(_name(work.job), work.usage) for work in owned.work if work.usage is not None])
    yield from _reports(state)
    yield from _threads([(_name(work.job), work) for work in owned.work])


def _reports(state: NodeState) -> Iterator[Family]:
    pods = {(view.scheduler, view.job_id): (view.k8s_namespace, view.k8s_pod) for view in state.ownership.jobs.values()}
    told = [
        ((key.scheduler, key.job_id, key.step, *pods.get((key.scheduler, key.job_id), ("", ""))), progress)
        for key, progress in state.progress.items()
    ]
    yield family(jobs.JOB_MODEL_FLOPS_TOTAL, told, lambda one: one.model_flops)
    yield family(jobs.JOB_MODEL_FLOPS_UTILIZATION_RATIO, told, lambda one: one.utilization_ratio)
    yield family(jobs.JOB_DATA_WAIT_SECONDS_TOTAL, told, lambda one: one.data_wait_s)
    yield Family(
        jobs.JOB_REPORTS_REFUSED_TOTAL,
        [
            ((reason,), count)
            for held in state.latest(RefusedReports).values()
            for reason, count in sorted(held.sample.by_reason.items())
        ],
    )


def _job(view: JobView) -> Labels:
    return (
        view.scheduler,
        view.job_id,
        view.step,
        view.k8s_namespace,
        view.k8s_pod,
        view.k8s_container,
        "true" if view.is_shared else "false",
        view.user,
    )


def _name(view: JobView) -> Labels:
    return (view.scheduler, view.job_id, view.step, view.k8s_namespace, view.k8s_pod)


def _usage(found: rows.Labelled[JobUsage]) -> Iterator[Family]:
    yield Family(
        jobs.JOB_PRESSURE_WAITING_SECONDS_TOTAL,
        [((*labels, resource), total) for labels, usage in found for resource, total in usage.waiting_s.items()],
    )
    yield Family(
        jobs.JOB_PRESSURE_STALLED_SECONDS_TOTAL,
        [((*labels, resource), total) for labels, usage in found for resource, total in usage.stalled_s.items()],
    )
    yield family(jobs.JOB_CPU_SECONDS_TOTAL, found, lambda usage: usage.cpu_s)
    yield family(jobs.JOB_CPU_THROTTLED_SECONDS_TOTAL, found, lambda usage: usage.throttled_s)
    yield family(jobs.JOB_CPU_THROTTLED_PERIODS_TOTAL, found, lambda usage: usage.throttled_periods)
    yield family(jobs.JOB_READ_CALL_BYTES_TOTAL, found, lambda usage: usage.read_call_bytes)
    yield family(jobs.JOB_BLOCK_READ_BYTES_TOTAL, found, lambda usage: usage.block_read_bytes)
    yield Family(
        jobs.JOB_CONTEXT_SWITCHES_TOTAL,
        [
            ((*labels, kind), count)
            for labels, usage in found
            for kind, count in (("voluntary", usage.voluntary_switches), ("involuntary", usage.involuntary_switches))
            if count is not None
        ],
    )


def _threads(found: rows.Labelled[JobWork]) -> Iterator[Family]:
    yield Family(
        jobs.JOB_THREADS,
        [
            ((*labels, state), count)
            for labels, work in found
            if work.threads is not None and work.running is not None and work.blocked is not None
            for state, count in (
                ("running", work.running),
                ("blocked", work.blocked),
                ("other", work.threads - work.running - work.blocked),
            )
        ],
    )
    yield family(jobs.JOB_BUSIEST_THREAD_RATIO, found, lambda work: work.busiest_thread_ratio)
