# SPDX-License-Identifier: Apache-2.0
"""Statistics of Lustre clients, in the spellings of their versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.lustre import LustreCounter, LustreStats, parse_lustre_stats

V28 = b"""\
snapshot_time             1400000000.12345 secs.usecs
read_bytes                40 samples [bytes] 0 4096 81920
write_bytes               3 samples [bytes] 10 1000 2010
osc_read                  2 samples [bytes] 4096 4096 8192
open                      7 samples [regs]
"""

V214 = b"""\
snapshot_time             1700000000.123456789 secs.nsecs
read_bytes                500 samples [bytes] 4096 1048576 524288000 549755813888000
read                      500 samples [usecs] 10 90000 2500000 8836730033307
readdir                   60 samples [usecs] 0 2242 34741 52343869
opencount                 12 samples [reqs] 1 2 13 15
openclosetime             12 samples [usecs] 34302 20804335332 4185265858629453 2084188699388296969
ioctl                     114 samples [reqs]
"""

V217 = b"""\
snapshot_time             1790000000.123456789 secs.nsecs
start_time                1789990000.000000000 secs.nsecs
elapsed_time              10000.123456789 secs.nsecs
read_bytes                              9 samples [bytes] 1 1048576 9000000 81
hybrid_read_bytes                       2 samples [bytes] 1 1048576 2000000 4
cached_read_bytes                       3 samples [bytes] 1 4096 12288 16
pcc_attach                              1 samples [reqs]
"""


def test_bytes_are_the_third_number_and_calls_the_samples() -> None:
    assert parse_lustre_stats(V28).counters["read_bytes"] == LustreCounter(samples=40, unit="bytes", total=81920)
    assert parse_lustre_stats(V214).transferred("read_bytes") == 524_288_000


def test_events_have_no_sum() -> None:
    stats = parse_lustre_stats(V28)
    assert stats.counters["open"] == LustreCounter(samples=7, unit="regs", total=None)
    assert stats.counters["open"].total_s is None
    assert stats.counters["read_bytes"].total_s is None  # a sum, but not of time
    assert not stats.is_timed


@pytest.mark.parametrize("unit", [b"usec", b"usecs"])
def test_usec_and_usecs_are_one_unit(unit: bytes) -> None:
    """LustrePerfMon#26."""
    stats = parse_lustre_stats(V214.replace(b"[usecs]", b"[%s]" % unit))
    assert stats.counters["read"].total_s == 2.5
    assert stats.is_timed


def test_readdir_is_not_taken_for_read() -> None:
    """collectl-lustre#1: constant reads of gigabytes, out of a count of directory reads."""
    stats = parse_lustre_stats(V214.replace(b"read_bytes ", b"xread_bytes").replace(b"\nread ", b"\nxread "))
    assert (stats.transferred("read_bytes"), stats.samples("read"), stats.samples("readdir")) == (0, 0, 60)


def test_a_counter_without_a_line_stands_at_zero() -> None:
    stats = parse_lustre_stats(b"snapshot_time 1.2 secs.nsecs\n")
    assert (stats.counters, stats.transferred("read_bytes"), stats.samples("read")) == ({}, 0, 0)


def test_2_17_has_more_headers_and_wider_names() -> None:
    stats = parse_lustre_stats(V217)
    assert stats.rejects == ()
    assert {name: stats.transferred(name) for name in ("read_bytes", "hybrid_read_bytes", "cached_read_bytes")} == {
        "read_bytes": 9_000_000,
        "hybrid_read_bytes": 2_000_000,
        "cached_read_bytes": 12288,
    }


def test_operations_are_calls_and_neither_bytes_nor_open_files() -> None:
    assert sorted(parse_lustre_stats(V214).operations) == ["ioctl", "read", "readdir"]
    assert sorted(parse_lustre_stats(V217).operations) == ["pcc_attach"]


def test_a_line_that_makes_no_sense_leaves_the_others_and_nothing_is_taken_for_zero_any_more() -> None:
    stats = parse_lustre_stats(V214.replace(b"500 samples [bytes]", b"many samples [bytes]"))
    assert (stats.transferred("read_bytes"), stats.samples("read_bytes")) == (None, None)
    assert stats.counters["read"].samples == 500
    assert [reject.where for reject in stats.rejects] == ["lustre stats"]


def test_a_count_beyond_64_bits_is_rejected() -> None:
    stats = parse_lustre_stats(V28.replace(b" 81920", b" 99999999999999999999"))
    assert stats.transferred("read_bytes") is None
    assert len(stats.rejects) == 1


def test_of_two_lines_with_one_name_the_first_stands() -> None:
    stats = parse_lustre_stats(V28 + b"open 9 samples [regs]\n")
    assert stats.samples("open") == 7


@pytest.mark.parametrize("data", [b"", b"disabled\n write anything to this file to activate\n", b"\x00\xff\xfe"])
def test_another_file_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="llite"):
        parse_lustre_stats(data, "llite")


def test_counters_without_a_header_are_read() -> None:
    assert parse_lustre_stats(b"open 9 samples [regs]").samples("open") == 9


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.sampled_from([25, 35]))
def test_a_counter_survives_the_kernels_spelling(samples: int, total: int, width: int) -> None:
    text = f"snapshot_time x\n{'write_bytes':<{width}} {samples} samples [bytes] -1 7 {total} -5\n"
    assert parse_lustre_stats(text.encode()).counters["write_bytes"] == LustreCounter(
        samples=samples, unit="bytes", total=total
    )


def read_or_refused(data: bytes) -> LustreStats | None:
    try:
        return parse_lustre_stats(data)
    except ParseError:
        return None


@given(st.binary(max_size=300), st.integers(0, len(V214)))
def test_any_bytes_give_counters_or_one_error_and_never_less_than_zero(noise: bytes, place: int) -> None:
    read_or_refused(noise)
    stats = read_or_refused(V214[:place] + noise + V214[place:])
    assert stats is not None
    for name, counter in stats.counters.items():
        assert name
        assert 0 <= counter.samples < 2**64
        assert counter.total is None or 0 <= counter.total < 2**64
