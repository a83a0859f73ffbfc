# SPDX-License-Identifier: Apache-2.0
"""The number grammars of sysfs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.number import MAX_COUNT, counts, parse_count, parse_float, parse_integer


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"42\n", 42),
        (b"42", 42),
        (b"  42 \n\n", 42),
        (b"-1\n", -1),
        (b"+7", 7),
        (b"0x3a4\n", 0x3A4),
        (b"0XFF", 255),
        (b"18446744073709551615", MAX_COUNT),
        (b"", None),
        (b"\n", None),
        (b"N/A (no PMA)\n", None),
        (b"n/a", None),
    ],
)
def test_an_integer_is_a_value_or_unknown(data: bytes, value: int | None) -> None:
    assert parse_integer(data) == value


@pytest.mark.parametrize(
    "data", [b"1_000", b"twelve", b"1 2", b"0x", b"0xgg", b"1.5", b"18446744073709551616", b"\xff", b"9" * 5000]
)
def test_what_is_no_integer_is_an_error_that_names_its_place(data: bytes) -> None:
    with pytest.raises(ParseError, match="lid: expected an integer"):
        parse_integer(data, "lid")


def test_minus_one_is_an_unknown_count_and_other_negatives_are_wrong() -> None:
    assert parse_count(b"-1\n") is None
    assert parse_count(b"0\n") == 0
    assert parse_count(b"") is None
    with pytest.raises(ParseError, match="a count"):
        parse_count(b"-2\n")


@pytest.mark.parametrize(("data", "value"), [(b"2.5\n", 2.5), (b"1e3", 1000.0), (b".5", 0.5), (b"N/A", None)])
def test_a_fraction_is_a_value_or_unknown(data: bytes, value: float | None) -> None:
    assert parse_float(data) == value


@pytest.mark.parametrize("data", [b"inf", b"nan", b"1e999", b"1,5", b"1_0.0"])
def test_what_is_not_finite_is_no_number(data: bytes) -> None:
    with pytest.raises(ParseError, match="a number"):
        parse_float(data)


@pytest.mark.parametrize("words", [[], [b"1"], [b"1", b"x"], [b"1", b"-1"], [b"1", b"9" * 21], [b"1", b"9" * 20]])
def test_too_few_or_odd_counts_are_an_error(words: list[bytes]) -> None:
    with pytest.raises(ParseError, match="counts"):
        counts(words, 2)


def test_more_counts_than_known_are_kept() -> None:
    assert counts([b"1", b"2", b"3"], 2) == (1, 2, 3)


@given(st.integers(-(2**63), MAX_COUNT))
def test_an_integer_survives_its_own_spelling(value: int) -> None:
    assert parse_integer(b"%d\n" % value) == value


@given(st.integers(0, MAX_COUNT))
def test_a_hexadecimal_survives_its_own_spelling(value: int) -> None:
    assert parse_integer(b"0x%x\n" % value) == value


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_a_fraction_survives_its_own_spelling(value: float) -> None:
    assert parse_float(repr(value).encode()) == value
