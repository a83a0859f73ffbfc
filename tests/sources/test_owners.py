# SPDX-License-Identifier: Apache-2.0
"""Whose the processes are that hold GPUs."""

import pytest

from gpufeed.model.desired import CollectorOptions
from gpufeed.model.ids import GpuUuid, LaneId
from gpufeed.model.jobs import JobOwner
from gpufeed.sources.contract import Outcome, Reader
from gpufeed.sources.owners import MAX_PROCESSES, OwnersSource
from gpufeed.units import NS_PER_S
from host_bench import HostBench, read, samples_of, statuses

UID = "9493223b-520e-4a97-a45f-359dcf967006"
ID = "25d0" * 16
TASK = "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0"
POD = f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{ID}.scope"
PODS = f"/var/lib/kubelet/pods/{UID}"
MOUNTS = (
    f"1357 1350 253:0 {PODS}/etc-hosts /etc/hosts rw - ext4 /dev/x rw\n"
    f"1358 1350 253:0 {PODS}/containers/main/401d /dev/termination-log rw - ext4 /dev/x rw\n"
)


def process(bench: HostBench, pid: int, cgroup: str, user: int = 1000) -> None:
    bench.write(f"proc/{pid}/cgroup", cgroup if ":" in cgroup else f"0::{cgroup}\n")
    bench.write(f"proc/{pid}/status", f"Name:\tpython\nUid:\t{user}\t{user}\t{user}\t{user}\n")


def hold(bench: HostBench, *pids: int, lane: str = "gpu0") -> None:
    bench.board.gpu_pids[LaneId(lane)] = (GpuUuid(f"GPU-{lane}"), pids)


def owners(reader: Reader) -> list[JobOwner]:
    return samples_of(read(reader, "jobs.owners"), JobOwner)


def test_processes_of_one_task_are_one_entry(bench: HostBench) -> None:
    for pid in (20, 10):
        process(bench, pid, TASK)
    hold(bench, 20, 10)
    hold(bench, 20, lane="gpu1")
    assert owners(bench.only_reader(OwnersSource())) == [
        JobOwner(cgroup=TASK, pids=(10, 20), scheduler="slurm", job_id="7", step="0")
    ]


def test_a_process_of_nobody_is_in_no_entry(bench: HostBench) -> None:
    process(bench, 10, "/user.slice/user-1000.slice/session-1.scope")
    hold(bench, 10)
    outcome = read(bench.only_reader(OwnersSource()), "jobs.owners")
    assert outcome.samples == ()
    assert statuses(outcome)["job_owners", ""].state == "available"


def test_a_process_that_slurm_runs_beside_a_job_is_marked(bench: HostBench) -> None:
    process(bench, 10, "/system.slice/slurmstepd.scope/job_7/step_0/slurm")
    hold(bench, 10)
    (owner,) = owners(bench.only_reader(OwnersSource()))
    assert (owner.job_id, owner.is_scheduler_own) == ("7", True)


def test_a_container_is_named_by_its_mounts_which_are_read_once(bench: HostBench) -> None:
    process(bench, 10, POD)
    bench.write("proc/10/mountinfo", MOUNTS)
    hold(bench, 10)
    reader = bench.only_reader(OwnersSource())
    expected = JobOwner(
        cgroup=POD, pids=(10,), scheduler="kubernetes", job_id=UID, pod_uid=UID, container_id=ID, container="main"
    )
    assert owners(reader) == [expected]
    assert bench.board.gpu_pods == {UID}
    before = bench.desks[0].counts.file_reads
    assert owners(reader) == [expected]
    assert bench.desks[0].counts.file_reads == before + 1


@pytest.mark.parametrize("mounts", ["", MOUNTS.replace(UID, UID.replace("9", "8"))])
def test_mounts_that_tell_of_no_pod_or_another_name_no_container(bench: HostBench, mounts: str) -> None:
    process(bench, 10, POD)
    bench.write("proc/10/mountinfo", mounts)
    hold(bench, 10)
    (owner,) = owners(bench.only_reader(OwnersSource()))
    assert (owner.pod_uid, owner.container) == (UID, None)


