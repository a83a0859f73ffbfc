# SPDX-License-Identifier: Apache-2.0
"""Whose the GPUs are."""

from collections.abc import Iterator

from gpufeed.catalogue import jobs
from gpufeed.exposition import rows
from gpufeed.exposition.family import Family, Labels
from gpufeed.model.state import JobView, NodeState


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
