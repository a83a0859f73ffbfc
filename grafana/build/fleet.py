# SPDX-License-Identifier: Apache-2.0
"""The fleet dashboard: how many GPUs' worth of time is lost, to what, and where to look first."""

from typing import Final

from dashboard import dashboard
from panels import Json, Panel
from queries import LOST, NODE, rate, state_time

_GOOD, _WARN, _BAD = "#009E73", "#E69F00", "#D55E00"

WORKING: Final = f'{NODE}, state=~"busy|communicating"'
REMOTE: Final = f'{NODE}, kind!="block"'

NOW: Final = (
    Panel(
        title="GPUs up",
        description="GPUs that answer, of the nodes chosen.",
        queries=((f"sum(gpufeed_gpu_up{{{NODE}}})", "up"),),
        unit="short",
        kind="stat",
        width=4,
        height=4,
    ),
    Panel(
        title="GPUs missing",
        description="GPUs that nodes should have, by configuration or memory, less those present.",
        queries=(
            (
                f"sum(max by (instance) (gpufeed_gpus_expected{{{NODE}}})) - sum(gpufeed_gpus_present{{{NODE}}})",
                "missing",
            ),
        ),
        unit="short",
        kind="stat",
        width=4,
        height=4,
        minimum=None,
        thresholds=((None, _GOOD), (1, _BAD)),
    ),
    Panel(
        title="GPU-equivalents lost",
        description="GPUs' worth of time spent starved, throttled or faulty.",
        queries=(
            (
                (
                    f"sum({rate('gpu_state_seconds_total', f'{NODE}, {LOST}')}) or 0 * sum(gpufeed_probe_up{{{NODE}}})"
                ),  # without any node: no data rather than zero
                "lost",
            ),
        ),
        unit="short",
        kind="stat",
        width=4,
        height=4,
        thresholds=((None, _GOOD), (1, _WARN), (8, _BAD)),
    ),
    Panel(
        title="Share of time busy",
        description="Of the time of all GPUs, idle ones included.",
        queries=(
            (
                f"sum({rate('gpu_state_seconds_total', WORKING)}) / sum({rate('gpu_tracked_seconds_total', NODE)})",
                "busy",
            ),
        ),
        unit="percentunit",
        kind="stat",
        width=4,
        height=4,
        maximum=1,
    ),
    Panel(
        title="Nodes without readings",
        description="Nodes whose probe is down, or that do not answer Prometheus.",
        queries=(
            (
                f"(count(gpufeed_probe_up{{{NODE}}} == 0) or vector(0)) + (count(up{{{NODE}}} == 0) or vector(0))",
                "blind",
            ),
        ),
        unit="short",
        kind="stat",
        width=4,
        height=4,
        thresholds=((None, _GOOD), (1, _BAD)),
    ),
    Panel(
        title="Checks not ok",
        description="Health checks of GPUs that say degraded or failed.",
        queries=((f"count(gpufeed_gpu_health{{{NODE}}} > 0) or vector(0)", "not ok"),),
        unit="short",
        kind="stat",
        width=4,
        height=4,
        thresholds=((None, _GOOD), (1, _BAD)),
    ),
)

TIME: Final = (
    Panel(
        title="GPUs by state and cause",
        description="Stacked: the height is the number of GPUs tracked.",
        queries=((state_time(NODE, "state, cause"), "{{state}} {{cause}}"),),
        unit="short",
        width=24,
        height=10,
        stacked=True,
    ),
    Panel(
        title="GPU-equivalents lost per cause",
        description="GPUs' worth of time spent starved, throttled or faulty, by what they waited for.",
        queries=((state_time(f"{NODE}, {LOST}", "state, cause"), "{{state}} {{cause}}"),),
        unit="short",
        stacked=True,
    ),
    Panel(
        title="Availability",
        description="Share of the expected GPUs that are present and answer.",
        queries=(
            (f"sum(gpufeed_gpu_up{{{NODE}}}) / sum(max by (instance) (gpufeed_gpus_expected{{{NODE}}}))", "available"),
        ),
        unit="percentunit",
        maximum=1,
    ),
)

WORST: Final = (
    Panel(
        title="Nodes that lose most",
        description="GPUs' worth of time lost, by node. A name leads to the node.",
        queries=((f"topk(10, {state_time(f'{NODE}, {LOST}', 'instance')})", ""),),
        unit="short",
        kind="table",
        names=(("instance", "Node"), ("Value", "GPUs lost")),
        link=("instance", "node", "instance"),
    ),
    Panel(
        title="Jobs that lose most",
        description="GPUs' worth of time lost, by job. An id leads to the job.",
        queries=(
            (
                (
                    "topk(10, sum by (scheduler, job_id) (max by (job, instance, uuid, scheduler, job_id) "
                    f"(gpufeed_gpu_job_info{{{NODE}}}) * on (job, instance, uuid) group_left () "
                    f"{state_time(f'{NODE}, {LOST}', 'job, instance, uuid')}))"
                ),
                "",
            ),
        ),
        unit="short",
        kind="table",
        names=(("scheduler", "Scheduler"), ("job_id", "Job"), ("Value", "GPUs lost")),
        link=("job_id", "job", "job_id"),
    ),
)

LAYERS: Final = (
    Panel(
        title="Storage read",
        description="Bytes from file systems of other machines, by kind and target, over all nodes.",
        queries=((f"sum by (kind, target) ({rate('storage_read_bytes_total', REMOTE)})", "{{kind}} {{target}}"),),
        unit="Bps",
    ),
    Panel(
        title="Fabric ports in use",
        description="Bytes received over all ports, as a share of what they could.",
        queries=((
            (f"sum by (instance) ({rate('ib_port_receive_bytes_total', NODE)}) / "
            f"sum by (instance) (gpufeed_ib_port_rate_bytes_per_second{{{NODE}}})"), "{{instance}}",
        ),),
        unit="percentunit", maximum=1,
    ),
)  # fmt: skip


def fleet() -> Json:
    """The dashboard's JSON."""
    return dashboard(
        "fleet", "Fleet", "How much GPU time is lost, to what, and where?",
        (("Now", NOW), ("Where the time goes", TIME), ("Where to look first", WORST), ("Layers", LAYERS)),
    )  # fmt: skip
