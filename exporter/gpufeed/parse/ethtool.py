# SPDX-License-Identifier: Apache-2.0
"""Statistics of network drivers: which of their names mean something to us, and what.

A card has up to a thousand of them, each driver its own, most of them one queue's. Taken are those on a list; each is
an event, a time of pause, or a stall. Source: Documentation/networking/device_drivers, and the drivers themselves.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.model.network import NetDirection, PciDirection
from gpufeed.parse.number import parse_count
from gpufeed.parse.table import Parsed, parse_rows
from gpufeed.units import US_PER_S

STRING_BYTES: Final = 32
"""ETH_GSTRING_LEN: a name's place in the answer of the kernel."""

_PERCENT: Final = 100

EVENTS: Final = frozenset(
    {
        # mlx5
        "rx_discards_phy", "tx_discards_phy", "rx_out_of_buffer", "dev_out_of_buffer", "rx_steer_missed_packets",
        "rx_ecn_mark", "link_down_events_phy", "rx_crc_errors_phy", "rx_symbol_err_phy", "rx_pcs_symbol_err_phy",
        "rx_corrected_bits_phy", "module_unplug", "module_bus_stuck", "module_high_temp",
        "rx_pci_signal_integrity", "tx_pci_signal_integrity", "outbound_pci_stalled_rd_events",
        "outbound_pci_stalled_wr_events", "outbound_pci_buffer_overflow", "rx_pause_ctrl_phy", "tx_pause_ctrl_phy",
        "rx_global_pause", "tx_global_pause", "rx_global_pause_transition", "tx_pause_storm_warning_events",
        "tx_pause_storm_error_events",
        # mlx4
        "rx_pause", "tx_pause", "rx_pause_transition", "tx_pause_transition",
        # bnxt_en
        "rx_pause_frames", "tx_pause_frames", "rx_pfc_frames", "tx_pfc_frames", "link_down_events",
        "rx_fcs_err_frames", "rx_pcs_symbol_err", "rx_corrected_bits", "rx_fec_uncorrectable_blocks",
        "continuous_pause_events", "continuous_roce_pause_events",
        # ionic
        "frames_rx_pause", "frames_tx_pause", "frames_rx_pripause", "frames_tx_pripause", "frames_rx_bad_fcs",
        # ice
        "link_xoff_rx.nic", "link_xoff_tx.nic", "mac_local_faults.nic", "mac_remote_faults.nic", "rx_dropped.nic",
        "rx_crc_errors.nic",
        # i40e
        "port.link_xoff_rx", "port.link_xoff_tx", "port.mac_local_faults", "port.mac_remote_faults",
        "port.rx_dropped", "port.rx_crc_errors",
        # ixgbe, e1000e
        "rx_no_dma_resources", "rx_no_buffer_count", "rx_flow_control_xoff", "tx_flow_control_xoff",
        # ena
        "bw_in_allowance_exceeded", "bw_out_allowance_exceeded", "pps_allowance_exceeded",
        "conntrack_allowance_exceeded",
    }
)  # fmt: skip
"""Names that count events and are one number per card."""

_PRIORITY_EVENT: Final = re.compile(
    r"[rt]x_prio[0-7]_(?:pause|pause_transition|discards|buf_discard|cong_discard|marked)"  # mlx5
    r"|[rt]x_pause(?:_transition)?_prio_[0-7]"  # mlx4
    r"|[rt]x_pfc_ena_frames_pri[0-7]|pfc_pri[0-7]_[rt]x_transitions"  # bnxt_en
    r"|(?:port\.)?[rt]x_priority_[0-7]_xoff(?:\.nic)?"  # ice, i40e
)
_PRIORITY_PAUSE: Final = re.compile(
    r"(?P<a>[rt])x_prio(?P<ap>[0-7])_pause_duration"  # mlx5
    r"|(?P<b>[rt])x_pause_duration_prio_(?P<bp>[0-7])"  # mlx4
    r"|pfc_pri(?P<cp>[0-7])_(?P<c>[rt])x_duration_us"  # bnxt_en
)
"""Microseconds. Which way is which the drivers agree on: `rx` is a pause that we were told to keep."""

