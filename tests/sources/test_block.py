# SPDX-License-Identifier: Apache-2.0
"""Local disks."""

from gpufeed.model.desired import CollectorOptions
from gpufeed.model.ids import StorageKey
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.sources.block import BlockSource
from host_bench import HostBench, open_files, read, samples_of, statuses

DISKSTATS = """\
 259 0 nvme0n1 100 0 2000 500 50 0 1000 250 2 600 750 0 0 0 0 1 1
 259 1 nvme0n1p1 100 0 2000 500 50 0 1000 250 0 600 750 0 0 0 0 0 0
   8 0 sda 7 0 14 1 0 0 0 0 0 1 1
 252 0 dm-0 107 0 2014 501 50 0 1000 250 0 600 750
 251 0 rbd0 9 0 90 3 0 0 0 0 0 3 3
"""


def fill(bench: HostBench, diskstats: str = DISKSTATS) -> None:
    bench.write("proc/diskstats", diskstats)
    for disk in ("nvme0n1", "sda", "dm-0", "rbd0"):
        bench.write(f"sys/block/{disk}/size", "1000\n")
        (bench.root / f"sys/block/{disk}/slaves").mkdir()


def targets(bench: HostBench) -> list[str]:
    outcome = read(bench.only_reader(BlockSource()), "block.fast")
    return [sample.storage.target for sample in samples_of(outcome, StorageCounters)]


def test_each_byte_of_a_disk_is_counted_once_in_bytes_and_seconds(bench: HostBench) -> None:
    fill(bench)
    outcome = read(bench.only_reader(BlockSource()), "block.fast")
    assert outcome.samples[0] == StorageCounters(
        storage=StorageKey("block", "nvme0n1"),
        read_bytes=2000 * 512,
        write_bytes=1000 * 512,
        reads=100,
        writes=50,
        read_s=0.5,
        write_s=0.25,
        queue_s=0.75,
        busy_s=0.6,
        inflight=2,
    )
    assert [sample.storage.target for sample in samples_of(outcome, StorageCounters)] == ["nvme0n1", "sda", "rbd0"]
    assert statuses(outcome)["block", ""].state == "available"


def test_a_device_made_of_others_is_left_out(bench: HostBench) -> None:
    fill(bench)
    (bench.root / "sys/block/rbd0/slaves/sda").symlink_to("../../sda")
    assert targets(bench) == ["nvme0n1", "sda"]


def test_a_drive_without_a_medium_is_left_out(bench: HostBench) -> None:
    fill(bench)
    bench.write("sys/block/sda/size", "0\n")
    assert targets(bench) == ["nvme0n1", "rbd0"]


def test_names_have_to_do_where_sysfs_is_missing(bench: HostBench) -> None:
    bench.write("proc/diskstats", DISKSTATS)
    assert targets(bench) == ["nvme0n1", "sda", "rbd0"]


def test_disks_are_chosen_by_name(bench: HostBench) -> None:
    fill(bench)
    bench.options["block"] = CollectorOptions(include="^(nvme|sd)", exclude="^sda$")
    assert targets(bench) == ["nvme0n1"]


def test_a_disk_that_comes_later_is_looked_at(bench: HostBench) -> None:
    fill(bench)
    reader = bench.only_reader(BlockSource())
    read(reader, "block.fast")
    bench.write("proc/diskstats", DISKSTATS + "   8 16 sdb 1 0 2 0 0 0 0 0 0 0 0\n")
    bench.write("sys/block/sdb/size", "1000\n")
    bench.write("sys/block/sdb/slaves", "")  # a file where a directory should be
    found = samples_of(read(reader, "block.fast"), StorageCounters)
    assert [sample.storage.target for sample in found] == ["nvme0n1", "sda", "rbd0", "sdb"]


def test_a_disk_is_described_slowly(bench: HostBench) -> None:
    fill(bench, DISKSTATS.replace("sda", "cciss/c0d0"))
    bench.write("sys/block/nvme0n1/device/model", "ACME 3.84TB        \n")
    bench.write("sys/block/nvme0n1/queue/rotational", "0\n")
    outcome = read(bench.only_reader(BlockSource()), "block.slow")
    first, second, _ = samples_of(outcome, StorageInfo)
    assert first.options == {"model": "ACME 3.84TB", "rotational": "0"}
    assert (second.storage.target, second.source, second.options) == ("cciss/c0d0", "/dev/cciss/c0d0", {})


def test_a_line_that_makes_no_sense_is_named_and_the_rest_stands(bench: HostBench) -> None:
    fill(bench, "8 0 sdz garbage\n" + DISKSTATS)
    outcome = read(bench.only_reader(BlockSource()), "block.fast")
    assert len(outcome.samples) == 3
    assert [failure.reason for failure in outcome.failures] == ["parse"]


def test_a_container_without_the_file_has_no_disks(bench: HostBench) -> None:
    outcome = read(bench.only_reader(BlockSource()), "block.fast")
    assert (outcome.samples, outcome.failures) == ((), ())
    assert statuses(outcome)["block", ""].state == "absent"


def test_a_file_that_cannot_be_read_is_a_failure(bench: HostBench) -> None:
    bench.refuse("proc/diskstats")
    outcome = read(bench.only_reader(BlockSource()), "block.fast")
    assert [failure.reason for failure in outcome.failures] == ["broken"]
    assert statuses(outcome)["block", ""].state == "broken"


def test_a_collector_switched_off_has_no_lane(bench: HostBench) -> None:
    bench.options["block"] = CollectorOptions(enabled=False)
    assert BlockSource().plan(bench.config) == ()


def test_closing_lets_go_of_the_file(bench: HostBench) -> None:
    fill(bench)
    before = open_files()
    reader = bench.only_reader(BlockSource())
    read(reader, "block.fast")
    reader.close()
    assert open_files() == before
