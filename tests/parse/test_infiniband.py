# SPDX-License-Identifier: Apache-2.0
"""Files of /sys/class/infiniband."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.infiniband import (
    CEILINGS,
    Rate,
    is_hw_event,
    parse_data_words,
    parse_lid,
    parse_node_guid,
    parse_rate,
    parse_state,
    saturated_counters,
)


@pytest.mark.parametrize(
    ("data", "bytes_per_s", "width", "speed"),
    [
        (b"400 Gb/sec (4X NDR)", 50e9, 4, "NDR"),
        (b"800 Gb/sec (4X XDR)\n", 100e9, 4, "XDR"),
        (b"200 Gb/sec (2X NDR)\n", 25e9, 2, "NDR"),
        (b"100 Gb/sec (4X EDR)\n", 12.5e9, 4, "EDR"),
        (b"56 Gb/sec (4X FDR)\n", 7e9, 4, "FDR"),
        (b"40 Gb/sec (4X FDR10)\n", 5e9, 4, "FDR10"),
        (b"10 Gb/sec (4X)\n", 1.25e9, 4, None),
        (b"2.5 Gb/sec (1X SDR)\n", 0.3125e9, 1, "SDR"),
        (b"2.5\n", 0.3125e9, None, None),
        (b"2500 Mb/sec (1X SDR)\n", 0.3125e9, 1, "SDR"),
        (b"400 Gbps\n", 50e9, None, None),
        (b"0 GB/sec\n", None, None, None),
        (b"10 Gb/sec (0X SDR)\n", 1.25e9, None, "SDR"),
    ],
)
def test_rate_is_read_in_every_spelling(data: bytes, bytes_per_s: float, width: int, speed: str) -> None:
    assert parse_rate(data) == Rate(bytes_per_s=bytes_per_s, width=width, speed=speed)


@pytest.mark.parametrize("data", [b"", b"N/A", b"fast", b"400 Gb/sec (4X NDR", b"-5 Gb/sec", b"\xff\xfe"])
def test_what_is_no_rate_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="mlx5_0/1/rate: expected a rate"):
        parse_rate(data, "mlx5_0/1/rate")


@given(st.integers(1, 2000), st.sampled_from([1, 2, 4, 8, 12]), st.sampled_from(["SDR", "NDR", "XDR"]))
def test_a_rate_survives_the_kernels_spelling(gigabits: int, width: int, speed: str) -> None:
    rate = parse_rate(b"%d Gb/sec (%dX %s)\n" % (gigabits, width, speed.encode()))
    assert rate == Rate(bytes_per_s=gigabits * 1e9 / 8, width=width, speed=speed)


@pytest.mark.parametrize(
    ("data", "number"),
    [
        (b"4: ACTIVE\n", 4),
        (b"4: ACTIVE", 4),
        (b"\n4: ACTIVE\n", 4),
        (b"5: LinkUp\n", 5),
        (b"9: <unknown>\n", 9),
        (b"6: something a newer kernel says\n", 6),
        (b"1\n", 1),
    ],
)
def test_a_state_is_its_number_whatever_the_word(data: bytes, number: int) -> None:
    assert parse_state(data) == number


@pytest.mark.parametrize("data", [b"", b"ACTIVE", b": ACTIVE", b"4 ACTIVE", b"-1: NOP"])
def test_a_state_without_a_number_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="a state"):
        parse_state(data)


def test_a_guid_is_lower_case_and_all_zero_is_none() -> None:
    assert parse_node_guid(b"0C42:a103:00aa:bb01\n") == "0c42:a103:00aa:bb01"
    assert parse_node_guid(b"0000:0000:0000:0000\n") is None
    with pytest.raises(ParseError, match="a GUID"):
        parse_node_guid(b"0c42:a103\n")


@pytest.mark.parametrize(("data", "lid"), [(b"0x3a4\n", 932), (b"0x0\n", None), (b"0xffff\n", None), (b"", None)])
def test_a_lid_is_none_until_a_subnet_manager_gave_one(data: bytes, lid: int | None) -> None:
    assert parse_lid(data) == lid


def test_data_counters_count_words_of_four_bytes_at_every_width() -> None:
    assert parse_data_words(b"231000000000000\n") == 924_000_000_000_000


@pytest.mark.parametrize("data", [b"N/A (no PMA)\n", b"18446744073709551615\n"])
def test_a_data_counter_that_cannot_be_true_is_unknown(data: bytes) -> None:
    assert parse_data_words(data) is None


def test_a_counter_at_the_ceiling_of_its_own_width_is_saturated() -> None:
    values = {
        "excessive_buffer_overrun_errors": 15,
        "link_downed": 255,
        "symbol_error": 255,
        "port_xmit_wait": 4294967295,
        "port_rcv_data": 15,
    }
    assert saturated_counters(values) == ("excessive_buffer_overrun_errors", "link_downed", "port_xmit_wait")


def test_ceilings_are_all_ones() -> None:
    assert all((ceiling & (ceiling + 1)) == 0 for ceiling in CEILINGS.values())


@pytest.mark.parametrize("name", ["out_of_sequence", "np_cnp_sent", "SwLinkUp,32", "rx_icrc_encapsulated", "rx_drops"])
def test_hardware_events_are_events(name: str) -> None:
    assert is_hw_event(name)


@pytest.mark.parametrize("name", ["lifespan", "rx_bytes", "ip4InOctets", "rdma_read_resp_bytes", "active_qps"])
def test_bytes_gauges_and_cache_ages_are_no_events(name: str) -> None:
    assert not is_hw_event(name)


@given(st.binary(max_size=60))
@pytest.mark.parametrize("parse", [parse_rate, parse_state, parse_node_guid, parse_lid, parse_data_words])
def test_any_bytes_give_a_value_or_a_parse_error(parse: Callable[[bytes], object], data: bytes) -> None:
    try:
        parse(data)
    except ParseError as error:
        assert error.what  # noqa: PT017 - either outcome is right
