# SPDX-License-Identifier: Apache-2.0
"""What Slurm and the kubelet say of GPUs that they gave away."""

import errno
import json
import os

import pytest

from gpufeed.model.desired import CollectorOptions
from gpufeed.model.ids import GpuUuid
from gpufeed.model.jobs import Allocation, Allocations, PodName
from gpufeed.sources.contract import Outcome, Reader
from gpufeed.sources.schedulers import SchedulersSource
from gpufeed.sources.slurm import MAX_JOBS
from host_bench import HostBench, failing, read, samples_of, statuses

SCOPE = "sys/fs/cgroup/system.slice/slurmstepd.scope"
V1 = "sys/fs/cgroup/devices/slurm/uid_1000"
UID = "9493223b-520e-4a97-a45f-359dcf967006"
ID = "25d0" * 16


def task(bench: HostBench, directory: str, pid: int, variables: dict[str, str] | None) -> None:
    bench.write(f"{directory}/cgroup.procs", f"{pid}\n")
    if variables is not None:
        bench.write(f"proc/{pid}/environ", "".join(f"{name}={value}\0" for name, value in variables.items()))


def slurm_of(job_id: str, gpus: str = "") -> dict[str, str]:
    return {"PATH": "/bin", "SLURM_JOB_ID": job_id} | ({"SLURM_JOB_GPUS": gpus} if gpus else {})


def opened(bench: HostBench) -> Reader:
    return bench.only_reader(SchedulersSource())


def outcome_of(reader: Reader) -> Outcome:
    return read(reader, "jobs.slow")


def slurm(bench: HostBench) -> Allocations | None:
    found = [one for one in samples_of(outcome_of(opened(bench)), Allocations) if one.scheduler == "slurm"]
    return found[0] if found else None


def given(job_id: str, *minors: int, sluid: str = "") -> Allocation:
    return Allocation(job_id=job_id, minors=minors, sluid=sluid)


def test_a_node_without_a_scheduler_says_nothing(bench: HostBench) -> None:
    outcome = outcome_of(opened(bench))
    assert (outcome.samples, outcome.failures, outcome.inputs) == ((), (), ())


def test_a_job_has_the_gpus_that_its_tasks_variables_name(bench: HostBench) -> None:
    task(bench, f"{SCOPE}/job_7/step_0/user/task_0", 10, slurm_of("7", "2,3"))
    task(bench, f"{SCOPE}/job_8/step_batch/user/task_0", 20, slurm_of("8"))
    bench.write(f"{SCOPE}/system/cgroup.procs", "5\n")
    assert slurm(bench) == Allocations(scheduler="slurm", jobs=(given("7", 2, 3), given("8")), is_complete=True)


def test_slurms_own_processes_are_not_asked(bench: HostBench) -> None:
    task(bench, f"{SCOPE}/job_7/step_0/slurm", 5, slurm_of("7", "0"))
    assert slurm(bench) == Allocations(scheduler="slurm", jobs=(), is_complete=False)


def test_several_slurmd_on_one_node_are_found(bench: HostBench) -> None:
    for node, job in (("n1", "7"), ("n2", "8")):
        scope = SCOPE.replace("slurmstepd", f"{node}_slurmstepd")
        task(bench, f"{scope}/job_{job}/step_0/user/task_0", int(job), slurm_of(job, job))
    found = slurm(bench)
    assert found is not None
    assert found.jobs == (given("7", 7), given("8", 8))


def test_a_job_without_a_number_in_its_path_gets_it_from_its_tasks(bench: HostBench) -> None:
    task(bench, f"{SCOPE}/sEKNKTV3WPV500/step_0/user/task_0", 10, slurm_of("4242", "1"))
    found = slurm(bench)
    assert found is not None
    assert found.jobs == (given("4242", 1, sluid="sEKNKTV3WPV500"),)


