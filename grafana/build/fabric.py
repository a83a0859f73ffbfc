# SPDX-License-Identifier: Apache-2.0
"""The fabric dashboard: ports of the interconnect between nodes, and NVLink within them."""

from typing import Final

from dashboard import dashboard
from panels import Json, Panel
from queries import NODE, PORT, rate

_PORT: Final = "{{instance}} {{device}}:{{port}}"
_GOOD, _BAD = "#009E73", "#D55E00"
REMOTE_STARVED: Final = f'{NODE}, state="starved", cause=~"fabric|nvlink"'

NOW: Final = (
    Panel(
        title="Ports not active",
        description="Ports whose logical state is not active (4).",
        queries=((f"count(gpufeed_ib_port_state_id{{{PORT}}} != 4) or vector(0)", "not active"),),
        unit="short",
        kind="stat",
        width=6,
        height=4,
        thresholds=((None, _GOOD), (1, _BAD)),
    ),
    Panel(
        title="Counters at their ceiling",
        description="Counters that count no further until somebody resets them.",
        queries=((f"sum(gpufeed_ib_port_saturated_counters{{{PORT}}})", "saturated"),),
        unit="short",
        kind="stat",
        width=6,
        height=4,
        thresholds=((None, _GOOD), (1, _BAD)),
    ),
    Panel(
        title="NVLinks down",
        description="Links that boards have, less those that are active.",
        queries=((f"sum(gpufeed_nvlink_links{{{NODE}}}) - sum(gpufeed_nvlink_links_up{{{NODE}}})", "down"),),
        unit="short",
        kind="stat",
        width=6,
        height=4,
        thresholds=((None, _GOOD), (1, _BAD)),
    ),
    Panel(
        title="GPU-equivalents that wait for it",
        description="GPUs' worth of time starved of fabric or NVLink.",
        queries=((f"sum({rate('gpu_state_seconds_total', REMOTE_STARVED)}) or vector(0)", "waiting"),),
        unit="short",
        kind="stat",
        width=6,
        height=4,
        thresholds=((None, _GOOD), (0.5, "#E69F00"), (2, _BAD)),
    ),
)

FLOW: Final = (
    Panel(
        title="Receive",
        description="Bytes received by each port.",
        queries=((rate("ib_port_receive_bytes_total", PORT), _PORT),),
        unit="Bps",
    ),
    Panel(
        title="Transmit",
        description="Bytes sent by each port.",
        queries=((rate("ib_port_transmit_bytes_total", PORT), _PORT),),
        unit="Bps",
    ),
    Panel(
        title="Use of each port",
        description="Bytes received, as a share of the port's speed.",
        queries=(
            (f"{rate('ib_port_receive_bytes_total', PORT)} / gpufeed_ib_port_rate_bytes_per_second{{{PORT}}}", _PORT),
        ),
        unit="percentunit",
        maximum=1,
    ),
    Panel(
        title="Held back by the network",
        description="Ticks with data ready and no credit; a tick's length differs by device.",
        queries=((rate("ib_port_transmit_wait_ticks_total", PORT), _PORT),),
        unit="short",
    ),
)

ERRORS: Final = (
    Panel(
        title="Port errors",
        description="By the kernel's name; those that did not rise are left out.",
        queries=((f"{rate('ib_port_errors_total', PORT)} > 0", f"{_PORT} {{{{type}}}}"),),
        unit="short",
    ),
    Panel(
        title="Transport events",
        description="By the kernel's name; those that did not rise are left out.",
        queries=((f"{rate('ib_port_hw_events_total', PORT)} > 0", f"{_PORT} {{{{event}}}}"),),
        unit="short",
    ),
    Panel(
        title="Flaps",
        description="Times a port went down and came back.",
        queries=((f"increase(gpufeed_ib_port_flaps_total{{{PORT}}}[$__rate_interval])", _PORT),),
        unit="short",
    ),
    Panel(
        title="Checks that are not ok",
        description="1 is degraded, 2 is failed.",
        queries=((f"gpufeed_ib_health{{{PORT}}} > 0", ""),),
        unit="short",
        kind="table",
        names=(("instance", "Node"), ("device", "Device"), ("port", "Port"), ("check", "Check"), ("Value", "Level")),
        link=("instance", "node", "instance"),
    ),
)

NVLINK: Final = (
    Panel(
        title="NVLink of each GPU",
        description="Data bytes received over all links.",
        queries=((rate("nvlink_receive_bytes_total", NODE), "{{instance}} GPU {{gpu}}"),),
        unit="Bps",
    ),
    Panel(
        title="NVLink errors",
        description="Errors over all links of each GPU; those that did not rise are left out.",
        queries=((f"{rate('nvlink_errors_total', NODE)} > 0", "{{instance}} GPU {{gpu}} {{type}}"),),
        unit="short",
    ),
)

ETHERNET: Final = (
    Panel(
        title="Network interfaces", description="Bytes received through the kernel. Remote memory access goes past it.",
        queries=((rate("net_receive_bytes_total", NODE), "{{instance}} {{device}}"),), unit="Bps",
    ),
    Panel(
        title="Pause", description="Time of pause: receive, the network kept us from sending; transmit, we kept it.",
        queries=((rate("net_pause_seconds_total", NODE), "{{instance}} {{device}} {{direction}}"),),
        unit="percentunit",
    ),
)  # fmt: skip


def fabric() -> Json:
    """The dashboard's JSON."""
    return dashboard(
        "fabric", "Fabric", "Do bytes between GPUs and nodes flow, and what holds them up?",
        (("Now", NOW), ("Flow", FLOW), ("Errors", ERRORS), ("NVLink", NVLINK), ("Ethernet", ETHERNET)), ("device",),
    )  # fmt: skip
