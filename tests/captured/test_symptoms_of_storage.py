# SPDX-License-Identifier: Apache-2.0
"""What other exporters' users met with on disks and network file systems, each by its symptom.

The numbers are rows of the table of such reports that this was written from.
"""

import os
from pathlib import Path

import pytest

from captured.written import Written as Node

READ = "READ: 10 11 1 100 5000 20 30 60"


def mount(source: str, point: str, *lines: str, fstype: str = "nfs4", read: str = READ, server_read: int = 4000) -> str:
    body = "".join(f"|\t{line}\n" for line in lines)
    return (
        f"|device {source} mounted on {point} with fstype {fstype} statvers=1.1\n|\tage:\t5\n"
        f"|\tbytes:\t1 2 3 4 {server_read} 6 7 8\n{body}|\tper-op statistics\n|\t        {read}\n"
    )


def table(*mounts: str, pid: str = "1", mountinfo: str = "") -> str:
    entries = "".join(f"|{line}\n" for line in mountinfo.splitlines())
    return f":: proc/{pid}\nmountstats =\n{''.join(mounts)}mountinfo =\n{entries}"


def read_bytes(node: Node, kind: str = "nfs") -> dict[str, float]:
    return node.values("storage_read_bytes_total", kind=kind)


def test_19_a_line_of_nine_numbers_does_not_lose_all_mounts(node: Node) -> None:
    node.write(table(mount("s:/a", "/a", read=f"{READ} 2"), mount("s:/b", "/b", read=f"{READ} 0 5 6", server_read=9)))
    assert read_bytes(node) == {"/a": 4000, "/b": 9}
    assert node.values("storage_errors_total", kind="nfs") == {"/a": 2, "/b": 0}


def test_20_and_21_many_connections_are_one_mount_and_no_series_of_their_own(node: Node) -> None:
    lines = [f"xprt:\ttcp {port} 1 1 0 11 272 272 0 323 0 2 51 0" for port in range(700, 716)]
    one, sixteen = table(mount("s:/a", "/a", lines[0])), table(mount("s:/a", "/a", *lines))
    node.write(one)
    before = node.series()
    node.replace("proc/1/mountstats", sixteen.partition("=\n")[2].partition("mountinfo")[0].replace("|", ""))
    names = {key[0] for key in before}
    after = {key: value for key, value in node.series().items() if key[0] in names}
    storage = {key for key in before if "storage" in key[0]}
    assert storage
    assert storage == {key for key in after if "storage" in key[0]}
    assert read_bytes(node) == {"/a": 4000}


@pytest.mark.parametrize(
    "transport",
    [
        "xprt:\trdma 0 0 1 0 24 5000 4999 0 60 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25",
        "xprt:\trdma 0 0 1 0 24 5000 4999 0 60 7",
        "xprt:\tudp 700 1 32 31 0 33 0",
        "xprt:\tlocal 0 1 2 3 4 5 6 7 8",
        "xprt:\tquic of tomorrow",
        "xprt:",
    ],
)
def test_22_and_23_no_transport_loses_a_mount(node: Node, transport: str) -> None:
    node.write(table(mount("s:/a", "/a", transport), mount("s:/b", "/b")))
    assert read_bytes(node) == {"/a": 4000, "/b": 4000}
    assert node.failures() == {}


def test_24_one_export_at_four_places_does_not_fail_the_scrape_nor_count_four_times(node: Node) -> None:
    places = ("/mnt/data", "/data", "/srv/data", "/home/u/data")
    node.write(table(*(mount("s:/data", place) for place in places)))
    assert read_bytes(node) == {"/data": 4000}


def test_24_one_superblock_is_known_by_its_number_though_its_counts_were_read_apart(node: Node) -> None:
    numbers = "\n".join(f"{n} 1 0:40 / {place} rw - nfs4 s:/data rw" for n, place in ((22, "/mnt/data"), (23, "/data")))
    mounts = (mount("s:/data", "/mnt/data", server_read=4000), mount("s:/data", "/data", server_read=4096))
    node.write(table(*mounts, mountinfo=numbers))
    assert read_bytes(node) == {"/data": 4096}


