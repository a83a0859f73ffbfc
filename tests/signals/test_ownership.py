# SPDX-License-Identifier: Apache-2.0
"""Whose the GPUs are: the join of processes, jobs, schedulers and open files."""

from collections.abc import Hashable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.model.gpu import GpuIdentity, GpuProcess, GpuProcesses
from gpufeed.model.ids import GpuKey, GpuUuid, GroupName, LaneId, StorageKey
from gpufeed.model.jobs import Allocation, Allocations, JobFiles, JobOwner, PodName
from gpufeed.model.sample import Sample
from gpufeed.model.state import GpuRecord, Held, JobView, Ownership
from gpufeed.model.storage import StorageInfo
from gpufeed.signals.ownership import Owned, fold

A, B = GpuUuid("GPU-a"), GpuUuid("GPU-b")
SLURM = JobOwner(cgroup="/job_7/step_0", pids=(10,), scheduler="slurm", job_id="7", step="0")
POD = JobOwner(cgroup="/pod", pids=(20,), scheduler="kubernetes", job_id="uid", pod_uid="uid", container_id="c0ffee")
NAME = PodName(uid="uid", namespace="research", pod="training-0", containers={"c0ffee": "main"})


def holding(*samples: Sample) -> Mapping[type[Sample], Mapping[Hashable, Held[Any]]]:
    found: dict[type[Sample], dict[Hashable, Held[Any]]] = {}
    for sample in samples:
        held = Held(
            sample=sample, lane=LaneId("x"), group=GroupName("x.slow"), collector="jobs", read_at_ns=0, stale_at_ns=1
        )
        found.setdefault(type(sample), {})[sample.subject] = held
    return found


def record(uuid: GpuUuid, index: int, minor: int | None = None, *, is_known: bool = True) -> GpuRecord:
    identity = GpuIdentity(gpu=GpuKey(uuid), index=index, minor=minor) if is_known else None
    return GpuRecord(uuid=uuid, index=index, lane=LaneId(f"gpu{index}"), identity=identity, condition="ok")


RECORDS = {A: record(A, 0), B: record(B, 1)}


def held_by(uuid: GpuUuid, *pids: int, gi: int | None = None, ci: int | None = None) -> GpuProcesses:
    return GpuProcesses(gpu=GpuKey(uuid, gi, ci), processes=tuple(GpuProcess(pid=pid) for pid in pids))


def owned(*samples: Sample, records: Mapping[GpuUuid, GpuRecord] = RECORDS) -> Ownership:
    return fold(Owned(), holding(*samples), records).result


def test_a_gpu_is_its_processs_jobs() -> None:
    found = owned(held_by(A, 10), SLURM)
    assert found.jobs == {GpuKey(A): JobView(scheduler="slurm", job_id="7", step="0")}


def test_a_free_gpu_and_one_whose_process_is_nobodys_have_no_job() -> None:
    assert owned(held_by(A), held_by(B, 99), SLURM).jobs == {}


def test_a_job_is_gone_with_its_process() -> None:
    before = fold(Owned(), holding(held_by(A, 10), SLURM), RECORDS)
    assert GpuKey(A) in before.result.jobs
    assert fold(before, holding(held_by(A), SLURM), RECORDS).result.jobs == {}
    assert fold(before, holding(SLURM), RECORDS).result.jobs == {}


def test_a_pod_is_named_by_what_its_logs_are_called() -> None:
    expected = JobView(
        scheduler="kubernetes", job_id="uid", k8s_namespace="research", k8s_pod="training-0", k8s_container="main"
    )
    assert owned(held_by(A, 20), POD, NAME).jobs == {GpuKey(A): expected}
    unnamed = owned(held_by(A, 20), POD, replace_name(containers={})).jobs[GpuKey(A)]
    assert (unnamed.k8s_pod, unnamed.k8s_container) == ("training-0", "")
    own = JobOwner(cgroup="/pod", pids=(20,), scheduler="kubernetes", job_id="uid", pod_uid="uid", container="other")
    assert owned(held_by(A, 20), own, NAME).jobs[GpuKey(A)].k8s_container == "other"


