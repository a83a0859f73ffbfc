# SPDX-License-Identifier: Apache-2.0
"""What storage jobs read: on which file systems their processes have files open."""

import errno
import os

import pytest

from gpufeed.model.desired import CollectorOptions
from gpufeed.model.ids import GpuUuid, LaneId
from gpufeed.model.jobs import JobFiles
from gpufeed.sources.contract import Reader
from gpufeed.sources.disks import disks_below
from gpufeed.sources.files import Tree
from gpufeed.sources.job_files import MAX_CGROUPS, MAX_FILES, MAX_PROCESSES, MOUNTS_HOLD_NS, JobFilesSource
from host_bench import HostBench, failing, read, samples_of, statuses

TASK = "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0"
TABLE = """\
27 1 253:0 / / rw - ext4 /dev/mapper/root rw
28 27 259:1 / /scratch rw - ext4 /dev/nvme0n1p1 rw
101 27 0:51 / /data rw,relatime shared:1 - nfs4 nas1:/export/data rw,vers=4.2
102 27 0:52 / /home rw - nfs4 nas1:/export/home rw
103 27 0:53 / /s3 rw - fuse.s3fs s3fs rw
"""


def process(bench: HostBench, pid: int, *files: str, cgroup: str = TASK, namespace: str = "mnt:[1]") -> None:
    bench.write(f"proc/{pid}/cgroup", f"0::{cgroup}\n")
    bench.write(f"proc/{pid}/mountinfo", TABLE)
    folder = bench.root / f"proc/{pid}"
    for name in ("fd", "ns"):
        (folder / name).mkdir(exist_ok=True)
    if not (folder / "ns/mnt").is_symlink():
        (folder / "ns/mnt").symlink_to(namespace)
    for old in (folder / "fd").iterdir():
        old.unlink()
    for number, file in enumerate(files):
        (folder / f"fd/{number}").symlink_to(file)


def hold(bench: HostBench, *pids: int) -> None:
    bench.board.gpu_pids[LaneId("gpu0")] = (GpuUuid("GPU-a"), pids)


def disk(bench: HostBench) -> None:
    bench.write("sys/devices/nvme/nvme0/nvme0n1/nvme0n1p1/partition", "1\n")
    for link, target in (("block/nvme0n1", "../devices/nvme/nvme0/nvme0n1"),):
        (bench.root / "sys" / link).parent.mkdir(parents=True, exist_ok=True)
        (bench.root / "sys" / link).symlink_to(target)
    (bench.root / "sys/dev/block").mkdir(parents=True)
    (bench.root / "sys/dev/block/259:1").symlink_to("../../devices/nvme/nvme0/nvme0n1/nvme0n1p1")


def files(reader: Reader) -> list[JobFiles]:
    return samples_of(read(reader, "jobs.slow"), JobFiles)


def test_mounts_and_disks_with_open_files_are_named(bench: HostBench) -> None:
    process(
        bench, 10, "/dev/null", "pipe:[7]", "/data/shard-1.tar", "/scratch/log", "/usr/lib/libc.so", "/s3/x (deleted)"
    )
    disk(bench)
    hold(bench, 10)
    assert files(bench.only_reader(JobFilesSource())) == [
        JobFiles(
            cgroup=TASK,
            mounts=(("fuse.s3fs", "s3fs"), ("nfs4", "nas1:/export/data")),
            disks=("nvme0n1",),
            devices=("0:53", "0:51"),
        )
    ]


def test_loaders_of_the_job_are_looked_at_in_turn(bench: HostBench) -> None:
    pids = range(10, 10 + 3 * MAX_PROCESSES)
    for pid in pids:
        process(bench, pid, *(["/data/x"] if pid == pids[-1] else []))
    bench.write(f"sys/fs/cgroup{TASK}/cgroup.procs", "".join(f"{pid}\n" for pid in pids))
    hold(bench, 10)
    reader = bench.only_reader(JobFilesSource())
    found = [files(reader) for _ in range(3)]
    assert [len(each) for each in found] == [0, 0, 1]


def test_what_was_seen_holds_while_a_process_of_the_job_has_a_gpu(bench: HostBench) -> None:
    process(bench, 10, "/data/x")
    hold(bench, 10)
    reader = bench.only_reader(JobFilesSource())
    assert len(files(reader)) == 1
    process(bench, 10, "/home/y")
    assert files(reader)[0].mounts == (("nfs4", "nas1:/export/data"), ("nfs4", "nas1:/export/home"))
    hold(bench)
    assert files(reader) == []
    hold(bench, 10)
    assert files(reader)[0].mounts == (("nfs4", "nas1:/export/home"),)
    reader.close()