_PAUSE: Final = re.compile(r"(?P<way>[rt])x_(?:global_)?pause_duration")
_DIRECTIONS: Final[Mapping[str, NetDirection]] = MappingProxyType({"r": "receive", "t": "transmit"})
_STALLS: Final[Mapping[str, PciDirection]] = MappingProxyType(
    {"outbound_pci_stalled_rd": "read", "outbound_pci_stalled_wr": "write"}
)
"""Percent of the last second: a value of the moment among counters."""

_TITLE: Final = b"NIC statistics:"


@dataclass(slots=True)
class DriverStatistics:
    """Statistics on the list, by what they are."""

    events: dict[str, int] = field(default_factory=dict)
    pause_s: dict[NetDirection, float] = field(default_factory=dict)  # whole card, or added up over priorities
    priority_pause_s: dict[NetDirection, dict[str, float]] = field(default_factory=dict)
    pci_stall_ratio: dict[PciDirection, float] = field(default_factory=dict)


def is_wanted(name: str) -> bool:
    """Whether a statistic of this name is on the list."""
    return (
        name in EVENTS
        or name in _STALLS
        or any(pattern.fullmatch(name) for pattern in (_PRIORITY_EVENT, _PRIORITY_PAUSE, _PAUSE))
    )


def sort_statistics(pairs: Iterable[tuple[str, int]]) -> DriverStatistics:
    """By what they are. Of a name that stands twice the first counts; a stall of more than all the time is none."""
    found = DriverStatistics()
    seen: set[str] = set()
    for name, value in pairs:
        if name in seen:
            continue
        seen.add(name)
        if name in EVENTS or _PRIORITY_EVENT.fullmatch(name):
            found.events[name] = value
        elif (stalled := _STALLS.get(name)) is not None:
            if value <= _PERCENT:
                found.pci_stall_ratio[stalled] = value / _PERCENT
        elif (paused := _PAUSE.fullmatch(name)) is not None:
            _add(found, _DIRECTIONS[paused["way"]], value)
        elif (paused := _PRIORITY_PAUSE.fullmatch(name)) is not None:
            way, priority = (paused["a"] or paused["b"] or paused["c"], paused["ap"] or paused["bp"] or paused["cp"])
            _add(found, _DIRECTIONS[way], value)
            found.priority_pause_s.setdefault(_DIRECTIONS[way], {})[priority] = value / US_PER_S
    return found


def parse_names(data: bytes, count: int) -> tuple[str, ...]:
    """The names in an answer to ETHTOOL_GSTRINGS, each in its place of 32 bytes. Raises ParseError."""
    if len(data) < count * STRING_BYTES:
        raise ParseError(f"{count} names of {STRING_BYTES} bytes", data, "ethtool")
    places = (data[at : at + STRING_BYTES] for at in range(0, count * STRING_BYTES, STRING_BYTES))
    return tuple(place.partition(b"\0")[0].decode("ascii", "replace").strip() for place in places)


def parse_ethtool_text(data: bytes) -> Parsed[tuple[str, int]]:
    """Names and values as `ethtool -S` prints them: a title, then `name: value` a line; names may hold colons."""
    lines = data.split(b"\n")
    return parse_rows((line for line in lines if line.strip() != _TITLE and not line.startswith(b"#")), _parse_line)


def _parse_line(line: bytes) -> tuple[str, int]:
    name, _, value = line.rpartition(b":")
    count = parse_count(value, "ethtool") if name else None
    if count is None:
        raise ParseError("a line 'name: count'", line, "ethtool")
    return name.decode("utf-8", "replace").strip(), count


def _add(found: DriverStatistics, direction: NetDirection, paused_us: int) -> None:
    found.pause_s[direction] = found.pause_s.get(direction, 0.0) + paused_us / US_PER_S