@pytest.mark.parametrize("variables", [slurm_of("9", "0"), {"PATH": "/bin"}, {"SLURM_JOB_ID": "x"}])
def test_variables_that_are_not_this_jobs_are_not_believed(bench: HostBench, variables: dict[str, str]) -> None:
    task(bench, f"{SCOPE}/job_7/step_0/user/task_0", 10, variables)
    assert slurm(bench) == Allocations(scheduler="slurm", jobs=(), is_complete=False)
    task(bench, f"{SCOPE}/job_7/step_1/user/task_0", 11, slurm_of("7", "5"))
    found = slurm(bench)
    assert found is not None
    assert (found.jobs, found.is_complete) == ((given("7", 5),), True)


def test_what_was_adopted_into_a_job_is_asked_last(bench: HostBench) -> None:
    task(bench, f"{SCOPE}/job_7/step_extern/user/task_special", 10, slurm_of("7", "0"))
    task(bench, f"{SCOPE}/job_7/step_interactive/user/task_0", 11, slurm_of("7", "1"))
    found = slurm(bench)
    assert found is not None
    assert found.jobs == (given("7", 1),)


def test_version_one_says_it_to_everybody(bench: HostBench) -> None:
    bench.write(f"{V1}/job_7/devices.list", "c 1:3 rwm\nc 195:255 rwm\nc 195:2 rwm\nc 195:3 rwm\n")
    assert slurm(bench) == Allocations(scheduler="slurm", jobs=(given("7", 2, 3),), is_complete=True)


def test_variables_stand_in_where_version_one_allows_every_device(bench: HostBench) -> None:
    bench.write(f"{V1}/job_7/devices.list", "a *:* rwm\n")
    task(bench, f"{V1}/job_7/step_0/task_0", 10, slurm_of("7", "4"))
    found = slurm(bench)
    assert found is not None
    assert found.jobs == (given("7", 4),)


def test_a_job_is_asked_once_and_forgotten_when_it_ends(bench: HostBench) -> None:
    task(bench, f"{SCOPE}/job_7/step_0/user/task_0", 10, slurm_of("7", "2"))
    reader = opened(bench)
    outcome_of(reader)
    task(bench, f"{SCOPE}/job_7/step_0/user/task_0", 10, slurm_of("7", "3"))
    assert samples_of(outcome_of(reader), Allocations)[0].jobs == (given("7", 2),)
    (bench.root / SCOPE / "job_7").rename(bench.root / "ended")
    assert samples_of(outcome_of(reader), Allocations) == [Allocations(scheduler="slurm", jobs=(), is_complete=True)]
    reader.close()


