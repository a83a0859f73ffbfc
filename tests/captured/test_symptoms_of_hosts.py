# SPDX-License-Identifier: Apache-2.0
"""What other exporters' users met with on pressure, processor time and the owners of processes, each by its symptom.

The numbers are rows of the table of such reports that this was written from. Rows 41 and 42 are of io.stat and blkio,
which nothing here reads: what a job has read is taken from its processes, network file systems among it.
"""

from pathlib import Path

import pytest

from captured.pages import page_of_job, series_of
from captured.second_reader import Series
from captured.trees import write
from captured.written import Written as Node

SOME, FULL = "some avg10=0.00 avg60=0.00 avg300=0.00 total=", "full avg10=0.00 avg60=0.00 avg300=0.00 total="
POD = "9493223b_520e_4a97_a45f_359dcf967006"
CONTAINER = "25d0" * 16


def test_28_pressure_that_is_switched_off_is_not_pressure_of_zero(node: Node) -> None:
    node.write(":: proc/pressure\ncpu !\nio !\nmemory !\n")
    available = node.values("pressure_available")
    assert available == {"cpu": 0, "io": 0, "memory": 0}
    assert node.values("pressure_waiting_seconds_total") == {}


def test_29_a_processor_file_without_full_does_not_lose_io_and_memory(node: Node) -> None:
    node.write(
        f":: proc/pressure\ncpu =\n|{SOME}5000000\nio =\n|{SOME}7000000\n|{FULL}6000000\n"
        f"memory =\n|{SOME}1000000\n|{FULL}500000\n"
    )
    assert node.values("pressure_waiting_seconds_total") == {"cpu": 5, "io": 7, "memory": 1}
    assert node.values("pressure_stalled_seconds_total") == {"io": 6, "memory": 0.5}


def test_30_a_kernel_without_irq_has_all_the_others_and_no_failure(node: Node) -> None:
    node.write(f":: proc/pressure\ncpu =\n|{SOME}1\nio =\n|{SOME}2\n|{FULL}2\nmemory =\n|{SOME}3\n|{FULL}3\n")
    assert node.values("pressure_available") == {"cpu": 1, "io": 1, "memory": 1}
    assert node.failures() == {}


def jobs_of(tmp_path: Path, *cgroups: str, also: str = "") -> list[dict[str, str]]:
    """The GPU's jobs, where one process holds it."""
    series = job_series(tmp_path, *cgroups, also=also)
    return [dict(key) for name, key in series if name == "gpufeed_gpu_job_info"]


def job_series(tmp_path: Path, *cgroups: str, also: str = "") -> Series:
    lines = "".join(f"|{line}\n" for line in cgroups)
    root = write(f":: proc/77\ncgroup =\n{lines}{also}", tmp_path / "node")
    return series_of(page_of_job(root, tmp_path / "gpu", 77))


def test_43_jobs_of_slurm_since_26_05_are_found_by_their_other_names(tmp_path: Path) -> None:
    (job,) = jobs_of(tmp_path, "0::/system.slice/slurmstepd.scope/sEKNKTV3WPV500/step_0/user/task_0")
    assert (job["scheduler"], job["job_id"], job["step"]) == ("slurm", "sEKNKTV3WPV500", "0")


def test_43_and_by_their_numbers_where_a_task_may_be_asked(tmp_path: Path) -> None:
    path = "system.slice/slurmstepd.scope/sEKNKTV3WPV500/step_0/user/task_0"
    environ = "environ SLURM_JOB_ID=4711\0SLURM_JOB_GPUS=0\0HOME=/root\n"
    also = f"{environ}:: sys/fs/cgroup/{path}\ncgroup.procs 77\n"
    (job,) = jobs_of(tmp_path, f"0::/{path}", also=also)
    assert job["job_id"] == "4711"


@pytest.mark.parametrize(
    "cgroup",
    [
        "0::/system.slice/node001_slurmstepd.scope/job_850/step_0/user/task_0",
        "11:devices:/slurm_node001/uid_5/job_850/step_0",
        "11:devices:/slurm/uid_5/job_850/step_0",
    ],
)
def test_44_several_slurmd_and_both_versions_of_cgroups_name_the_job_once(tmp_path: Path, cgroup: str) -> None:
    (job,) = jobs_of(tmp_path, "12:pids:/", cgroup, "1:name=systemd:/system.slice/slurmd.service")
    assert (job["job_id"], job["step"]) == ("850", "0")


@pytest.mark.parametrize(
    "cgroup",
    [
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD}.slice/cri-containerd-{CONTAINER}.scope",
        f"13:memory:/system.slice/containerd.service/kubepods-burstable-pod{POD}.slice:cri-containerd:{CONTAINER}",
        f"0::/kubepods/burstable/pod{POD.replace('_', '-')}/{CONTAINER}",
    ],
)
def test_45_a_pod_is_found_whatever_its_uid_is_spelled_with(tmp_path: Path, cgroup: str) -> None:
    (job,) = jobs_of(tmp_path, cgroup)
    assert (job["scheduler"], job["job_id"]) == ("kubernetes", POD.replace("_", "-"))


def test_46_reads_of_others_processes_are_absent_and_not_zero(tmp_path: Path) -> None:
    status = "task/77/status =\n|Uid:\t5\t5\t5\t5\n|voluntary_ctxt_switches:\t3\n|nonvoluntary_ctxt_switches:\t4\n"
    series = job_series(tmp_path, "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", also=f"{status}io !\n")
    assert [key for key in series if key[0] == "gpufeed_job_read_call_bytes_total"] == []
    assert [value for (name, _), value in series.items() if name == "gpufeed_job_context_switches_total"] == [3, 4]


def test_47_a_gpu_that_no_device_plugin_gave_away_has_its_pod_from_the_cgroup(tmp_path: Path) -> None:
    checkpoint = (
        'kubelet_internal_checkpoint {"Data":{"PodDeviceEntries":[],"RegisteredDevices":{"nvidia.com/gpu":[]}}}\n'
    )
    also = f":: var/lib/kubelet/device-plugins\n{checkpoint}"
    (job,) = jobs_of(tmp_path, f"0::/kubepods/pod{POD.replace('_', '-')}/{CONTAINER}", also=also)
    assert job["job_id"] == POD.replace("_", "-")


def test_48_iowait_that_goes_back_is_no_restart_of_the_counter(node: Node) -> None:
    node.write(
        ":: proc\nstat =\n|cpu  1000 0 500 9000 300 0 0 0 0 0\n|cpu0 1000 0 500 9000 300 0 0 0 0 0\n|procs_blocked 2\n"
    )
    before = node.values("host_cpu_seconds_total")
    node.replace(
        "proc/stat", "cpu  1100 0 500 9000 200 0 0 0 0 0\ncpu0 1100 0 500 9000 200 0 0 0 0 0\nprocs_blocked 0\n"
    )
    after = node.values("host_cpu_seconds_total")
    assert (before["iowait"], after["iowait"]) == (3, 3)
    assert (before["user"], after["user"]) == (10, 11)


def test_threads_of_a_cgroup_that_several_jobs_share_are_put_down_to_none_of_them(tmp_path: Path) -> None:
    also = "environ SLURM_JOB_ID=7\nstat 77 (x) R 1 77 77 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 99 0\n"
    series = job_series(tmp_path, "0::/system.slice/slurmd.service", also=also)
    assert [dict(key)["job_id"] for name, key in series if name == "gpufeed_gpu_job_info"] == ["7"]
    assert [key for key in series if key[0] == "gpufeed_job_threads"] == []