@pytest.mark.parametrize("path", ["/", "/../../init.scope", f"/../cri-containerd-{ID}.scope"])
def test_mounts_say_the_pod_where_a_namespace_hides_the_cgroup(bench: HostBench, path: str) -> None:
    process(bench, 10, path)
    bench.write("proc/10/mountinfo", MOUNTS)
    hold(bench, 10)
    (owner,) = owners(bench.only_reader(OwnersSource()))
    assert (owner.scheduler, owner.job_id, owner.pod_uid, owner.container) == ("kubernetes", UID, UID, "main")


def test_a_hidden_cgroup_without_mounts_is_what_it_says(bench: HostBench) -> None:
    process(bench, 10, f"/../docker-{ID}.scope")
    process(bench, 20, "/")
    hold(bench, 10, 20)
    (owner,) = owners(bench.only_reader(OwnersSource()))
    assert (owner.scheduler, owner.job_id, owner.pids) == ("container", ID[:12], (10,))


def test_a_job_is_gone_with_its_process_and_the_number_may_be_anothers(bench: HostBench) -> None:
    process(bench, 10, TASK)
    hold(bench, 10)
    reader = bench.only_reader(OwnersSource())
    assert owners(reader)[0].job_id == "7"
    process(bench, 10, TASK.replace("job_7", "job_8"))
    assert owners(reader)[0].job_id == "8"
    hold(bench)
    assert owners(reader) == []
    reader.close()


def test_one_process_that_cannot_be_seen_leaves_the_others(bench: HostBench) -> None:
    process(bench, 10, TASK)
    bench.refuse("proc/20/cgroup")
    process(bench, 30, "not a cgroup:")
    hold(bench, 10, 20, 30, 40)
    outcome = read(bench.only_reader(OwnersSource()), "jobs.owners")
    assert len(outcome.samples) == 1
    assert statuses(outcome)["job_owners", ""].state == "available"


def test_processes_of_another_namespace_are_denied_with_the_fix(bench: HostBench) -> None:
    hold(bench, 4711)
    reader = bench.only_reader(OwnersSource())
    status = statuses(read(reader, "jobs.owners"))["job_owners", ""]
    assert (status.state, "hostPID" in status.fix) == ("denied", True)
    hold(bench)
    assert statuses(read(reader, "jobs.owners"))["job_owners", ""].state == "available"


def named(bench: HostBench, *, wanted: bool) -> str | None:
    process(bench, 10, TASK)
    hold(bench, 10)
    bench.job_users = wanted
    (owner,) = owners(bench.only_reader(OwnersSource()))
    return owner.user


def test_a_user_is_named_only_where_that_is_wanted(bench: HostBench) -> None:
    bench.write("etc/passwd", "root:x:0:0:::\nada:x:1000:1000:::\n")
    assert named(bench, wanted=False) is None
    assert named(bench, wanted=True) == "ada"


def test_a_user_that_this_node_does_not_know_has_a_number(bench: HostBench) -> None:
    assert named(bench, wanted=True) == "1000"


def test_more_processes_than_can_be_looked_at_are_cut_and_it_is_said(bench: HostBench) -> None:
    process(bench, 1, TASK)
    hold(bench, *range(1, MAX_PROCESSES + 6))
    outcome: Outcome = read(bench.only_reader(OwnersSource()), "jobs.owners")
    assert [(failure.device, failure.reason) for failure in outcome.failures] == [("processes", "limit")]
    assert len(outcome.samples) == 1


def test_jobs_are_looked_for_every_two_seconds(bench: HostBench) -> None:
    (plan,) = OwnersSource().plan(bench.config)
    assert [(group.name, group.period_ns) for group in plan.groups] == [("jobs.owners", 2 * NS_PER_S)]
    bench.options["jobs"] = CollectorOptions(enabled=False)
    assert OwnersSource().plan(bench.config) == ()
