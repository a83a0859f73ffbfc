# SPDX-License-Identifier: Apache-2.0
"""The node dashboard: what each GPU of one node did, and what it waited for, on one time axis with its layers."""

from typing import Final

from dashboard import dashboard
from panels import Json, Panel
from queries import GPU, NODE, dominant_state

OVERVIEW: Final = (
    Panel(
        title="GPUs up",
        description="GPUs that answer. Compare with the number expected: a GPU can vanish without any error.",
        queries=((f"sum(gpufeed_gpu_up{{{GPU}}})", "up"),),
        unit="short",
        kind="stat",
        width=4,
        height=4,
    ),
    Panel(
        title="GPU-equivalents lost to waiting",
        description="How many GPUs' worth of time the selected GPUs spent starved, throttled or faulty.",
        queries=(
            (
                (
                    "sum(rate(gpufeed_gpu_state_seconds_total"
                    f'{{{GPU}, state=~"starved|throttled|fault"}}[$__rate_interval]))'
                ),
                "lost",
            ),
        ),
        unit="short",
        kind="stat",
        width=5,
        height=4,
        thresholds=((None, "#009E73"), (0.5, "#E69F00"), (2, "#D55E00")),
    ),
    Panel(
        title="Share of time not attributed",
        description="Time whose state or cause could not be told. Above 30 % no cause here should be acted upon.",
        queries=(
            (
                # a pair of state and cause appears when it is first above zero
                (
                    "(sum(rate(gpufeed_gpu_state_seconds_total"
                    f'{{{GPU}, state="unknown"}}[$__rate_interval])) or vector(0)) / '
                    f"sum(rate(gpufeed_gpu_tracked_seconds_total{{{GPU}}}[$__rate_interval]))"
                ),
                "unknown",
            ),
        ),
        unit="percentunit",
        kind="stat",
        width=5,
        height=4,
        maximum=1,
        thresholds=((None, "#009E73"), (0.15, "#E69F00"), (0.3, "#D55E00")),
    ),
    Panel(
        title="Checks not ok",
        description="Health checks of the selected GPUs that say degraded or failed.",
        queries=((f"count(gpufeed_gpu_health{{{GPU}}} > 0) or vector(0)", "not ok"),),
        unit="short",
        kind="stat",
        width=5,
        height=4,
        thresholds=((None, "#009E73"), (1, "#D55E00")),
    ),
    Panel(
        title="Lanes stuck",
        description="Readings whose driver or kernel call has not returned. Their series are withdrawn, not frozen.",
        queries=((f"count(gpufeed_lane_stuck_seconds{{{NODE}}} > 0) or vector(0)", "stuck"),),
        unit="short",
        kind="stat",
        width=5,
        height=4,
        thresholds=((None, "#009E73"), (1, "#D55E00")),
    ),
)

TIME: Final = (
    Panel(
        title="Where GPU time goes",
        description="GPUs by state and cause, stacked: the height is the number of GPUs tracked.",
        queries=(
            (
                f"sum by (state, cause) (rate(gpufeed_gpu_state_seconds_total{{{GPU}}}[$__rate_interval]))",
                "{{state}} {{cause}}",
            ),
        ),
        unit="short",
        width=24,
        height=10,
        stacked=True,
    ),
    Panel(
        title="Busy share of each GPU",
        description="Share of time with kernels that compute or move device memory; a collective that spins is not.",
        queries=(
            (
                f'sum by (gpu) (rate(gpufeed_gpu_state_seconds_total{{{GPU}, state="busy"}}[$__rate_interval]))',
                "GPU {{gpu}}",
            ),
        ),
        unit="percentunit",
        maximum=1,
    ),
    Panel(
        title="Starved share of each GPU and cause",
        description="Share of time a GPU's job was active and the GPU waited, by what it waited for.",
        queries=(
            (
                (
                    "sum by (gpu, cause) (rate(gpufeed_gpu_state_seconds_total"
                    f'{{{GPU}, state="starved"}}[$__rate_interval])) > 0.01'
                ),
                "GPU {{gpu}} starved {{cause}}",
            ),
        ),
        unit="percentunit",
        maximum=1,
    ),
)

