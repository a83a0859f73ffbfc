# SPDX-License-Identifier: Apache-2.0
"""Files of /sys/class/net."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.ethernet import is_representor, parse_operstate, parse_speed


@pytest.mark.parametrize(
    ("data", "is_up"),
    [
        (b"up\n", True),
        (b"down\n", False),
        (b"lowerlayerdown\n", False),
        (b"dormant", False),
        (b"unknown\n", None),
        (b"", None),
    ],
)
def test_an_interface_is_up_where_it_can_pass_packets(data: bytes, is_up: bool | None) -> None:
    assert parse_operstate(data) is is_up


@pytest.mark.parametrize("data", [b"UP", b"1", b"up up", b"\xff"])
def test_what_is_no_state_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="eth0/operstate"):
        parse_operstate(data, "eth0/operstate")


@pytest.mark.parametrize(
    ("data", "bytes_per_s"),
    [
        (b"100000\n", 12.5e9),
        (b"1000", 0.125e9),
        (b"10", 1.25e6),
        (b"-1\n", None),
        (b"4294967295\n", None),
        (b"0", None),
        (b"", None),
    ],
)
def test_speed_is_in_bytes_per_second_and_absent_where_it_is_not_known(data: bytes, bytes_per_s: float | None) -> None:
    assert parse_speed(data) == bytes_per_s


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        (b"pf0vf3\n", True),
        (b"c1pf0sf12", True),
        (b"p0\n", False),
        (b"pf0", False),
        (b"", False),
    ],
)
def test_the_near_end_of_a_virtual_function_is_known_by_its_port(name: bytes, is_one: bool) -> None:
    assert is_representor(name) is is_one


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    is_representor(data)
    for parse in (parse_operstate, parse_speed):
        try:
            value = parse(data)
        except ParseError:
            continue
        assert value is None or value >= 0
