# SPDX-License-Identifier: Apache-2.0
"""From cgroups to jobs: every way of naming that is known, in the words of the tools that failed on it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.cgroup import parse_cgroup
from gpufeed.parse.cgroup_job import CgroupJob, job_of, pod_of_mounts
from gpufeed.parse.mountinfo import MountEntry

UID = "9493223b-520e-4a97-a45f-359dcf967006"
UID_ = UID.replace("-", "_")
STATIC = "2f7b1c0d9e8a4b6c8d1e2f3a4b5c6d7e"
ID, OTHER = "25d0" * 16, "9ec3" * 16
SLICES = "/kubepods.slice/kubepods-besteffort.slice"


def job(*paths: str) -> CgroupJob | None:
    lines = "".join(f"{number}:{'' if number == 0 else 'cpu'}:{path}\n" for number, path in enumerate(paths))
    return job_of(parse_cgroup(lines.encode()))


def slurm(job_id: str, step: str = "", *, own: bool = False) -> CgroupJob:
    return CgroupJob(scheduler="slurm", job_id=job_id, step=step, is_scheduler_own=own)


def pod(uid: str, container: str | None = ID) -> CgroupJob:
    return CgroupJob(scheduler="kubernetes", job_id=uid, pod_uid=uid, container_id=container)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        # version 1
        ("/slurm/uid_1000/job_48", slurm("48")),
        ("/slurm/uid_1000/job_48/step_batch/task_3", slurm("48", "batch")),
        ("/slurm/uid_1000/job_48/step_0+1/task_0", slurm("48", "0+1")),
        ("/slurm_node-7/uid_5/job_9/step_extern", slurm("9", "extern")),
        # version 2
        ("/system.slice/slurmstepd.scope/job_77/step_0/user/task_0", slurm("77", "0")),
        ("/system.slice/node001_slurmstepd.scope/job_850/step_batch/user/task_0", slurm("850", "batch")),
        ("/system.slice/slurmstepd.scope/job_77/step_extern/user/task_special", slurm("77", "extern")),
        ("/system.slice/slurmstepd.scope/job_77/step_interactive/user/task_0", slurm("77", "interactive")),
        ("/system.slice/slurmstepd.scope/job_77/step_0/slurm", slurm("77", "0", own=True)),
        # since 26.05
        ("/system.slice/slurmstepd.scope/sEKNKTV3WPV500/step_0/user/task_0", slurm("sEKNKTV3WPV500", "0")),
        ("/system.slice/n1_slurmstepd.scope/s0123456789ABC/step_2/slurm", slurm("s0123456789ABC", "2", own=True)),
        # seen from inside a cgroup namespace
        ("/../../job_123/step_0/user/task_0", slurm("123", "0")),
    ],
)
def test_slurm_jobs_are_found_in_every_version(path: str, expected: CgroupJob) -> None:
    assert job(path) == expected


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/init.scope",
        "/../../init.scope",
        "/user.slice/user-1000.slice/session-18.scope",
        "/system.slice/slurmstepd.scope/system",  # holds the scope open, and is no job
        "/system.slice/slurmd.service",
        "/system.slice/slurmstepd.scope/sIIIIIIIIIIIII/step_0",  # letters that a SLUID never has
        "/system.slice/slurmstepd.scope/job_x/step_0",
        "/home/slurmish/job_7",
        "/system.slice/podman.service/pod-of-peas",
    ],
)
def test_what_is_no_jobs_has_none(path: str) -> None:
    assert job(path) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"/kubepods/burstable/pod{UID}/{ID}", pod(UID)),
        (f"/kubepods/pod{UID}/{ID}", pod(UID)),  # guaranteed: without a class of its own
        (f"{SLICES}/kubepods-besteffort-pod{UID_}.slice/docker-{ID}.scope", pod(UID)),
        (f"/kubepods.slice/kubepods-pod{UID_}.slice/cri-containerd-{ID}.scope", pod(UID)),
        (f"{SLICES}/kubepods-besteffort-pod{UID_}.slice/crio-{ID}.scope/container", pod(UID)),
        (f"/system.slice/containerd.service/kubepods-besteffort-pod{UID_}.slice:cri-containerd:{ID}", pod(UID)),
        (f"/kubepods/besteffort/pod{UID}/{ID}/kube-proxy", pod(UID)),
        (f"/kubepods/besteffort/pod{UID}/{ID}/init.scope", pod(UID)),
        (f"/kubepods/besteffort/pod{STATIC}/{ID}", pod(STATIC)),
        (f"/custom.slice/kubepods/burstable/pod{UID}", pod(UID, None)),
        (f"/docker/{OTHER}/kubelet/kubepods/burstable/pod{UID}/{ID}", pod(UID)),
        (f"/kubepods/pod{STATIC}/{OTHER}/kubepods/besteffort/pod{UID}/{ID}", pod(UID)),  # the innermost
        (f"/../../kubepods-besteffort-pod{UID_}.slice/docker-{ID}.scope", pod(UID)),
        (f"/../pod{UID}/{ID}", pod(UID)),
    ],
)
def test_pods_are_found_under_every_driver_and_runtime(path: str, expected: CgroupJob) -> None:
    assert job(path) == expected


def test_the_monitor_of_a_container_is_the_runtimes_own() -> None:
    found = job(f"{SLICES}/kubepods-besteffort-pod{UID_}.slice/crio-conmon-{ID}.scope")
    assert found is not None
    assert (found.pod_uid, found.is_scheduler_own) == (UID, True)


@pytest.mark.parametrize(
    ("path", "container"),
    [
        (f"/docker/{ID}", ID),
        (f"/system.slice/docker-{ID}.scope", ID),
        (f"/docker/{OTHER}/docker/{ID}", ID),
        (f"/../docker-{ID}.scope", ID),
        (f"/machine.slice/libpod-{ID}.scope/container", ID),
    ],
)
def test_a_container_of_no_scheduler_is_known_by_the_short_form_of_its_id(path: str, container: str) -> None:
    assert job(path) == CgroupJob(scheduler="container", job_id=container[:12], container_id=container)


@pytest.mark.parametrize(
    ("path", "scheduler", "job_id"),
    [
        ("/pbs_jobs.service/jobid/123.server", "pbs", "123.server"),
        ("/pbspro.service/jobid/45[7].head", "pbs", "45[7].head"),
        ("/torque/513099.master/0", "torque", "513099.master"),
        ("/lsf/prod/job.123.4711.1700000000", "lsf", "123"),
        ("/lsf/prod/job.9[2].1", "lsf", "9[2]"),
        ("/htcondor/condor_var_lib_condor_execute_slot1_1@host", "htcondor", "slot1_1@host"),
        ("/system.slice/garden.service/garden/70eb4ce5-a065", "container", "70eb4ce5-a065"),
        ("/lxc.payload.web/init.scope", "container", "web"),
    ],
)
def test_other_schedulers_are_known_by_their_names(path: str, scheduler: str, job_id: str) -> None:
    found = job(path)
    assert found is not None
    assert (found.scheduler, found.job_id) == (scheduler, job_id)


def test_the_schedulers_line_counts_wherever_it_stands() -> None:
    session = "/user.slice/user-118.slice/session-18.scope"
    assert job("/", session, "/slurm/uid_1/job_5", "/slurm/uid_1/job_5/step_1", session) == slurm("5", "1")


def test_slurm_inside_a_pod_is_both() -> None:
    found = job(f"/kubepods/pod{UID}/{ID}/system.slice/slurmstepd.scope/job_3/step_0/user/task_0")
    assert found == CgroupJob(scheduler="slurm", job_id="3", step="0", pod_uid=UID, container_id=ID)


@pytest.mark.parametrize(
    ("path", "top"),
    [
        ("/slurm/uid_1000/job_48", ""),
        ("/slurm/uid_1000/job_48/step_0", "/task_1"),
        ("/system.slice/slurmstepd.scope/job_77/step_0", "/user/task_0"),
        ("/system.slice/slurmstepd.scope/job_77/step_0", "/slurm"),
        (f"/kubepods/burstable/pod{UID}", f"/{ID}/kube-proxy"),
        (f"/kubepods.slice/kubepods-pod{UID_}.slice", f"/cri-containerd-{ID}.scope/container"),
        (f"/system.slice/containerd.service/kubepods-besteffort-pod{UID_}.slice:cri-containerd:{ID}", "/init.scope"),
        (f"/docker/{OTHER}/docker/{ID}", "/init.scope"),
        (f"/system.slice/docker-{ID}.scope", ""),
        ("/lxc.payload.web", "/init.scope"),
        ("/torque/513099.master", "/0"),
    ],
)
def test_the_cgroup_of_the_whole_step_or_pod_is_known(path: str, top: str) -> None:
    found = job(path + top)
    assert found is not None
    assert found.top == path


def mount(root: str, mountpoint: str) -> MountEntry:
    return MountEntry(device="253:0", root=root, mountpoint=mountpoint, fstype="ext4", source="/dev/x")


def test_mounts_tell_pod_and_container_where_the_cgroup_is_hidden() -> None:
    pods = f"/var/lib/kubelet/pods/{UID}"
    hosts, log = mount(f"{pods}/etc-hosts", "/etc/hosts"), mount(f"{pods}/containers/main/4f", "/dev/termination-log")
    assert pod_of_mounts([hosts, log]) == (UID, "main")
    assert pod_of_mounts([log, hosts]) == (UID, "main")
    assert pod_of_mounts([hosts]) == (UID, None)


def test_mounts_of_the_node_itself_are_no_pods() -> None:
    volume = f"/var/lib/kubelet/pods/{UID}/volumes/x"
    assert pod_of_mounts([mount("/", "/"), mount(volume, volume), mount("/etc/hosts", "/etc/hosts")]) is None


@given(
    st.integers(0, 2**63),
    st.sampled_from(["0", "batch", "extern", "interactive", "4294967294", "1+2"]),
    st.from_regex(r"([a-z][a-z0-9-]{0,10}_)?", fullmatch=True),
)
def test_a_slurm_job_survives_its_path(number: int, step: str, node: str) -> None:
    found = job(f"/system.slice/{node}slurmstepd.scope/job_{number}/step_{step}/user/task_0")
    assert found == slurm(str(number), step)


@given(st.uuids(), st.sampled_from(["", "-burstable", "-besteffort"]), st.sampled_from(["docker", "crio"]))
def test_a_pod_survives_its_path(uid: object, quality: str, runtime: str) -> None:
    spelled = str(uid).replace("-", "_")
    path = f"/kubepods.slice/kubepods{quality}.slice/kubepods{quality}-pod{spelled}.slice/{runtime}-{ID}.scope"
    assert job(path) == pod(str(uid))


@given(st.binary(max_size=120))
def test_any_bytes_give_a_job_or_none(data: bytes) -> None:
    for prefix in (b"0::/", b"0::/slurm/uid_1/", b"0::/kubepods/pod", b"0::/docker/"):
        try:
            found = job_of(parse_cgroup(prefix + data))
        except ParseError:
            continue
        assert found is None or (found.scheduler and found.job_id)