def replace_name(containers: dict[str, str]) -> PodName:
    return PodName(uid="uid", namespace="research", pod="training-0", containers=containers)


def test_a_job_known_by_another_name_has_the_number_that_slurm_tells() -> None:
    owner = JobOwner(cgroup="/s", pids=(10,), scheduler="slurm", job_id="sEKNKTV3WPV500")
    allocations = Allocations(
        scheduler="slurm", jobs=(Allocation(job_id="4242", sluid="sEKNKTV3WPV500"),), is_complete=True
    )
    assert owned(held_by(A, 10), owner, allocations).jobs[GpuKey(A)].job_id == "4242"
    assert owned(held_by(A, 10), owner).jobs[GpuKey(A)].job_id == "sEKNKTV3WPV500"


def test_a_gpu_of_two_jobs_is_one_row_that_says_shared() -> None:
    other = JobOwner(cgroup="/job_8", pids=(11,), scheduler="slurm", job_id="8", step="0", user="ada")
    assert owned(held_by(A, 10, 11), SLURM, other).jobs == {
        GpuKey(A): JobView(scheduler="slurm", job_id="", step="0", is_shared=True)
    }
    assert owned(held_by(A, 10, 20), SLURM, POD).jobs == {GpuKey(A): JobView(is_shared=True)}


def test_two_steps_of_one_job_do_not_share_with_another_job() -> None:
    other = JobOwner(cgroup="/job_7/step_1", pids=(11,), scheduler="slurm", job_id="7", step="1")
    assert owned(held_by(A, 10, 11), SLURM, other).jobs == {GpuKey(A): JobView(scheduler="slurm", job_id="7")}


def test_what_looks_after_a_job_counts_only_where_nothing_else_is_there() -> None:
    own = JobOwner(cgroup="/job_9", pids=(5,), scheduler="slurm", job_id="9", is_scheduler_own=True)
    assert owned(held_by(A, 5, 10), own, SLURM).jobs[GpuKey(A)].job_id == "7"
    assert owned(held_by(A, 5), own).jobs[GpuKey(A)].job_id == "9"


def test_instances_have_jobs_of_their_own_and_the_board_then_none() -> None:
    found = owned(held_by(A, 10, 20), held_by(A, 10, gi=1, ci=0), held_by(A, 20, gi=2, ci=0), SLURM, POD)
    assert {key: view.scheduler for key, view in found.jobs.items()} == {
        GpuKey(A, 1): "slurm",
        GpuKey(A, 2): "kubernetes",
    }


def test_compute_instances_of_one_instance_are_one_row() -> None:
    found = owned(held_by(A, 10, gi=1, ci=0), held_by(A, 20, gi=1, ci=1), SLURM, POD)
    assert found.jobs == {GpuKey(A, 1): JobView(is_shared=True)}


NFS = StorageInfo(storage=StorageKey("nfs", "/data"), source="nas:/data", fstype="nfs4")
OLD = StorageInfo(storage=StorageKey("nfs", "/old"), source="nas:/data", fstype="nfs")
LUSTRE = StorageInfo(storage=StorageKey("lustre", "scratch"), source="10.0.0.1@tcp:/scratch", fstype="lustre")
GPFS = StorageInfo(storage=StorageKey("gpfs", "fs1"), source="cluster.example", fstype="gpfs")
DISK = StorageInfo(storage=StorageKey("block", "nvme0n1"))


def test_a_job_reads_the_targets_on_which_it_has_files_open() -> None:
    files = JobFiles(
        cgroup=SLURM.cgroup,
        mounts=(("gpfs", "/dev/fs1"), ("lustre", "10.9.9.9@o2ib:/scratch"), ("nfs4", "nas:/data")),
        disks=("nvme0n1", "nvme9n9"),
    )
    found = owned(held_by(A, 10), held_by(B, 20), SLURM, POD, files, NFS, OLD, LUSTRE, GPFS, DISK)
    assert found.storages == {
        GpuKey(A): (DISK.storage, GPFS.storage, LUSTRE.storage, NFS.storage),
    }