def test_variables_that_are_not_for_us_are_denied_with_the_fix(
    bench: HostBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    task(bench, f"{SCOPE}/job_7/step_0/user/task_0", 10, slurm_of("7", "2"))
    really = os.open

    def refuse(path: str, *arguments: int) -> int:
        if path.endswith("/environ"):
            raise PermissionError(errno.EACCES, "")
        return really(path, *arguments)

    reader = opened(bench)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        outcome = outcome_of(reader)
    assert outcome.samples == (Allocations(scheduler="slurm", jobs=(), is_complete=False),)
    status = statuses(outcome)["allocations", "slurm"]
    assert (status.state, "CAP_SYS_PTRACE" in status.fix, outcome.failures) == ("denied", True, ())
    assert statuses(outcome_of(reader))["allocations", "slurm"].state == "available"


def test_a_task_that_ends_while_we_look_is_no_failure(bench: HostBench) -> None:
    task(bench, f"{SCOPE}/job_7/step_0/user/task_0", 10, None)
    outcome = outcome_of(opened(bench))
    assert (statuses(outcome)["allocations", "slurm"].state, outcome.failures) == ("available", ())


def test_more_jobs_than_can_be_looked_at_are_cut_and_it_is_said(bench: HostBench) -> None:
    for number in range(MAX_JOBS + 2):
        task(bench, f"{SCOPE}/job_{number}/step_0/user/task_0", number + 1, slurm_of(str(number)))
    outcome = outcome_of(opened(bench))
    (found,) = samples_of(outcome, Allocations)
    assert (len(found.jobs), found.is_complete) == (MAX_JOBS, False)
    assert [(failure.device, failure.reason) for failure in outcome.failures] == [("slurm", "limit")]


def checkpoint(bench: HostBench, pods: dict[str, list[str]], resource: str = "nvidia.com/gpu") -> None:
    entries = [
        {"PodUID": uid, "ResourceName": resource, "DeviceIDs": {"0": gpus}, "AllocResp": ""}
        for uid, gpus in pods.items()
    ]
    data = {"Data": {"PodDeviceEntries": entries, "RegisteredDevices": {resource: []}}, "Checksum": 1}
    bench.write("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", json.dumps(data))


def names(bench: HostBench) -> None:
    bench.write(f"var/log/pods/research_training-0_{UID}/main/0.log", "")
    bench.write("var/log/pods/kube-system_dns_11111111-520e-4a97-a45f-359dcf967006/x/0.log", "")
    bench.write(f"var/log/containers/training-0_research_main-{ID}.log", "")
    bench.write(f"var/log/containers/training-1_research_main-{'0' * 64}.log", "")


def test_the_kubelet_says_which_pod_has_which_gpu_and_what_it_is_called(bench: HostBench) -> None:
    checkpoint(bench, {UID: ["GPU-1", "GPU-2"]})
    names(bench)
    outcome = outcome_of(opened(bench))
    gpus = (GpuUuid("GPU-1"), GpuUuid("GPU-2"))
    assert outcome.samples == (
        Allocations(scheduler="kubernetes", jobs=(Allocation(job_id=UID, uuids=gpus),), is_complete=True),
        PodName(uid=UID, namespace="research", pod="training-0", containers={ID: "main"}),
    )
    assert statuses(outcome)["allocations", "kubernetes"].state == "available"


def test_a_pod_that_only_its_process_tells_of_is_named_too(bench: HostBench) -> None:
    names(bench)
    bench.board.gpu_pods = frozenset({UID})
    (pod,) = outcome_of(opened(bench)).samples
    assert isinstance(pod, PodName)
    assert (pod.namespace, pod.pod) == ("research", "training-0")


def test_pods_without_gpus_are_not_named(bench: HostBench) -> None:
    names(bench)
    assert outcome_of(opened(bench)).samples == ()


def test_a_kubelet_that_gives_no_gpus_away_is_no_scheduler_of_them(bench: HostBench) -> None:
    checkpoint(bench, {UID: ["x"]}, "amd.com/gpu")
    assert outcome_of(opened(bench)).samples == ()


def test_folders_that_cannot_be_listed_leave_pods_unnamed(bench: HostBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.board.gpu_pods = frozenset({UID})
    reader = opened(bench)
    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", failing(os.listdir, PermissionError(errno.EACCES, "")))
        outcome = outcome_of(reader)
    assert outcome.samples == ()
    assert statuses(outcome)["pod_names", "var/log/pods"].state == "denied"


def test_a_checkpoint_that_is_not_for_us_is_denied_with_the_fix(
    bench: HostBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint(bench, {})
    reader = opened(bench)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing(os.open, PermissionError(errno.EACCES, "")))
        outcome = outcome_of(reader)
    status = statuses(outcome)["allocations", "kubernetes"]
    assert (status.state, "CAP_DAC_READ_SEARCH" in status.fix, outcome.failures) == ("denied", True, ())


def test_a_checkpoint_that_makes_no_sense_is_a_failure(bench: HostBench) -> None:
    bench.write("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "{")
    outcome = outcome_of(opened(bench))
    assert [failure.reason for failure in outcome.failures] == ["parse"]
    assert statuses(outcome)["allocations", "kubernetes"].state == "broken"


def test_a_collector_switched_off_has_no_lane(bench: HostBench) -> None:
    bench.options["jobs"] = CollectorOptions(enabled=False)
    assert SchedulersSource().plan(bench.config) == ()
