# SPDX-License-Identifier: Apache-2.0
"""Statistics of the nvidia-fs driver, in both formats."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.nvidia_fs import GdsStats, parse_gds_stats

ON = b"""\
GDS Version: 1.9.1.3
NVFS statistics(ver: 4.0)
NVFS Driver(version: 2.20.5)
Mellanox PeerDirect Supported: True
IO stats: Enabled, peer IO stats: Enabled
Logging level: info

Active Shadow-Buffer (MiB): 128
Active Process: 8
Batches\t\t\t\t: n=2 ok=2 err=0 Avg-Submit-Latency(usec)=7
Reads\t\t\t\t: n=1203 ok=1200 err=2 readMiB=4800 io_state_err=1
Reads\t\t\t\t: Bandwidth(MiB/s)=900 Avg-Latency(usec)=4200
Sparse Reads\t\t        : n=9 io=9 holes=9 pages=9
Writes\t\t\t\t: n=50 ok=50 err=1 writeMiB=200 io_state_err=0 pg-cache=0 pg-cache-fail=0 pg-cache-eio=0
Writes\t\t\t\t: Bandwidth(MiB/s)=0 Avg-Latency(usec)=0
Mmap\t\t\t\t: n=183 ok=183 err=0 munmap=183
Bar1-map\t\t\t: n=183 ok=183 err=0 free=180 callbacks=3 active=0 delay-frees=0
Error\t\t\t\t: cpu-gpu-pages=0 sg-ext=0 dma-map=0 dma-ref=0
Ops\t\t\t\t: Read=3 Write=1 BatchIO=0
GPU 0000:8b:00.0 uuid:11111111-2222-3333-4444-555555555555 : Registered_MiB=64 Cache_MiB=0 max_pinned_MiB=64
"""

OFF = b"""\
NVFS Driver(version: 2.17.5)
IO stats: Disabled, peer IO stats: Disabled

Reads                           : err=4 io_state_err=0
Sparse Reads                    : n=0 io=0 holes=0 pages=0
Writes                          : err=1 io_state_err=0 pg-cache=0 pg-cache-fail=0 pg-cache-eio=0
Ops                             : Read=0 Write=0 BatchIO=0
"""

OLD = b"""\
NVFS statistics(ver:1.0)
Active Process: 0
Reads : n=63 ok=63 err=0 readmb=84 io_state_err=0
Reads : Bandwidth(MB/s)=0 Avg-Latency(usec)=0
Writes : n=0 ok=0 err=0 writemb=0 io_state_err=0 pg-cache=0 pg-cache-fail=0 pg-cache-eio=0
Ops : Read=0 Write=0
"""


def test_what_is_counted_is_read_from_the_first_of_two_lines() -> None:
    assert parse_gds_stats(ON) == GdsStats(
        has_io_stats=True,
        driver="2.20.5",
        reads=1200,
        read_bytes=4800 * 1024 * 1024,
        writes=50,
        write_bytes=200 * 1024 * 1024,
        errors=3,
        inflight=4,
    )


def test_disabled_statistics_are_unknown_and_not_zero() -> None:
    """gds-nvidia-fs#31: 'no GDS traffic' where nobody counted."""
    assert parse_gds_stats(OFF) == GdsStats(has_io_stats=False, driver="2.17.5", errors=5, inflight=0)


def test_counts_that_stand_still_since_the_statistics_were_switched_off_are_not_read() -> None:
    stats = parse_gds_stats(ON.replace(b"IO stats: Enabled", b"IO stats: Disabled"))
    assert (stats.has_io_stats, stats.reads, stats.read_bytes, stats.errors) == (False, None, None, 3)


def test_old_versions_say_mb_and_do_not_say_whether_they_count() -> None:
    stats = parse_gds_stats(OLD)
    assert (stats.has_io_stats, stats.driver, stats.read_bytes, stats.write_bytes) == (True, "", 84 * 1024 * 1024, 0)


def test_a_line_that_is_missing_is_unknown() -> None:
    stats = parse_gds_stats(b"Reads : n=1 ok=1 err=0\n")
    assert stats == GdsStats(has_io_stats=True, reads=1)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GPU stats\n",
        b"\x00\xff",
        ON.replace(b"ok=1200", b"ok=many"),
        ON.replace(b"readMiB=4800", b"readMiB=99999999999999"),
    ],
)
def test_another_file_or_a_value_that_is_no_count_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="nvidia-fs"):
        parse_gds_stats(data)


@given(st.integers(0, 2**63), st.integers(0, 2**32), st.integers(0, 2**40))
def test_counts_survive_the_drivers_spelling(ok: int, errors: int, mebibytes: int) -> None:
    text = (
        f"IO stats: Enabled, peer IO stats: Disabled\nReads\t\t: n={ok + errors} ok={ok} err={errors} "
        f"readMiB={mebibytes} io_state_err=0\nWrites\t\t: n=0 ok=0 err=0 writeMiB=0 io_state_err=0\n"
    )
    stats = parse_gds_stats(text.encode())
    assert (stats.reads, stats.errors, stats.read_bytes) == (ok, errors, mebibytes << 20)


@given(st.binary(max_size=300), st.integers(0, len(ON)))
def test_any_bytes_give_counts_or_one_error(noise: bytes, place: int) -> None:
    for data in (noise, ON[:place] + noise + ON[place:]):
        try:
            stats = parse_gds_stats(data)
        except ParseError:
            continue
        assert all(value is None or value >= 0 for value in (stats.reads, stats.errors, stats.inflight))