LAYERS: Final = (
    Panel(
        title="Storage read",
        description="Bytes from devices and servers, not from the page cache.",
        queries=(
            (
                f"sum by (kind, target) (rate(gpufeed_storage_read_bytes_total{{{NODE}}}[$__rate_interval]))",
                "{{kind}} {{target}}",
            ),
        ),
        unit="Bps",
    ),
    Panel(
        title="Storage read latency",
        description="Mean time of one read operation as the client sees it.",
        queries=(
            (
                (
                    f"sum by (kind, target) (rate(gpufeed_storage_read_seconds_total{{{NODE}}}[$__rate_interval])) / "
                    f"(sum by (kind, target) (rate(gpufeed_storage_reads_total{{{NODE}}}[$__rate_interval])) > 0)"
                ),
                "{{kind}} {{target}}",
            ),
        ),
        unit="s",
    ),
    Panel(
        title="Fabric",
        description="Bytes through each RDMA port.",
        queries=(
            (f"rate(gpufeed_ib_port_receive_bytes_total{{{NODE}}}[$__rate_interval])", "{{device}} receive"),
            (f"rate(gpufeed_ib_port_transmit_bytes_total{{{NODE}}}[$__rate_interval])", "{{device}} transmit"),
        ),
        unit="Bps",
    ),
    Panel(
        title="NVLink",
        description="Bytes over all links of each GPU.",
        queries=(
            (f"rate(gpufeed_nvlink_receive_bytes_total{{{GPU}}}[$__rate_interval])", "GPU {{gpu}} receive"),
            (f"rate(gpufeed_nvlink_transmit_bytes_total{{{GPU}}}[$__rate_interval])", "GPU {{gpu}} transmit"),
        ),
        unit="Bps",
    ),
    Panel(
        title="PCIe",
        description="Bytes to and from each GPU over its slot.",
        queries=(
            (f"rate(gpufeed_gpu_pcie_receive_bytes_total{{{GPU}}}[$__rate_interval])", "GPU {{gpu}} receive"),
            (f"rate(gpufeed_gpu_pcie_transmit_bytes_total{{{GPU}}}[$__rate_interval])", "GPU {{gpu}} transmit"),
        ),
        unit="Bps",
    ),
    Panel(
        title="Pressure",
        description="Share of time in which at least one task of the node waited for this resource.",
        queries=((f"rate(gpufeed_pressure_waiting_seconds_total{{{NODE}}}[$__rate_interval])", "{{resource}}"),),
        unit="percentunit",
        maximum=1,
    ),
)

HARDWARE: Final = (
    Panel(
        title="Tensor activity",
        description="Share of time the tensor pipes were active, of all of them.",
        queries=(
            (
                f'rate(gpufeed_gpu_engine_active_seconds_total{{{GPU}, engine="tensor"}}[$__rate_interval])',
                "GPU {{gpu}}",
            ),
        ),
        unit="percentunit",
        maximum=1,
    ),
    Panel(
        title="Power",
        description="Power of each board.",
        queries=((f"gpufeed_gpu_power_watts{{{GPU}}}", "GPU {{gpu}}"),),
        unit="watt",
    ),
    Panel(
        title="Temperature",
        description="GPU and memory temperature.",
        queries=((f"gpufeed_gpu_temperature_celsius{{{GPU}}}", "GPU {{gpu}} {{sensor}}"),),
        unit="celsius",
        minimum=None,
    ),
    Panel(
        title="Clock held down, by reason",
        description="Share of time the driver held the clock down. A power cap at full load is normal.",
        queries=(
            (
                f"rate(gpufeed_gpu_clock_event_seconds_total{{{GPU}}}[$__rate_interval]) > 0.01",
                "GPU {{gpu}} {{reason}}",
            ),
        ),
        unit="percentunit",
        maximum=1,
    ),
)


STATES: Final = (
    Panel(
        title="State of each GPU",
        description="What most of a GPU's time went to, moment by moment. The shares stand below.",
        queries=((dominant_state(GPU), "{{instance}} GPU {{gpu}}"),),
        unit="short",
        kind="state-timeline",
        width=24,
        height=9,
        minimum=None,
    ),
)

VERDICTS: Final = (
    Panel(
        title="Checks that are not ok",
        description="1 is degraded, 2 is failed. Empty is good news only while gpufeed itself is up.",
        queries=((f"gpufeed_gpu_health{{{GPU}}} > 0", ""),),
        unit="short",
        kind="table",
        names=(("instance", "Node"), ("gpu", "GPU"), ("check", "Check"), ("Value", "Level")),
        link=("gpu", "gpu", "gpu"),
    ),
    Panel(
        title="Alerts",
        description="What Prometheus has firing or pending for these nodes.",
        queries=((f"ALERTS{{{NODE}}}", ""),),
        unit="short",
        kind="table",
        names=(("alertname", "Alert"), ("alertstate", "State"), ("severity", "Severity"), ("instance", "Node")),
        link=("instance", "node", "instance"),
    ),
)


def node() -> Json:
    """The dashboard's JSON."""
    return dashboard(
        "node",
        "Node",
        "Was every GPU of this node fed, and if not, what did it wait for?",
        (
            ("Now", OVERVIEW),
            ("Where the time goes", (*STATES, *TIME)),
            ("Layers", LAYERS),
            ("Hardware", HARDWARE),
            ("Not well", VERDICTS),
        ),
        ("gpu",),
    )
