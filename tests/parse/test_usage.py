# SPDX-License-Identifier: Apache-2.0
"""What jobs use: throttling, reads, switches of their threads."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.cgroup_cpu import CgroupCpu, parse_cgroup_cpu
from gpufeed.parse.process_io import ProcessIo, parse_process_io
from gpufeed.parse.task_status import Switches, parse_switches

UNIFIED = b"""\
usage_usec 9800000
user_usec 61
system_usec 37
core_sched.force_idle_usec 0
nr_periods 39
nr_throttled 7
throttled_usec 2500000
nr_bursts 0
"""


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (UNIFIED, CgroupCpu(used_s=9.8, throttled_periods=7, throttled_s=2.5)),
        (
            b"nr_periods 10\nnr_throttled 3\nthrottled_time 1500000000\n",
            CgroupCpu(throttled_periods=3, throttled_s=1.5),
        ),
        (b"usage_usec 2500000\nuser_usec 61\nsystem_usec 37\n", CgroupCpu(used_s=2.5)),  # no quota
    ],
)
def test_throttling_is_read_from_either_version(data: bytes, expected: CgroupCpu) -> None:
    assert parse_cgroup_cpu(data) == expected


@pytest.mark.parametrize("data", [b"", b"nonsense", b"nr_throttled -1\n", b"nr_throttled 99999999999999999999\n"])
def test_what_is_no_cpu_stat_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match=r"cpu\.stat"):
        parse_cgroup_cpu(data)


def test_reads_of_a_process_are_two_numbers_and_a_negative_third_harms_nobody() -> None:
    data = (
        b"rchar: 750339\nwchar: 818609\nsyscr: 7405\nsyscw: 5245\nread_bytes: 1024\nwrite_bytes: 2048\n"
        b"cancelled_write_bytes: -1024\n\n"
    )
    assert parse_process_io(data) == ProcessIo(read_call_bytes=750339, block_read_bytes=1024)


def test_a_kernel_without_block_accounting_has_read_calls_only() -> None:
    assert parse_process_io(b"rchar: 5\nwchar: 0\n") == ProcessIo(read_call_bytes=5, block_read_bytes=None)


@pytest.mark.parametrize("data", [b"", b"read_bytes: 5\n", b"rchar: x\n", b"rchar: 99999999999999999999\n"])
def test_what_is_no_io_file_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="io"):
        parse_process_io(data)


def test_switches_are_told_by_whose_wish_they_were() -> None:
    data = b"Name:\tvoluntary_ctxt_switches:\t5\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n"
    assert parse_switches(data) == Switches(voluntary=12, involuntary=3)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"voluntary_ctxt_switches:\t12\n",
        b"voluntary_ctxt_switches:\t99999999999999999999\nnonvoluntary_ctxt_switches:\t3\n",
    ],
)
def test_a_status_without_switches_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="ctxt_switches"):
        parse_switches(data)


@given(st.binary(max_size=100), st.sampled_from([parse_cgroup_cpu, parse_process_io, parse_switches]))
def test_any_bytes_give_a_value_or_an_error(data: bytes, parse: Callable[[bytes], object]) -> None:
    for text in (data, b"rchar: 1\n" + data, b"nr_throttled " + data, b"voluntary_ctxt_switches:\t" + data):
        try:
            assert parse(text) is not None
        except ParseError:
            continue