def test_a_disk_that_is_not_open_is_not_read() -> None:
    assert owned(held_by(A, 10), SLURM, JobFiles(cgroup=SLURM.cgroup, mounts=(), disks=()), DISK).storages == {}


def table(*jobs: Allocation, scheduler: str = "slurm", is_complete: bool = True) -> Allocations:
    return Allocations(scheduler=scheduler, jobs=jobs, is_complete=is_complete)


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_gpu_that_was_given_away_is_allocated_without_a_process(is_complete: bool) -> None:
    given = table(Allocation(job_id="7", minors=(0,)), is_complete=is_complete)
    assert owned(given).allocated == ({A: True, B: False} if is_complete else {A: True})


def test_a_gpu_is_known_to_slurm_by_its_device_file() -> None:
    records = {A: record(A, 0, minor=5), B: record(B, 1, minor=0)}
    assert owned(table(Allocation(job_id="7", minors=(0,))), records=records).allocated == {A: False, B: True}
    unknown = {A: record(A, 0, is_known=False)}
    assert owned(table(Allocation(job_id="7", minors=(0,))), records=unknown).allocated == {A: False}


def test_a_gpu_is_known_to_the_kubelet_by_its_uuid() -> None:
    given = table(Allocation(job_id="uid", uuids=(B,)), scheduler="kubernetes")
    assert owned(given).allocated == {A: False, B: True}
    instance = table(Allocation(job_id="uid", uuids=(GpuUuid("MIG-1"),)), scheduler="kubernetes")
    assert owned(instance).allocated == {}  # of which board nobody says


def test_the_process_of_a_job_shows_that_its_gpu_was_given_to_it() -> None:
    assert owned(held_by(A, 10), SLURM).allocated == {A: True}
    container = JobOwner(cgroup="/docker", pids=(10,), scheduler="container", job_id="c0ffee")
    assert owned(held_by(A, 10), container).allocated == {}


def test_one_scheduler_that_does_not_say_all_leaves_the_rest_unknown() -> None:
    both = (table(), table(scheduler="kubernetes", is_complete=False))
    assert owned(*both).allocated == {}
    assert owned(table(), table(scheduler="kubernetes")).allocated == {A: False, B: False}


def test_what_was_made_of_the_same_samples_is_kept() -> None:
    samples = holding(held_by(A, 10), SLURM)
    first = fold(Owned(), samples, RECORDS)
    assert fold(first, samples, dict(RECORDS)).result is first.result
    assert fold(first, samples, {A: record(A, 0), B: record(B, 1, minor=7)}).result is not first.result


PIDS = st.integers(1, 6)


@given(
    st.lists(st.tuples(st.sampled_from([A, B]), st.sampled_from([None, 1, 2]), st.lists(PIDS, max_size=4)), max_size=5),
    st.lists(st.tuples(st.lists(PIDS, max_size=3), st.sampled_from(["slurm", "kubernetes"]), PIDS), max_size=5),
)
def test_there_is_one_row_a_board_or_instance_and_never_both(
    processes: list[tuple[GpuUuid, int | None, list[int]]], jobs: list[tuple[list[int], str, int]]
) -> None:
    samples: list[Sample] = [held_by(uuid, *pids, gi=gi) for uuid, gi, pids in processes]
    samples += [
        JobOwner(cgroup=f"/{number}/{scheduler}", pids=tuple(pids), scheduler=scheduler, job_id=str(number))
        for pids, scheduler, number in jobs
    ]
    found = owned(*samples)
    split = {key.uuid for key in found.jobs if key.gi is not None}
    assert all(key.ci is None for key in found.jobs)
    assert not split & {key.uuid for key in found.jobs if key.gi is None}
    for view in found.jobs.values():
        assert view.is_shared or (view.scheduler and view.job_id)
