# SPDX-License-Identifier: Apache-2.0
"""The GPU dashboard: one board from its time to its errors."""

from typing import Final

from dashboard import dashboard
from panels import Json, Panel
from queries import GPU, dominant_state, increase, rate, state_time

_GOOD, _BAD = "#009E73", "#D55E00"
_ONE: Final = "{{instance}} GPU {{gpu}}"

NOW: Final = (
    Panel(
        title="What it is",
        description="Name, board and firmware of the GPUs chosen.",
        queries=((f"gpufeed_gpu_info{{{GPU}}}", ""),),
        unit="short",
        kind="table",
        width=16,
        height=6,
        names=(
            ("instance", "Node"),
            ("gpu", "GPU"),
            ("name", "Name"),
            ("pci_bus_id", "PCI"),
            ("vbios", "VBIOS"),
            ("uuid", "UUID"),
        ),
        link=("instance", "node", "instance"),
    ),
    Panel(
        title="Checks that are not ok",
        description="1 is degraded, 2 is failed.",
        queries=((f"gpufeed_gpu_health{{{GPU}}} > 0", ""),),
        unit="short",
        kind="table",
        width=8,
        height=6,
        names=(("gpu", "GPU"), ("check", "Check"), ("Value", "Level")),
    ),
)

TIME: Final = (
    Panel(
        title="State",
        description="What most of the time went to, moment by moment.",
        queries=((dominant_state(GPU), _ONE),),
        unit="short",
        kind="state-timeline",
        width=24,
        height=6,
        minimum=None,
    ),
    Panel(
        title="Where the time went",
        description="Share of time by state and cause, over the GPUs chosen.",
        queries=(
            (
                (
                    f"{state_time(GPU, 'state, cause')} / ignoring (state, cause) group_left () "
                    f"sum({rate('gpu_tracked_seconds_total', GPU)})"
                ),
                "{{state}} {{cause}}",
            ),
        ),
        unit="percentunit",
        maximum=1,
        stacked=True,
    ),
    Panel(
        title="How sure",
        description="How far the evidence for the present state outweighs the next explanation.",
        queries=((f"gpufeed_gpu_attribution_confidence_ratio{{{GPU}}}", _ONE),),
        unit="percentunit",
        maximum=1,
    ),
)

WORK: Final = (
    Panel(
        title="Engines",
        description="Share of time each engine was active. They overlap: do not add them up.",
        queries=((rate("gpu_engine_active_seconds_total", GPU), f"{_ONE} {{{{engine}}}}"),),
        unit="percentunit",
        maximum=1,
    ),
    Panel(
        title="Utilization",
        description="A kernel was resident: also while it only waits for a peer.",
        queries=((f"gpufeed_gpu_utilization_ratio{{{GPU}}}", _ONE),),
        unit="percentunit",
        maximum=1,
    ),
    Panel(
        title="Memory used",
        description="Allocated device memory, and all there is.",
        queries=(
            (f"gpufeed_gpu_memory_used_bytes{{{GPU}}}", f"{_ONE} used"),
            (f"gpufeed_gpu_memory_total_bytes{{{GPU}}}", f"{_ONE} total"),
        ),
        unit="bytes",
    ),
    Panel(
        title="NVLink",
        description="Data bytes over all links of the GPU.",
        queries=(
            (rate("nvlink_receive_bytes_total", GPU), f"{_ONE} receive"),
            (rate("nvlink_transmit_bytes_total", GPU), f"{_ONE} transmit"),
        ),
        unit="Bps",
    ),
    Panel(
        title="PCIe",
        description="Bytes to and from the GPU over its slot.",
        queries=(
            (rate("gpu_pcie_receive_bytes_total", GPU), f"{_ONE} receive"),
            (rate("gpu_pcie_transmit_bytes_total", GPU), f"{_ONE} transmit"),
        ),
        unit="Bps",
    ),
    Panel(
        title="Processes",
        description="Processes that hold a context on the GPU.",
        queries=((f"gpufeed_gpu_processes{{{GPU}}}", _ONE),),
        unit="short",
    ),
)

BOARD: Final = (
    Panel(
        title="Power and limit",
        description="Power of the board, and the limit in force.",
        queries=(
            (f"gpufeed_gpu_power_watts{{{GPU}}}", f"{_ONE} power"),
            (f'gpufeed_gpu_power_limit_watts{{{GPU}, limit="enforced"}}', f"{_ONE} limit"),
        ),
        unit="watt",
    ),
    Panel(
        title="Temperature",
        description="Of the GPU and its memory.",
        queries=((f"gpufeed_gpu_temperature_celsius{{{GPU}}}", f"{_ONE} {{{{sensor}}}}"),),
        unit="celsius",
        minimum=None,
    ),
    Panel(
        title="Clocks",
        description="Clock of each domain at the moment of the read.",
        queries=((f"gpufeed_gpu_clock_hertz{{{GPU}}}", f"{_ONE} {{{{domain}}}}"),),
        unit="hertz",
    ),
    Panel(
        title="Clock held down, by reason",
        description="Share of time. Reasons overlap; a power cap at full load is normal.",
        queries=((rate("gpu_clock_event_seconds_total", GPU), f"{_ONE} {{{{reason}}}}"),),
        unit="percentunit",
        maximum=1,
    ),
)

ERRORS: Final = (
    Panel(
        title="XIDs by class", description="Errors the driver reports, by what they mean for the GPU.",
        queries=((increase("gpu_xid_class_errors_total", GPU), f"{_ONE} {{{{class}}}}"),),
        unit="short", thresholds=((None, _GOOD), (1, _BAD)),
    ),
    Panel(
        title="ECC errors", description="Since the driver was loaded; corrected and not.",
        queries=((increase("gpu_ecc_volatile_errors_total", GPU), f"{_ONE} {{{{type}}}}"),),
        unit="short", thresholds=((None, _GOOD), (1, _BAD)),
    ),
    Panel(
        title="NVLink errors", description="Errors over all links of the GPU, by type.",
        queries=((rate("nvlink_errors_total", GPU), f"{_ONE} {{{{type}}}}"),), unit="short",
    ),
    Panel(
        title="PCIe replays", description="Packets sent again. A steady increase is a bad slot, riser or board.",
        queries=((rate("gpu_pcie_replays_total", GPU), _ONE),), unit="short",
    ),
)  # fmt: skip


def gpu() -> Json:
    """The dashboard's JSON."""
    return dashboard(
        "gpu", "GPU", "What does this GPU do, what held it up, and is it well?",
        (("Now", NOW), ("Where the time goes", TIME), ("Work", WORK), ("Board", BOARD), ("Errors", ERRORS)),
        ("gpu",),
    )  # fmt: skip
