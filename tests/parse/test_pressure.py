# SPDX-License-Identifier: Apache-2.0
"""Files of /proc/pressure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.pressure import PressureTotals, parse_pressure

SOME = b"some avg10=1.53 avg60=0.87 avg300=0.20 total=4500000\n"
FULL = b"full avg10=0.00 avg60=0.10 avg300=0.05 total=1250000\n"


def test_totals_are_in_seconds() -> None:
    assert parse_pressure(SOME + FULL) == PressureTotals(some_s=4.5, full_s=1.25)


def test_cpu_of_older_kernels_has_no_full_line() -> None:
    assert parse_pressure(SOME) == PressureTotals(some_s=4.5)


def test_irq_has_no_some_line() -> None:
    assert parse_pressure(FULL) == PressureTotals(full_s=1.25)


def test_unknown_lines_and_columns_are_left_alone() -> None:
    data = b"most total=1\nsome avg10=0.00 burst=3 total=1000000 more=2\n"
    assert parse_pressure(data) == PressureTotals(some_s=1.0)


@pytest.mark.parametrize("data", [b"", b"some avg10=0.00", b"some avg10=0.00 total=x", b"\x00\xff"])
def test_a_file_without_totals_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="pressure/io"):
        parse_pressure(data, "pressure/io")


@given(st.integers(0, 2**63), st.integers(0, 2**63))
def test_totals_survive_the_kernels_spelling(some_us: int, full_us: int) -> None:
    text = "".join(
        f"{kind} avg10=0.00 avg60=0.00 avg300=0.00 total={us}\n" for kind, us in (("some", some_us), ("full", full_us))
    )
    assert parse_pressure(text.encode()) == PressureTotals(some_s=some_us / 1e6, full_s=full_us / 1e6)


@given(st.binary(max_size=200))
def test_any_bytes_give_totals_or_a_parse_error(data: bytes) -> None:
    try:
        totals = parse_pressure(data)
    except ParseError:
        return
    assert totals != PressureTotals()
