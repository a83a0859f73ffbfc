# SPDX-License-Identifier: Apache-2.0
"""FUSE, Weka and BeeGFS: what little can be said of them, and never by touching a mount."""

import errno

import pytest

from gpufeed.model.desired import CollectorOptions
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.sources.beegfs import BeegfsSource
from gpufeed.sources.contract import Source
from gpufeed.sources.fuse import FuseSource
from gpufeed.sources.weka import WekaSource
from host_bench import HostBench, read, samples_of, statuses
from storage_bench import counters, lanes, mount, refusing, scan

FUSE, WEKA, BEEGFS = FuseSource(), WekaSource(), BeegfsSource()
TABLE = "proc/1/mountinfo"


def waiting(number: int) -> str:
    return f"sys/fs/fuse/connections/{number}/waiting"


def test_requests_that_wait_are_counted_by_mount_point(bench: HostBench) -> None:
    bench.write(
        TABLE,
        mount("0:52", "/mnt/bucket", "fuse.s3fs", "s3fs")
        + mount("0:52", "/mnt/again", "fuse.s3fs", "s3fs")
        + mount("8:17", "/mnt/usb", "fuseblk", "/dev/sdb1")
        + mount("0:53", "/var/lib/lxcfs", "fuse.lxcfs", "lxcfs")
        + mount("0:54", "/sys/fs/fuse/connections", "fusectl", "fusectl"),
    )
    bench.write(waiting(52), "17\n")
    bench.write(waiting(8 << 20 | 17), "0\n")
    found = counters(bench, FUSE)
    assert {name: sample.inflight for name, sample in found.items()} == {"/mnt/again": 17, "/mnt/usb": 0}
    assert {sample.read_bytes for sample in found.values()} == {None}
    outcome = scan(bench, FUSE)
    infos = {info.storage.target: (info.source, info.fstype) for info in samples_of(outcome, StorageInfo)}
    assert infos == {"/mnt/again": ("s3fs", "fuse.s3fs"), "/mnt/usb": ("/dev/sdb1", "fuseblk")}
    assert statuses(outcome)["fuse", ""].state == "available"


def test_mounts_of_pods_are_one_target_by_their_source(bench: HostBench) -> None:
    pods = "/var/lib/kubelet/pods"
    bench.write(
        TABLE,
        mount("0:52", f"{pods}/0f/volumes/set", "fuse.juicefs", "JuiceFS:set")
        + mount("0:53", f"{pods}/1e/volumes/set", "fuse.juicefs", "JuiceFS:set"),
    )
    bench.write(waiting(52), "3\n")
    bench.write(waiting(53), "4\n")
    assert {name: sample.inflight for name, sample in counters(bench, FUSE).items()} == {"JuiceFS:set": 7}


