# SPDX-License-Identifier: Apache-2.0
"""/proc/diskstats."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.parse.diskstats import DiskStats, leaf_disks, parse_diskstats

FOUR_KERNELS = b"""\
   8       0 sda 100 7 2048 500 50 3 1024 250 2 600 750
   8       1 sda1 90 7 2000 490 50 3 1024 250 0 590 740
 259       0 nvme0n1 10 0 80 5 20 0 160 15 0 12 20 1 0 8 1
 259       1 nvme0n1p1 10 0 80 5 20 0 160 15 0 12 20 1 0 8 1
 253       0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17
 104       0 cciss/c0d0 1 0 2 3 4 0 5 6 0 7 8
 104       1 cciss/c0d0p1 1 0 2 3 4 0 5 6 0 7 8
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0
 252       0 dm-0 100 0 2048 500 50 0 1024 250 0 600 750
   9       0 md0 100 0 2048 0 50 0 1024 0 0 0 0
 251       0 zram0 5 0 40 0 0 0 0 0 0 0 0
"""


def disk(name: str, **values: float) -> DiskStats:
    """A line with zeros where nothing is said."""
    columns = {"reads": 0, "read_sectors": 0, "read_ms": 0, **values}
    line = f"8 0 {name} {columns['reads']} 0 {columns['read_sectors']} {columns['read_ms']} 0 0 0 0 0 0 0"
    return parse_diskstats(line.encode()).rows[0]


def test_a_line_is_in_bytes_and_seconds() -> None:
    first = parse_diskstats(FOUR_KERNELS).rows[0]
    assert first == DiskStats(
        name="sda",
        reads=100,
        read_bytes=2048 * 512,
        read_s=0.5,
        writes=50,
        write_bytes=1024 * 512,
        write_s=0.25,
        inflight=2,
        busy_s=0.6,
        queue_s=0.75,
    )


def test_fourteen_eighteen_and_twenty_columns_are_read_alike() -> None:
    parsed = parse_diskstats(FOUR_KERNELS)
    assert len(parsed.rows) == 11
    assert parsed.rejects == ()
    assert {row.name: row.queue_s for row in parsed.rows}["vda"] == 0.011


def test_a_slash_in_a_name_is_spelled_as_sysfs_does() -> None:
    assert "cciss/c0d0" in [row.name for row in parse_diskstats(FOUR_KERNELS).rows]


@pytest.mark.parametrize("line", [b"8 1 sda1 1 2 3 4", b"nonsense", b"8 0 sda a b c d e f g h i j k", b"3 0 1 hda 1 2"])
def test_a_short_or_odd_line_is_rejected_alone(line: bytes) -> None:
    parsed = parse_diskstats(line + b"\n" + FOUR_KERNELS)
    assert len(parsed.rows) == 11
    assert len(parsed.rejects) == 1


def test_an_empty_file_has_no_disks() -> None:
    assert parse_diskstats(b"").rows == ()


def test_whole_devices_count_once_by_their_names() -> None:
    leaves = leaf_disks(parse_diskstats(FOUR_KERNELS).rows)
    assert [leaf.name for leaf in leaves] == ["sda", "nvme0n1", "vda", "cciss/c0d0"]


def test_whole_devices_count_once_by_what_sysfs_lists() -> None:
    whole = {"sda", "nvme0n1", "vda", "cciss!c0d0", "loop0", "dm-0", "md0", "zram0"}
    leaves = leaf_disks(parse_diskstats(FOUR_KERNELS).rows, whole, left_out={"vda"})
    assert [leaf.name for leaf in leaves] == ["sda", "nvme0n1", "cciss/c0d0"]


def test_a_whole_device_named_like_a_partition_is_whole_where_sysfs_says_so() -> None:
    assert [leaf.name for leaf in leaf_disks([disk("xvda"), disk("xvda1")], {"xvda", "xvda1"})] == ["xvda", "xvda1"]


def test_a_partition_whose_disk_is_not_listed_stands_for_itself() -> None:
    assert [leaf.name for leaf in leaf_disks([disk("xvda1"), disk("mmcblk0p1")])] == ["xvda1", "mmcblk0p1"]


def test_a_network_disk_slot_that_was_never_used_is_no_device() -> None:
    assert [leaf.name for leaf in leaf_disks([disk("nbd0"), disk("nbd1", reads=1)])] == ["nbd1"]


def test_multipath_head_without_counts_takes_the_sum_of_its_paths() -> None:
    rows = [disk("nvme0n1"), disk("nvme0c0n1", reads=3, read_sectors=8), disk("nvme0c1n1", reads=4, read_sectors=8)]
    (head,) = leaf_disks(rows)
    assert (head.name, head.reads, head.read_bytes) == ("nvme0n1", 7, 16 * 512)


def test_multipath_head_with_counts_is_not_added_to_its_paths() -> None:
    rows = [disk("nvme0n1", reads=9), disk("nvme0c0n1", reads=4), disk("nvme0c1n1", reads=5)]
    assert [leaf.reads for leaf in leaf_disks(rows, {"nvme0n1"})] == [9]


def test_multipath_paths_without_a_head_stand_under_its_name() -> None:
    assert [(leaf.name, leaf.reads) for leaf in leaf_disks([disk("nvme2c5n1", reads=4)])] == [("nvme2n1", 4)]


@given(st.lists(st.integers(0, 2**32 - 1), min_size=11, max_size=17))
def test_a_line_survives_the_kernels_spelling(values: list[int]) -> None:
    (row,) = parse_diskstats(b" 259 0 nvme0n1 " + b" ".join(b"%d" % value for value in values)).rows
    assert row.reads == values[0]
    assert row.read_bytes == values[2] * 512
    assert row.queue_s == values[10] / 1000


@given(st.lists(st.integers(0, 2**64 - 1), min_size=11, max_size=17))
def test_no_line_gives_more_bytes_than_a_counter_holds(values: list[int]) -> None:
    parsed = parse_diskstats(b" 259 0 nvme0n1 " + b" ".join(b"%d" % value for value in values))
    assert len(parsed.rows) + len(parsed.rejects) == 1
    assert all(max(row.read_bytes, row.write_bytes) < 2**64 for row in parsed.rows)


@given(st.binary(max_size=300))
def test_any_bytes_give_rows_and_rejects(data: bytes) -> None:
    parsed = parse_diskstats(data)
    assert len(parsed.rows) + len(parsed.rejects) == len([line for line in data.split(b"\n") if line.strip()])