def test_of_many_files_those_opened_last_are_looked_at(bench: HostBench) -> None:
    process(bench, 10, "/home/first", *(["/usr/lib/x"] * MAX_FILES))
    hold(bench, 10)
    assert files(bench.only_reader(JobFilesSource())) == []


def test_mount_tables_are_read_once_a_minute_for_each_namespace(bench: HostBench) -> None:
    for pid in (10, 11):
        process(bench, pid, "/data/x", cgroup=f"{TASK}{pid}")
    hold(bench, 10, 11)
    reader = bench.only_reader(JobFilesSource())
    counts = bench.desks[0].counts

    def cost() -> int:
        before = counts.file_reads
        files(reader)
        return counts.file_reads - before

    first, second = cost(), cost()
    assert first == second + 1
    bench.clock.advance(MOUNTS_HOLD_NS)
    assert cost() == first


def test_processes_that_are_not_for_us_are_denied_with_the_fix(
    bench: HostBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    process(bench, 10, "/data/x")
    hold(bench, 10)
    reader = bench.only_reader(JobFilesSource())
    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", failing(os.listdir, PermissionError(errno.EACCES, "")))
        outcome = read(reader, "jobs.slow")
    status = statuses(outcome)["job_files", ""]
    assert (outcome.samples, outcome.failures) == ((), ())
    assert (status.state, "CAP_SYS_PTRACE" in status.fix) == ("denied", True)
    assert statuses(read(reader, "jobs.slow"))["job_files", ""].state == "available"


def test_processes_and_files_that_vanish_are_passed_over(bench: HostBench, monkeypatch: pytest.MonkeyPatch) -> None:
    process(bench, 10, "/data/x", "/home/y")
    bench.write("proc/11/cgroup", f"0::{TASK}\n")  # ends before its files are listed
    hold(bench, 10, 11, 12)
    really = os.readlink

    def readlink(path: str) -> str:
        if path.endswith("/fd/1"):
            raise FileNotFoundError(errno.ENOENT, "")
        return really(path)

    monkeypatch.setattr(os, "readlink", readlink)
    (found,) = files(bench.only_reader(JobFilesSource()))
    assert found.mounts == (("nfs4", "nas1:/export/data"),)


def test_more_cgroups_than_can_be_looked_at_are_cut(bench: HostBench) -> None:
    pids = range(10, 20 + MAX_CGROUPS)
    for pid in pids:
        process(bench, pid, "/data/x", cgroup=f"/job{pid}")
    hold(bench, *pids)
    assert len(files(bench.only_reader(JobFilesSource()))) == MAX_CGROUPS


def test_a_collector_switched_off_has_no_lane(bench: HostBench) -> None:
    bench.options["jobs"] = CollectorOptions(enabled=False)
    assert JobFilesSource().plan(bench.config) == ()


def block(bench: HostBench, name: str, number: str, *slaves: str, of: str = "") -> None:
    path = f"devices/{of}/{name}" if of else f"devices/{name}"
    folder = bench.root / "sys" / path
    folder.mkdir(parents=True, exist_ok=True)
    if of:
        (folder / "partition").touch()
    links = ("dev/block", "class/block") if of else ("dev/block", "class/block", "block")
    for where in links:
        (bench.root / "sys" / where).mkdir(parents=True, exist_ok=True)
        (bench.root / f"sys/{where}/{number if where == 'dev/block' else name}").symlink_to(bench.root / "sys" / path)
    for slave in slaves:
        (folder / "slaves" / slave).mkdir(parents=True)


def test_a_device_is_followed_down_to_its_disks(bench: HostBench) -> None:
    block(bench, "sda", "8:0")
    block(bench, "sda1", "8:1", of="sda")
    block(bench, "sdb", "8:16")
    block(bench, "md0", "9:0", "sda1", "sdb")
    block(bench, "dm-0", "253:0", "md0")
    block(bench, "dm-1", "253:1", "gone")
    block(bench, "dm-2", "253:2", "dm-2")  # a circle
    sys = Tree(bench.config.sysfs, bench.desk())
    assert disks_below(sys, "8:1") == {"sda"}
    assert disks_below(sys, "8:16") == {"sdb"}
    assert disks_below(sys, "253:0") == {"sda", "sdb"}
    assert disks_below(sys, "253:1") == {"gone"}
    assert disks_below(sys, "253:2") == {"dm-2"}
    assert disks_below(sys, "0:51") == frozenset()
