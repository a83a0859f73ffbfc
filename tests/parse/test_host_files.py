# SPDX-License-Identifier: Apache-2.0
"""/proc/stat and /proc/meminfo."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.cpu_stat import MODES, parse_cpu_stat
from gpufeed.parse.meminfo import MemInfo, parse_meminfo

STAT = b"""\
cpu  2000 100 500 90000 300 10 20 5 700 0
cpu0 1000 50 250 45000 150 5 10 2 350 0
cpu1 1000 50 250 45000 150 5 10 3 350 0
intr 12345 1 2 3
ctxt 99
btime 1700000000
processes 4242
procs_running 3
procs_blocked 2
softirq 1 2 3
"""


def test_processor_time_is_in_seconds_by_mode_without_guests() -> None:
    stat = parse_cpu_stat(STAT, 100)
    assert stat.seconds == {
        "user": 20.0, "nice": 1.0, "system": 5.0, "idle": 900.0,
        "iowait": 3.0, "irq": 0.1, "softirq": 0.2, "steal": 0.05,
    }  # fmt: skip
    assert (stat.cpus, stat.blocked_tasks) == (2, 2)


def test_columns_and_lines_an_old_kernel_lacks_are_absent() -> None:
    stat = parse_cpu_stat(b"cpu  1 2 3 4\n", 100)
    assert set(stat.seconds) == {"user", "nice", "system", "idle"}
    assert (stat.cpus, stat.blocked_tasks) == (0, None)


@pytest.mark.parametrize(
    "data", [b"", b"cpu0 1 2 3 4\n", b"cpu  1 2\n", b"cpu  a b c d\n", b"cpu  1 2 3 4\nprocs_blocked\n"]
)
def test_a_stat_file_without_its_first_line_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="stat"):
        parse_cpu_stat(data, 100)


@given(st.lists(st.integers(0, 2**60), min_size=8, max_size=10), st.integers(1, 512), st.integers(0, 9999))
def test_processor_time_survives_the_kernels_spelling(ticks: list[int], cpus: int, blocked: int) -> None:
    each = "".join(f"cpu{cpu} 1 2 3 4\n" for cpu in range(cpus))
    text = f"cpu  {' '.join(map(str, ticks))}\n{each}procs_blocked {blocked}\n"
    stat = parse_cpu_stat(text.encode(), 100)
    assert stat.seconds == {mode: tick / 100 for mode, tick in zip(MODES, ticks, strict=False)}
    assert (stat.cpus, stat.blocked_tasks) == (cpus, blocked)


def test_memory_is_in_bytes() -> None:
    data = b"MemTotal:       2097152 kB\nMemFree:  1 kB\nMemAvailable:    1024 kB\nSwapTotal: 0 kB\n"
    assert parse_meminfo(data) == MemInfo(total_bytes=2 * 1024**3, available_bytes=1024**2)


def test_available_memory_is_absent_on_an_old_kernel() -> None:
    assert parse_meminfo(b"MemTotal: 1 kB\n") == MemInfo(total_bytes=1024, available_bytes=None)


@pytest.mark.parametrize("data", [b"", b"MemAvailable: 3 kB\n", b"MemTotal: many kB\n"])
def test_memory_without_a_total_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="MemTotal"):
        parse_meminfo(data)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_parse_error(data: bytes) -> None:
    for text in (data, b"cpu " + data, b"MemTotal:" + data):
        with contextlib.suppress(ParseError):
            assert parse_cpu_stat(text, 100).seconds
        with contextlib.suppress(ParseError):
            assert parse_meminfo(text).total_bytes >= 0
