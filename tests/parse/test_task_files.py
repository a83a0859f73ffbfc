# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/stat, status and cgroup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.cgroup import CgroupPath, owning_cgroup, parse_cgroup, parse_cgroup_procs
from gpufeed.parse.task_stat import TaskStat, parse_task_stat
from gpufeed.parse.task_status import parse_cpus_allowed

POD = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c.slice/cri-containerd-" + "ab" * 32 + ".scope"


def stat_line(comm: bytes = b"python", state: bytes = b"S", utime: int = 0, stime: int = 0, start: int = 5) -> bytes:
    """A line as the kernel prints it, 52 fields."""
    return b"4711 (%s) %s 1 4711 4711 0 -1 4194560 9 8 7 6 %d %d 0 0 20 0 33 0 %d 1 2 18446744073709551615%s\n" % (
        comm,
        state,
        utime,
        stime,
        start,
        b" 0" * 27,
    )


def test_a_task_is_read_with_its_time_in_seconds() -> None:
    assert parse_task_stat(stat_line(state=b"D", utime=150, stime=50), 100) == TaskStat(
        id=4711, comm="python", state="D", parent=1, cpu_s=2.0, threads=33, start_ticks=5
    )


@pytest.mark.parametrize("comm", [b"a b", b"(sd-pam)", b"x) R 1 (y", b") D 9 8", b"", b"\xff\n", b"tmux: server"])
def test_a_name_may_hold_blanks_and_parentheses(comm: bytes) -> None:
    task = parse_task_stat(stat_line(comm=comm, utime=100), 100)
    assert (task.state, task.parent, task.cpu_s, task.threads) == ("S", 1, 1.0, 33)


@given(st.binary(max_size=16), st.sampled_from("RSDTtZXIWP"), st.integers(0, 2**60), st.integers(0, 2**60))
def test_a_task_survives_the_kernels_spelling(comm: bytes, state: str, utime: int, stime: int) -> None:
    task = parse_task_stat(stat_line(comm, state.encode(), utime, stime), 100)
    assert (task.state, task.cpu_s, task.start_ticks) == (state, (utime + stime) / 100, 5)


@pytest.mark.parametrize("data", [b"", b"1 (x) S 1", b"1 x S 1 2 3", b"\xff" * 80, stat_line(start=2**64)])
def test_what_is_no_task_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="stat"):
        parse_task_stat(data, 100)


@pytest.mark.parametrize(("mask", "cpus"), [(b"3", 2), (b"ff", 8), (b"ff,ffffffff", 40), (b"00000000,00000001", 1)])
def test_allowed_processors_are_counted(mask: bytes, cpus: int) -> None:
    assert parse_cpus_allowed(b"Name:\tpython\nCpus_allowed:\t" + mask + b"\nCpus_allowed_list:\t0-3\n") == cpus


@pytest.mark.parametrize("data", [b"", b"Cpus_allowed_list:\t0-3\n", b"Cpus_allowed:\tall\n"])
def test_a_status_without_the_mask_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="Cpus_allowed"):
        parse_cpus_allowed(data)


def test_version_two_has_one_path() -> None:
    data = b"0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0\n"
    (path,) = parse_cgroup(data)
    assert path == CgroupPath(path="/system.slice/slurmstepd.scope/job_77/step_0/user/task_0", hierarchy="")
    assert owning_cgroup((path,)) is path


def test_version_one_takes_the_schedulers_path_wherever_it_stands() -> None:
    data = b"""\
12:freezer:/slurm/uid_1000/job_48
11:hugetlb:/
9:cpu,cpuacct:/slurm/uid_1000/job_48/step_0
2:pids:/user.slice/user-118.slice/session-18.scope
1:name=systemd:/user.slice/user-118.slice/session-18.scope
"""
    owner = owning_cgroup(parse_cgroup(data))
    assert owner == CgroupPath(path="/slurm/uid_1000/job_48/step_0", hierarchy="cpu,cpuacct")


@pytest.mark.parametrize(
    "path",
    [
        "/slurm_node7/uid_5/job_9",
        "/system.slice/node7_slurmstepd.scope/job_9/step_batch/user/task_0",
        POD,
        "/kubepods/besteffort/pod74ba62da-1a3d-11e7-bb11-080027cb0e22/" + "0f" * 32,
        "/system.slice/containerd.service/kubepods-besteffort-pod1_2.slice:cri-containerd:" + "0f" * 32,
        "/../docker-" + "0f" * 32 + ".scope",
        "/docker/" + "0f" * 32,
        "/machine.slice/libpod-" + "0f" * 32 + ".scope/container",
        "/torque/513099.master",
    ],
)
def test_an_owner_is_preferred_to_root_and_session(path: str) -> None:
    data = f"5:pids:/\n4:cpu:{path}\n1:name=systemd:/user.slice/user-1.slice/session-2.scope\n0::/\n"
    assert owning_cgroup(parse_cgroup(data.encode())).path == path


def test_a_hybrid_process_without_an_owner_has_its_session() -> None:
    owner = owning_cgroup(parse_cgroup(b"4:memory:/\n1:name=systemd:/user.slice/user-1.slice/session-2.scope\n0::/\n"))
    assert owner == CgroupPath(path="/user.slice/user-1.slice/session-2.scope", hierarchy="systemd")


@pytest.mark.parametrize("data", [b"0::/\n", b"0::/init.scope\n", b"3:cpu:/\n1:name=systemd:/\n"])
def test_the_root_is_the_whole_node(data: bytes) -> None:
    assert owning_cgroup(parse_cgroup(data)).is_whole_node


def test_processes_of_a_cgroup_are_listed_without_those_of_other_namespaces() -> None:
    assert parse_cgroup_procs(b"12\n0\n7\n") == (12, 7)
    assert parse_cgroup_procs(b"") == ()
    with pytest.raises(ParseError, match=r"cgroup\.procs"):
        parse_cgroup_procs(b"12\nx\n")


@pytest.mark.parametrize("data", [b"", b"\n", b"0:/x\n", b"x::/\n", b"0::relative\n", b"0::/\nbroken\n"])
def test_what_is_no_cgroup_file_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="cgroup"):
        parse_cgroup(data)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_parse_error(data: bytes) -> None:
    for text in (data, b"1 (" + data, b"Cpus_allowed:" + data, b"0::/" + data):
        for parse in (lambda data: parse_task_stat(data, 100), parse_cpus_allowed, parse_cgroup):
            try:
                parse(text)
            except ParseError as error:
                assert error.excerpt is not None  # noqa: PT017 - either outcome is right
