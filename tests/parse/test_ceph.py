# SPDX-License-Identifier: Apache-2.0
"""Counters of the CephFS client, in one file or several."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.ceph import CephOperation, parse_ceph_metrics

FILES = b"""\
item                               total
------------------------------------------
opened files  / total inodes       0 / 4
pinned i_caps / total inodes       5 / 4

"""

LATENCY = b"""\
item          total       avg_lat(us)     min_lat(us)     max_lat(us)     stdev(us)
-----------------------------------------------------------------------------------
read          800         2500            400             9000            70
write         5           914013          824797          1092343         103476
metadata      79          12856           1572            114572          13262
"""

SIZE = b"""\
item          total       avg_sz(bytes)   min_sz(bytes)   max_sz(bytes)  total_sz(bytes)
----------------------------------------------------------------------------------------
read          801         4194304         4096            4194304         3359637504
write         5           4194304         4194304         4194304         20971520
"""

SUMS = b"""\
item          total       sum_lat(us)     avg_lat(us)
-----------------------------------------------------
read          13          417000          32076

item          total           miss            hit
-------------------------------------------------
d_lease       204             0               918
"""


@pytest.mark.parametrize("files", [(FILES + LATENCY + b"\n" + SIZE,), (LATENCY, SIZE), (SIZE, FILES + LATENCY)])
def test_one_file_and_several_say_the_same(files: tuple[bytes, ...]) -> None:
    operations = parse_ceph_metrics(*files)
    assert operations["write"] == CephOperation(calls=5, moved_bytes=20_971_520)
    assert operations["metadata"] == CephOperation(calls=79)
    assert sorted(operations) == ["metadata", "read", "write"]


def test_a_read_that_ends_between_two_tables_is_not_counted_yet() -> None:
    assert parse_ceph_metrics(LATENCY, SIZE)["read"].calls == 800


def test_a_mean_is_not_taken_for_the_time_spent() -> None:
    assert parse_ceph_metrics(LATENCY)["read"].took_s is None
    assert parse_ceph_metrics(SUMS) == {"read": CephOperation(calls=13, took_s=0.417)}


def test_leases_and_open_files_are_no_operations() -> None:
    assert "d_lease" not in parse_ceph_metrics(SUMS)
    assert "opened" not in parse_ceph_metrics(FILES + LATENCY)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        FILES,
        b"\x00\xff",
        LATENCY.replace(b"800 ", b"-3 "),
        LATENCY.replace(b"2500            400             9000            70", b""),
        LATENCY.replace(b"item          total ", b"item          seen  "),
    ],
)
def test_what_is_no_such_table_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="ceph metrics"):
        parse_ceph_metrics(data)


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**64 - 1))
def test_counts_survive_the_kernels_spelling(calls: int, moved: int) -> None:
    text = f"{SIZE.decode().splitlines()[0]}\n---\n{'read':<14}{calls:<12}{0:<16}{0:<16}{0:<16}{moved}\n"
    if calls < 10**11:  # wider ones run into the next column in the kernel too
        assert parse_ceph_metrics(text.encode())["read"] == CephOperation(calls=calls, moved_bytes=moved)


@given(st.binary(max_size=300), st.integers(0, len(LATENCY)))
def test_any_bytes_give_operations_or_one_error(noise: bytes, place: int) -> None:
    for data in (noise, LATENCY[:place] + noise + LATENCY[place:] + b"\n" + SIZE):
        try:
            operations = parse_ceph_metrics(data)
        except ParseError:
            continue
        assert all((one.calls or 0) >= 0 and (one.moved_bytes or 0) >= 0 for one in operations.values())
