# SPDX-License-Identifier: Apache-2.0
"""Statistics of network drivers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.ethtool import is_wanted, parse_ethtool_text, parse_names, sort_statistics

TEXT = b"""\
# ethtool -S eth0
NIC statistics:
     rx0_bytes: 5
     rx_discards_phy: 12028
     [0]: rx_ucast: 3
     port.rx_dropped: 401
     a name: with colons: 7

no value at all
"""


@pytest.mark.parametrize(
    "name",
    [
        "rx_discards_phy",  # mlx5
        "rx_prio3_pause",
        "tx_prio7_pause_duration",
        "outbound_pci_stalled_wr",
        "rx_pause_duration_prio_0",  # mlx4
        "pfc_pri5_rx_duration_us",  # bnxt_en
        "tx_pfc_ena_frames_pri2",
        "rx_priority_1_xoff.nic",  # ice
        "port.tx_priority_1_xoff",  # i40e
        "frames_rx_pripause",  # ionic
        "pps_allowance_exceeded",  # ena
        "rx_global_pause_duration",
    ],
)
def test_what_tells_of_loss_or_waiting_is_on_the_list(name: str) -> None:
    assert is_wanted(name)


@pytest.mark.parametrize("name", ["rx0_bytes", "rx_prio8_pause", "ch3_poll", "rx_bytes_phy", "", "xrx_discards_phy"])
def test_what_belongs_to_a_queue_or_says_nothing_new_is_not(name: str) -> None:
    assert not is_wanted(name)
    found = sort_statistics([(name, 1)])
    assert (found.events, found.pause_s, found.pci_stall_ratio) == ({}, {}, {})


def test_each_statistic_becomes_what_it_is() -> None:
    found = sort_statistics(
        [
            ("rx_discards_phy", 3),
            ("rx_prio3_pause", 9),
            ("rx_prio3_pause_duration", 1_500_000),
            ("rx_prio4_pause_duration", 500_000),
            ("tx_prio3_pause_duration", 250_000),
            ("outbound_pci_stalled_rd", 37),
            ("outbound_pci_stalled_wr", 0),
            ("outbound_pci_stalled_rd_events", 12),
        ]
    )
    assert found.events == {"rx_discards_phy": 3, "rx_prio3_pause": 9, "outbound_pci_stalled_rd_events": 12}
    assert found.pause_s == {"receive": 2.0, "transmit": 0.25}
    assert found.priority_pause_s == {"receive": {"3": 1.5, "4": 0.5}, "transmit": {"3": 0.25}}
    assert found.pci_stall_ratio == {"read": 0.37, "write": 0.0}


@pytest.mark.parametrize(
    ("name", "direction", "priority"),
    [
        ("rx_pause_duration_prio_2", "receive", "2"),
        ("pfc_pri2_tx_duration_us", "transmit", "2"),
        ("tx_prio2_pause_duration", "transmit", "2"),
    ],
)
def test_a_pause_of_one_priority_is_found_in_every_drivers_spelling(name: str, direction: str, priority: str) -> None:
    found = sort_statistics([(name, 4_000_000)])
    assert found.priority_pause_s == {direction: {priority: 4.0}}
    assert found.pause_s == {direction: 4.0}


def test_a_pause_of_the_whole_card_has_no_priority() -> None:
    found = sort_statistics([("rx_global_pause_duration", 1_000_000), ("tx_pause_duration", 2_000_000)])
    assert found.pause_s == {"receive": 1.0, "transmit": 2.0}
    assert found.priority_pause_s == {}


def test_a_stall_of_more_than_all_the_time_is_none() -> None:
    assert sort_statistics([("outbound_pci_stalled_rd", 101)]).pci_stall_ratio == {}


def test_of_a_name_that_stands_twice_the_first_counts() -> None:
    assert sort_statistics([("rx_discards_phy", 3), ("rx_discards_phy", 5)]).events == {"rx_discards_phy": 3}


def test_the_printed_form_is_read_line_by_line() -> None:
    parsed = parse_ethtool_text(TEXT)
    assert parsed.rows == (
        ("rx0_bytes", 5),
        ("rx_discards_phy", 12028),
        ("[0]: rx_ucast", 3),
        ("port.rx_dropped", 401),
        ("a name: with colons", 7),
    )
    assert [error.excerpt for error in parsed.rejects] == ["b'no value at all'"]


def test_a_value_that_is_not_known_is_an_error_of_its_line() -> None:
    parsed = parse_ethtool_text(b"a: 1\nb: \nc: -1\n: 4\n")
    assert parsed.rows == (("a", 1),)
    assert len(parsed.rejects) == 3


def test_names_stand_each_in_its_place() -> None:
    data = b"rx_bytes".ljust(32, b"\0") + b"x" * 32 + b" tx \0garbage".ljust(32, b"\0") + b"beyond"
    assert parse_names(data, 3) == ("rx_bytes", "x" * 32, "tx")
    with pytest.raises(ParseError, match="4 names"):
        parse_names(data, 4)


@given(st.binary(max_size=300))
def test_any_bytes_give_values_or_rejects(data: bytes) -> None:
    parsed = parse_ethtool_text(data)
    found = sort_statistics(parsed.rows)
    assert all(value >= 0 for value in found.events.values())
    assert all(0 <= ratio <= 1 for ratio in found.pci_stall_ratio.values())


@given(st.binary(max_size=200), st.integers(0, 8))
def test_any_bytes_give_names_or_an_error(data: bytes, count: int) -> None:
    try:
        assert len(parse_names(data, count)) == count
    except ParseError:
        assert len(data) < count * 32


@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[rt]x_prio[0-7]_pause_duration|outbound_pci_stalled_(rd|wr)", fullmatch=True),
            st.integers(0, 2**64 - 1),
        )
    )
)
def test_pauses_of_priorities_add_up_to_the_cards(pairs: list[tuple[str, int]]) -> None:
    found = sort_statistics(pairs)
    for direction, paused_s in found.pause_s.items():
        assert paused_s == pytest.approx(sum(found.priority_pause_s[direction].values()))
