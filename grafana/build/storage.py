# SPDX-License-Identifier: Apache-2.0
"""The storage dashboard: every kind in one vocabulary, and which GPUs wait for it."""

from typing import Final

from dashboard import dashboard
from panels import Json, Panel
from queries import NODE, TARGET, latency, rate, state_time

_TARGET: Final = "{{instance}} {{kind}} {{target}}"
_GOOD, _WARN, _BAD = "#009E73", "#E69F00", "#D55E00"
STARVED: Final = f'{NODE}, state="starved", cause=~"storage|checkpoint"'

NOW: Final = (
    Panel(
        title="GPU-equivalents that wait for it",
        description="GPUs' worth of time starved of storage.",
        queries=((f"sum({rate('gpu_state_seconds_total', STARVED)}) or vector(0)", "waiting"),),
        unit="short",
        kind="stat",
        width=8,
        height=4,
        thresholds=((None, _GOOD), (0.5, _WARN), (2, _BAD)),
    ),
    Panel(
        title="Slowest reads",
        description="Longest mean time of a read among the targets chosen.",
        queries=((f"max({latency('read', TARGET)})", "read"),),
        unit="s",
        kind="stat",
        width=8,
        height=4,
        thresholds=((None, _GOOD), (0.01, _WARN), (0.05, _BAD)),
    ),
    Panel(
        title="Checks not ok",
        description="Health checks of storage that say degraded or failed.",
        queries=((f"count(gpufeed_storage_health{{{TARGET}}} > 0) or vector(0)", "not ok"),),
        unit="short",
        kind="stat",
        width=8,
        height=4,
        thresholds=((None, _GOOD), (1, _BAD)),
    ),
)

FLOW: Final = (
    Panel(
        title="GPUs that wait",
        description="GPUs' worth of time starved of storage, by node.",
        queries=((state_time(STARVED, "instance, state, cause"), "{{state}} {{cause}} {{instance}}"),),
        unit="short",
        width=24,
        height=6,
    ),
    Panel(
        title="Read",
        description="Bytes from the device or the server, without what the page cache answered.",
        queries=((rate("storage_read_bytes_total", TARGET), _TARGET),),
        unit="Bps",
    ),
    Panel(
        title="Write",
        description="Bytes to the device or the server.",
        queries=((rate("storage_write_bytes_total", TARGET), _TARGET),),
        unit="Bps",
    ),
    Panel(
        title="Mean read takes",
        description="Time of one read as this node sees it.",
        queries=((latency("read", TARGET), _TARGET),),
        unit="s",
    ),
    Panel(
        title="Mean write takes",
        description="Time of one write as this node sees it.",
        queries=((latency("write", TARGET), _TARGET),),
        unit="s",
    ),
    Panel(
        title="Reads",
        description="Reads that were completed.",
        queries=((rate("storage_reads_total", TARGET), _TARGET),),
        unit="iops",
    ),
    Panel(
        title="Waiting on the node",
        description="Requests that wait before they are sent, on average.",
        queries=((rate("storage_queue_seconds_total", TARGET), _TARGET),),
        unit="short",
    ),
    Panel(
        title="Disks busy",
        description="Share of time with at least one request under way.",
        queries=((rate("storage_busy_seconds_total", TARGET), _TARGET),),
        unit="percentunit",
        maximum=1,
    ),
    Panel(
        title="Sent again",
        description="Requests for which no answer came in time.",
        queries=(
            (rate("storage_retransmits_total", TARGET), f"{_TARGET} retransmits"),
            (rate("storage_timeouts_total", TARGET), f"{_TARGET} timeouts"),
        ),
        unit="short",
    ),
)

TARGETS: Final = (
    Panel(
        title="Targets", description="What each target is, and how it is mounted.",
        queries=((f"gpufeed_storage_info{{{TARGET}}}", ""),), unit="short", kind="table", width=24,
        names=(("instance", "Node"), ("kind", "Kind"), ("target", "Target"), ("source", "Source"),
               ("fstype", "Type"), ("nconnect", "nconnect")),
        link=("instance", "node", "instance"),
    ),
)  # fmt: skip


def storage() -> Json:
    """The dashboard's JSON."""
    return dashboard(
        "storage", "Storage", "Does storage deliver, and which GPUs wait for it?",
        (("Now", NOW), ("Flow", FLOW), ("Targets", TARGETS)), ("kind", "target"),
    )  # fmt: skip