def test_a_connection_that_is_not_for_us_is_said_with_the_fix_and_leaves_the_others(
    bench: HostBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write(TABLE, mount("0:52", "/a", "fuse", "a") + mount("0:53", "/b", "fuse", "b"))
    bench.write(waiting(52), "1\n")
    bench.write(waiting(53), "2\n")
    refusing(monkeypatch, "open", errno.EACCES, "connections/52/")
    outcome = scan(bench, FUSE)
    status = statuses(outcome)["fuse", ""]
    assert (status.state, "CAP_DAC_READ_SEARCH" in status.fix, "/a: " in status.reason) == ("available", True, True)
    assert [failure.reason for failure in outcome.failures] == ["denied"]
    assert list(counters(bench, FUSE)) == ["/b"]


def test_without_its_control_file_system_fuse_is_there_and_not_measurable(bench: HostBench) -> None:
    bench.write(TABLE, mount("0:52", "/a", "fuse.gcsfuse", "bucket"))
    outcome = scan(bench, FUSE)
    status = statuses(outcome)["fuse", ""]
    assert (status.state, "not measurable" in status.reason, "fusectl" in status.fix) == ("unsupported", True, True)
    assert (outcome.failures, outcome.lanes) == ((), ())


@pytest.mark.parametrize("text", ["", "many\n", "-1\n", b"\xff\x00"])
def test_a_connection_that_says_nonsense_is_one_counted_error(bench: HostBench, text: str | bytes) -> None:
    bench.write(TABLE, mount("0:52", "/a", "fuse", "a"))
    bench.write(waiting(52), "1\n")
    (plan,) = lanes(scan(bench, FUSE))
    reader = bench.open(plan)
    bench.write(waiting(52), text)
    outcome = read(reader, "fuse.fast")
    assert ([failure.reason for failure in outcome.failures], outcome.samples) == (["parse"], ())
    assert [failure.reason for failure in scan(bench, FUSE).failures] == ["parse"]
    reader.close()


def test_a_connection_that_is_gone_since_the_scan_has_no_sample_and_is_no_error(bench: HostBench) -> None:
    bench.write(TABLE, mount("0:52", "/a", "fuse", "a") + mount("0:53", "/b", "fuse", "b"))
    bench.write(waiting(52), "1\n")
    bench.write(waiting(53), "2\n")
    (plan,) = lanes(scan(bench, FUSE))
    (bench.root / waiting(52)).unlink()
    outcome = read(bench.open(plan), "fuse.fast")
    assert [sample.storage.target for sample in samples_of(outcome, StorageCounters)] == ["/b"]
    assert outcome.failures == ()


def test_more_targets_than_can_be_told_are_counted(bench: HostBench) -> None:
    bench.write(TABLE, "".join(mount(f"0:{number}", f"/m{number}", "fuse", "a") for number in range(50, 70)))
    assert statuses(scan(bench, FUSE))["fuse", ""].reason.endswith("and 12 more")


def test_weka_is_there_and_not_measurable(bench: HostBench) -> None:
    bench.write(TABLE, mount("0:52", "/mnt/weka", "wekafs", "backend1/default"))
    outcome = scan(bench, WEKA)
    (info,) = samples_of(outcome, StorageInfo)
    assert (info.storage.kind, info.storage.target, info.source, info.fstype) == (
        "weka",
        "/mnt/weka",
        "backend1/default",
        "wekafs",
    )
    status = statuses(outcome)["weka", ""]
    assert (status.state, status.fix != "", "not measurable" in status.reason) == ("unsupported", True, True)
    assert (outcome.failures, outcome.lanes) == ((), ())


def test_beegfs_is_called_by_the_host_that_manages_it(bench: HostBench) -> None:
    bench.write("proc/fs/beegfs/5F2A-60A1-node1/config", "logLevel = 3\nsysMgmtdHost = mgmt1\n")
    bench.write("proc/fs/beegfs/5F2B-60A1-node1/config", "sysMgmtdHost = mgmt1\n")
    bench.refuse("proc/fs/beegfs/77AA-60A1-node1/config")
    outcome = scan(bench, BEEGFS)
    assert [info.storage.target for info in samples_of(outcome, StorageInfo)] == ["mgmt1", "77AA-60A1-node1"]
    status = statuses(outcome)["beegfs", ""]
    assert (status.state, "mgmt1: present, not measurable" in status.reason) == ("unsupported", True)


@pytest.mark.parametrize("source", [FUSE, WEKA, BEEGFS], ids=lambda source: source.name)
def test_where_there_is_none_there_is_nothing_and_nothing_is_wrong(bench: HostBench, source: Source) -> None:
    bench.write(TABLE, mount("0:51", "/data", "nfs4", "nas:/set"))
    outcome = scan(bench, source)
    assert (outcome.samples, outcome.failures, outcome.lanes) == ((), (), ())
    assert statuses(outcome)[source.name, ""].state == "absent"


@pytest.mark.parametrize("source", [FUSE, WEKA], ids=lambda source: source.name)
def test_without_any_mount_table_it_is_said(bench: HostBench, source: Source) -> None:
    bench.refuse("proc/1/mountinfo")
    bench.refuse("proc/self/mountinfo")
    outcome = scan(bench, source)
    assert [failure.reason for failure in outcome.failures] == ["broken"]
    assert statuses(outcome)[source.name, ""].state == "broken"


def test_our_own_mount_table_has_to_do_where_the_hosts_is_not_for_us(bench: HostBench) -> None:
    bench.refuse("proc/1/mountinfo")
    bench.write("proc/self/mountinfo", mount("0:52", "/w", "wekafs", "backend"))
    assert [info.storage.target for info in samples_of(scan(bench, WEKA), StorageInfo)] == ["/w"]
    bench.write("proc/self/mountinfo", "")
    assert "our own" in statuses(scan(bench, WEKA))["weka", ""].reason


def test_a_mount_that_comes_later_is_found(bench: HostBench) -> None:
    bench.write(TABLE, mount("0:52", "/a", "wekafs", "a"))
    reader = bench.only_reader(WEKA)
    assert len(read(reader, "weka.slow").samples) == 1
    bench.write(TABLE, mount("0:52", "/a", "wekafs", "a") + mount("0:53", "/b", "wekafs", "b"))
    assert len(read(reader, "weka.slow").samples) == 2
    reader.close()


def test_a_directory_of_beegfs_that_cannot_be_listed_is_said(bench: HostBench, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing(monkeypatch, "listdir", errno.EIO, "/fs/beegfs")
    outcome = scan(bench, BEEGFS)
    assert ([failure.reason for failure in outcome.failures], outcome.lanes) == (["broken"], ())


@pytest.mark.parametrize("source", [FUSE, WEKA, BEEGFS], ids=lambda source: source.name)
def test_a_mount_itself_is_never_asked(bench: HostBench, monkeypatch: pytest.MonkeyPatch, source: Source) -> None:
    """node_exporter#244, #868, #578, #1353, #3058: a server that hangs takes whoever asks for its mount with it."""
    point = f"{bench.root}/mnt"
    bench.write(TABLE, mount("0:52", point, "fuse.s3fs", "a") + mount("0:53", point, "wekafs", "b"))
    bench.write(waiting(52), "1\n")
    for call in ("stat", "lstat", "statvfs", "open", "listdir", "readlink"):
        refusing(monkeypatch, call, errno.EIO, point)
    assert scan(bench, source).failures == ()


@pytest.mark.parametrize("source", [FUSE, WEKA, BEEGFS], ids=lambda source: source.name)
def test_a_collector_switched_off_has_no_lane(bench: HostBench, source: Source) -> None:
    bench.options[source.name] = CollectorOptions(enabled=False)  # type: ignore[index] # a source is called like it
    assert source.plan(bench.config) == ()
