# SPDX-License-Identifier: Apache-2.0
"""Which storage targets a job has files open on."""

from gpufeed.model.ids import StorageKey, StorageKind
from gpufeed.model.jobs import JobFiles
from gpufeed.model.storage import StorageInfo
from gpufeed.signals.job_storage import targets_of


def info(
    kind: StorageKind, target: str, fstype: str | None = None, source: str | None = None, *devices: str
) -> StorageInfo:
    return StorageInfo(storage=StorageKey(kind, target), source=source, fstype=fstype, devices=devices)


def read_of(files: tuple[tuple[str, str, str], ...], *infos: StorageInfo, disks: tuple[str, ...] = ()) -> list[str]:
    mounts = tuple((fstype, source) for fstype, source, _ in files)
    found = JobFiles(cgroup="/a", mounts=mounts, disks=disks, devices=tuple(device for *_, device in files))
    return [target.target for target in targets_of(found, infos)]


S3_A, S3_B = info("fuse", "/a", "fuse.s3fs", "s3fs", "0:60"), info("fuse", "/b", "fuse.s3fs", "s3fs", "0:61")
DATA = info("nfs", "/data", "nfs4", "nas:/data", "0:40")
BEEGFS, LUSTRE = info("beegfs", "mgmt1", "beegfs", "mgmt1"), info("lustre", "scratch", "lustre")


def test_of_two_mounts_from_one_source_only_that_with_the_open_file_is_read() -> None:
    assert read_of((("fuse.s3fs", "s3fs", "0:61"),), S3_A, S3_B) == ["/b"]


def test_another_path_into_one_superblock_is_the_same_target() -> None:
    assert read_of((("nfs4", "nas:/data/below", "0:40"),), DATA, S3_A) == ["/data"]


def test_the_same_export_from_another_superblock_is_another_target() -> None:
    assert read_of((("nfs4", "nas:/data", "0:99"),), DATA) == []


def test_where_no_number_is_known_type_and_source_tell() -> None:
    files = (("nfs4", "nas:/data", ""), ("lustre", "10.9.9.9@o2ib:/scratch", "0:70"), ("nfs", "nas:/data", ""))
    assert read_of(files, DATA, LUSTRE) == ["/data", "scratch"]


def test_a_record_from_before_numbers_were_kept_is_read_by_its_sources() -> None:
    files = JobFiles(cgroup="/a", mounts=(("nfs4", "nas:/data"),), disks=())
    assert [target.target for target in targets_of(files, [DATA])] == ["/data"]


def test_the_only_beegfs_is_the_one_that_is_read_and_of_two_nobody_knows() -> None:
    files = (("beegfs", "beegfs_nodev", "0:80"),)
    assert read_of(files, BEEGFS) == ["mgmt1"]
    assert read_of(files, BEEGFS, info("beegfs", "mgmt2", "beegfs", "mgmt2")) == []


def test_disks_go_by_their_names() -> None:
    assert read_of((), info("block", "nvme0n1"), info("block", "sda"), DATA, disks=("sda",)) == ["sda"]
