# SPDX-License-Identifier: Apache-2.0
"""Raw numbers as base units; blank and absurd ones as None."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.sources.nvml import quantities as q

BLANK_32 = 0xFFFF_FFFF
BLANK_64 = 0xFFFF_FFFF_FFFF_FFFF

Convert = Callable[[float], float | None]


@pytest.mark.parametrize(
    ("convert", "raw", "expected"),
    [
        (q.count, 7, 7),
        (q.count, 0, 0),
        (q.counter_bytes, BLANK_32, BLANK_32),  # a 32-bit counter about to wrap is no blank
        (q.counter_bytes_of_kib, 3, 3072),
        (q.memory_bytes, 85_520_809_984, 85_520_809_984),
        (q.ratio_of_percent, 42, 0.42),
        (q.ratio_of_percent, 100.4, 1.0),
        (q.watts_of_mw, 699_500, 699.5),
        (q.joules_of_mj, 1_234, 1.234),
        (q.hertz_of_mhz, 1980, 1.98e9),
        (q.celsius, -3, -3.0),
        (q.bytes_per_s_of_mbps, 26562, 26.562e9),
        (q.bytes_per_s_of_mib, 2, 2_097_152.0),
    ],
)
def test_readings_become_base_units(convert: Convert, raw: float, expected: float) -> None:
    assert convert(raw) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("convert", "raw"),
    [
        (q.count, BLANK_32),
        (q.count, BLANK_64),
        (q.counter_bytes, BLANK_64),
        (q.joules_of_mj, BLANK_64),
        (q.memory_bytes, BLANK_64),
        (q.ratio_of_percent, 255),
        (q.ratio_of_percent, -1),
        (q.watts_of_mw, BLANK_32),
        (q.watts_of_mw, 4_991_201_436_214_789_335),  # seen: a 32-bit reading taken for a 64-bit one
        (q.hertz_of_mhz, BLANK_32),
        (q.celsius, BLANK_32),
        (q.bytes_per_s_of_mib, 1e300),
    ],
)
def test_blank_and_absurd_readings_are_no_readings(convert: Convert, raw: float) -> None:
    assert convert(raw) is None


@pytest.mark.parametrize(
    "convert",
    [
        q.count, q.counter_bytes, q.counter_bytes_of_kib, q.memory_bytes, q.ratio_of_percent, q.watts_of_mw,
        q.joules_of_mj, q.hertz_of_mhz, q.celsius, q.bytes_per_s_of_mbps, q.bytes_per_s_of_mib,
    ],
)  # fmt: skip
@given(raw=st.one_of(st.floats(), st.integers(min_value=-(1 << 63), max_value=BLANK_64)))
def test_any_number_gives_a_finite_reading_or_none(convert: Convert, raw: float) -> None:
    value = convert(raw)

    assert value is None or isinstance(value, int) or math.isfinite(value)
    assert value is None or value >= 0 or convert is q.celsius
    assert not isinstance(value, int) or value <= BLANK_64  # what a frame can carry
