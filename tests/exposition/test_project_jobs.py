# SPDX-License-Identifier: Apache-2.0
"""Whose the GPUs are, as families."""

from dataclasses import replace

from exposition import nodes
from exposition.reading import families_of, rows_of
from gpufeed.model.ids import GpuKey, GpuUuid, IbPortKey, StorageKey
from gpufeed.model.jobs import JobUsage
from gpufeed.model.state import JobView, JobWork, NearPort, NodeState, Ownership

BOARD = {"gpu": "0", "uuid": nodes.uuid(0)}
UNKNOWN = GpuUuid("GPU-of-another-node")


def owned(ownership: Ownership) -> NodeState:
    return replace(nodes.node(gpus=1), ownership=ownership)


def test_a_job_is_one_row_with_all_that_is_known_of_it() -> None:
    view = JobView(scheduler="kubernetes", job_id="uid", k8s_namespace="ml", k8s_pod="p-0", k8s_container="main")
    assert rows_of(owned(Ownership(jobs={nodes.key(0): view})), "gpufeed_gpu_job_info") == [
        (
            BOARD
            | {"scheduler": "kubernetes", "job_id": "uid", "step": "", "k8s_namespace": "ml", "k8s_pod": "p-0"}
            | {"k8s_container": "main", "shared": "false", "user": ""},
            1,
        )
    ]


def test_an_instance_is_named_without_its_compute_instances() -> None:
    jobs = {nodes.key(0, 3): JobView(is_shared=True), nodes.key(0, 1): JobView(job_id="7")}
    rows = rows_of(owned(Ownership(jobs=jobs)), "gpufeed_gpu_job_info")
    assert [(labels["gpu_instance"], labels["job_id"], labels["shared"]) for labels, _ in rows] == [
        ("1", "7", "false"),
        ("3", "", "true"),
    ]
    assert all("compute_instance" not in labels for labels, _ in rows)


def test_storage_and_ports_have_several_rows() -> None:
    targets = (StorageKey("block", "nvme0n1"), StorageKey("nfs", "/data"))
    near = NearPort(port=IbPortKey("mlx5_0", 2), netdev="eth0", path="remote")
    state = owned(Ownership(storages={nodes.key(0): targets}, ports={nodes.uuid(0): (near,)}))
    assert rows_of(state, "gpufeed_gpu_storage_info") == [
        (BOARD | {"kind": kind, "target": target}, 1) for kind, target in (("block", "nvme0n1"), ("nfs", "/data"))
    ]
    assert rows_of(state, "gpufeed_gpu_nic_info") == [
        (BOARD | {"device": "mlx5_0", "port": "2", "netdev": "eth0", "path": "remote"}, 1)
    ]


def test_only_gpus_of_which_it_is_known_are_allocated_or_not() -> None:
    state = replace(nodes.node(gpus=2), ownership=Ownership(allocated={nodes.uuid(1): False}))
    assert rows_of(state, "gpufeed_gpu_allocated") == [({"gpu": "1", "uuid": nodes.uuid(1)}, 0)]


def test_a_gpu_that_is_not_remembered_has_no_rows() -> None:
    state = owned(Ownership(jobs={GpuKey(UNKNOWN): JobView(job_id="7")}, allocated={UNKNOWN: True}))
    assert rows_of(state, "gpufeed_gpu_job_info") == []
    assert rows_of(state, "gpufeed_gpu_allocated") == []


JOB = {"scheduler": "slurm", "job_id": "4242", "step": "0", "k8s_namespace": "", "k8s_pod": ""}


def test_what_a_job_uses_stands_by_job() -> None:
    state = nodes.node()
    assert rows_of(state, "gpufeed_job_cpu_seconds_total") == [(JOB, 400.5)]
    assert rows_of(state, "gpufeed_job_cpu_throttled_seconds_total") == [(JOB, 0.25)]
    assert rows_of(state, "gpufeed_job_read_call_bytes_total") == [(JOB, 9_000)]
    assert (JOB | {"resource": "io"}, 1.5) in rows_of(state, "gpufeed_job_pressure_waiting_seconds_total")
    assert rows_of(state, "gpufeed_job_context_switches_total") == [
        (JOB | {"kind": "voluntary"}, 50),
        (JOB | {"kind": "involuntary"}, 5),
    ]
    assert rows_of(state, "gpufeed_job_threads") == [
        (JOB | {"state": "running"}, 9),
        (JOB | {"state": "blocked"}, 3),
        (JOB | {"state": "other"}, 68),
    ]
    assert rows_of(state, "gpufeed_job_busiest_thread_ratio") == [(JOB, 0.875)]


def test_what_is_not_known_of_a_job_has_no_row() -> None:
    bare = JobWork(job=JobView(scheduler="slurm", job_id="7"), usage=JobUsage(scheduler="slurm", job_id="7"))
    for work in (bare, replace(bare, usage=None)):
        state = owned(Ownership(work=(work,)))
        assert [family.definition.name for family in families_of(state) if "_job_" in family.definition.name] == []