def test_25_versions_3_and_4_of_one_export_are_both_there(node: Node) -> None:
    three, four = mount("s:/data", "/v3", fstype="nfs", server_read=3), mount("s:/data", "/v4", server_read=44)
    node.write(table(three, four))
    assert read_bytes(node) == {"/v3": 3, "/v4": 44}
    assert set(node.values("storage_info", kind="nfs", source="s:/data")) == {"nfs,,,,,/v3,,", "nfs4,,,,,/v4,,"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every path that the operating system is asked for."""
    paths: list[str] = []

    def noted(name: str) -> None:
        real = getattr(os, name)

        def call(path: object = ".", *arguments: object, **options: object) -> object:
            paths.append(os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else "")
            return real(path, *arguments, **options)

        monkeypatch.setattr(os, name, call)

    for name in ("open", "stat", "lstat", "statvfs", "listdir", "scandir", "readlink", "access"):
        noted(name)
    return paths


def test_26_a_server_that_hangs_is_never_asked(node: Node, tmp_path: Path, asked: list[str]) -> None:
    """Whoever touches a mount point of a dead server hangs: only procfs and sysfs may be."""
    place = tmp_path / "mnt" / "data"
    types = ("nfs4", "lustre", "ceph", "wekafs", "beegfs", "fuse.s3fs", "autofs", "gpfs")
    entries = "\n".join(
        f"{40 + n} 1 0:{40 + n} / {place}{n} rw - {fstype} s:/data rw" for n, fstype in enumerate(types)
    )
    node.write(table(mount("s:/data", f"{place}0"), mountinfo=entries))
    asked.clear()
    node.series(12)
    assert any(path.endswith("mountstats") for path in asked)
    assert [path for path in asked if str(place) in path] == []


def test_27_mounts_are_the_nodes_and_not_those_a_unit_with_private_directories_sees(node: Node) -> None:
    node.write(table(mount("s:/data", "/data")) + table(mount("s:/phantom", "/phantom"), pid="self"))
    assert read_bytes(node) == {"/data": 4000}


def test_27_where_the_nodes_table_is_not_for_us_it_is_said_whose_is_read(node: Node) -> None:
    node.write(":: proc/1\nmountstats !\n" + table(mount("s:/data", "/data"), pid="self"))
    assert read_bytes(node) == {"/data": 4000}
    assert "own namespace" in node.input("nfs").reason


LUSTRE = "snapshot_time 1700000000.5 secs.nsecs"


def lustre(root: str, *lines: str) -> str:
    body = "".join(f"|{line}\n" for line in (LUSTRE, *lines))
    return f":: {root}/llite/scratch-ff00112233445566\nstats =\n{body}"


@pytest.mark.parametrize("root", ["proc/fs/lustre", "sys/kernel/debug/lustre"])
def test_31_lustre_does_not_vanish_with_an_upgrade_that_moves_its_files(node: Node, root: str) -> None:
    node.write(lustre(root, "read_bytes 2 samples [bytes] 1 9 300"))
    assert read_bytes(node, "lustre") == {"scratch": 300}


def test_32_reads_are_not_missing_where_writes_are_shown(node: Node) -> None:
    lines = (
        "read_bytes                2 samples [bytes] 1 9 300 45000",
        "write_bytes               1 samples [bytes] 5 5 5 25",
    )
    node.write(lustre("sys/kernel/debug/lustre", "start_time 1.5 secs.nsecs", "elapsed_time 3 secs.nsecs", *lines))
    assert read_bytes(node, "lustre") == {"scratch": 300}
    assert node.values("storage_write_bytes_total", kind="lustre") == {"scratch": 5}


@pytest.mark.parametrize("unit", ["usec", "usecs"])
def test_33_times_are_counters_in_seconds_in_either_spelling(node: Node, unit: str) -> None:
    node.write(lustre("proc/fs/lustre", f"read 4 samples [{unit}] 1 9 2500000"))
    assert node.values("storage_read_seconds_total", kind="lustre") == {"scratch": 2.5}


def test_34_reading_directories_is_not_reading_gigabytes(node: Node) -> None:
    node.write(lustre("proc/fs/lustre", "readdir 4 samples [bytes] 1 9 4000000000", "readpage 4 samples [usecs] 1 9 9"))
    assert read_bytes(node, "lustre") == {"scratch": 0}
    assert node.values("storage_reads_total", kind="lustre") == {"scratch": 0}


def disks(*lines: str) -> str:
    return ":: proc\ndiskstats =\n" + "".join(f"|{line}\n" for line in lines)


def test_35_partitions_arrays_and_mapped_devices_do_not_double_the_throughput(node: Node) -> None:
    work = "10 0 100 5 0 0 0 0 0 5 5"
    names = ("nvme0n1", "nvme0n1p1", "nvme0n1p2", "sda", "sda1", "dm-0", "dm-1", "md0", "md127", "bcache0")
    node.write(disks(*(f"8 {minor} {name} {work}" for minor, name in enumerate(names))))
    assert read_bytes(node, "block") == {"nvme0n1": 51_200, "sda": 51_200}


def test_36_a_multipath_disk_whose_paths_count_has_not_done_nothing(node: Node) -> None:
    node.write(
        disks(
            "259 0 nvme0c0n1 10 0 100 5 0 0 0 0 0 5 5",
            "259 1 nvme0c1n1 20 0 200 5 0 0 0 0 0 5 5",
            "259 2 nvme0n1 0 0 0 0 0 0 0 0 0 0 0",
        )
    )
    assert read_bytes(node, "block") == {"nvme0n1": 300 * 512}


@pytest.mark.parametrize("more", ["", " 0 0 0", " 0 0 0 0", " 0 0 0 0 0 0", " 1 2 3 4 5 6 7 8 9"])
def test_37_a_line_of_any_length_from_fourteen_on_is_read(node: Node, more: str) -> None:
    node.write(disks(f"8 0 sda 10 0 100 5 0 0 0 0 0 5 5{more}", "8 16 sdb 1 2 3"))
    assert read_bytes(node, "block") == {"sda": 51_200}
    assert set(node.failures()) == {"block,parse"}


def test_38_times_that_wrap_at_32_bits_are_followed_field_by_field(node: Node) -> None:
    """The page has what the kernel says, which Prometheus takes for a restart; nothing of trillions is made of it."""
    node.write(disks("8 0 sda 10 0 100 5 0 0 0 0 0 4294967290 4294967295"))
    assert node.value("storage_busy_seconds_total", kind="block", target="sda") == 4294967.29
    node.replace("proc/diskstats", "8 0 sda 20 0 200 6 0 0 0 0 0 4 9\n")
    assert node.value("storage_busy_seconds_total", kind="block", target="sda") == 0.004
    assert read_bytes(node, "block") == {"sda": 200 * 512}
    assert [value for (name, _), value in node.series().items() if "layer" in name and value > 1e9] == []


def test_49_a_driver_whose_statistics_are_off_does_not_say_that_nothing_was_read(node: Node) -> None:
    node.write(
        ":: proc/driver/nvidia-fs\nstats =\n|IO stats: Disabled, peer IO stats: Disabled\n"
        "|Reads : err=0 io_state_err=0\n|Writes : err=0 io_state_err=0\n|Ops : Read=0 Write=0 BatchIO=0\n"
    )
    assert read_bytes(node, "gds") == {}
    assert node.input("gds").state == "unsupported"


def test_a_mount_of_any_kind_has_the_options_that_decide_its_throughput_and_no_secret(node: Node) -> None:
    entries = (
        "40 1 0:40 / /weka ro,relatime - wekafs backend1/fs1 rw,num_cores=2,readcache\n"
        "41 1 0:41 / /ceph rw,relatime - ceph 10.0.0.1:/ rw,name=admin,secret=AQBx,rsize=65536,wsize=32768"
    )
    node.write(table(mountinfo=entries))
    assert set(node.values("storage_info", kind="weka")) == {"wekafs,,,true,,backend1/fs1,/weka,,"}
    assert set(node.values("storage_info", kind="ceph")) == {"ceph,,,,65536,10.0.0.1:/,/ceph,,32768"}
