# SPDX-License-Identifier: Apache-2.0
"""Conditions on whether the GPUs are there and answer."""

from typing import Final

from gpufeed.alerting.define import Condition, ExampleSeries, Matcher, Select
from gpufeed.alerting.table.examples import GPU, MINUTE_S, fires, gpu_check, gpu_in_use, planned, series, silent
from gpufeed.alerting.table.names import BY_BLIND_NODE, BY_LOST_GPU


def _stuck(lane: str, values: str, **labels: str) -> ExampleSeries:
    return series("lane_stuck_seconds", values, lane=lane, **labels)


def _host(check: str, values: str) -> ExampleSeries:
    return series("host_health", values, check=check)


GPU_LOST: Final = Condition(
    name="GpuLost",
    series=Select(metric="gpufeed_gpu_health", matchers=(Matcher("check", "=", "lost"),)),
    threshold=1,
    for_s=MINUTE_S,
    severity="page",
    severity_idle="ticket",
    in_use="gpu",
    layer="gpu",
    action="drain",
    summary="GPU {gpu} is lost",
    description="GPU {gpu} ({uuid}) fell off its bus or is no longer there. "
    "It counts as lost until it answers again, the node reboots or somebody acknowledges it.",
    inhibits=BY_LOST_GPU,
    is_event=True,
    examples=(
        fires(
            "a GPU falls off the bus under a job", "page", gpu_check("lost", "0x4 2x10"), gpu_in_use("1x20"), at_s=600
        ),
        fires(
            "a GPU nobody uses falls off the bus", "ticket", gpu_check("lost", "0x4 2x10"), gpu_in_use("0x20"), at_s=600
        ),
        silent("one reading fails and the next is well", gpu_check("lost", "0x4 2 0x10"), gpu_in_use("1x20"), at_s=360),
        planned(
            "an operator releases NVML and resets the GPU: the verdict is gone for five minutes",
            gpu_check("lost", "0x4 stale _x4 0x10"),
            gpu_in_use("0x20"),
            at_s=600,
        ),
    ),
)

NVML_HANG: Final = Condition(
    name="NvmlHang",
    series=Select(
        metric="gpufeed_lane_stuck_seconds",
        matchers=(Matcher("lane", "=~", "nvml-init|gpu[0-9]+"),),
        without=("lane", "gpu"),
    ),
    threshold=45,
    severity="ticket",
    layer="gpu",
    action="node_reboot",
    summary="A driver call has not come back for {value:duration}",
    description="A call into the NVIDIA driver has been outstanding for {value:duration} "
    "(GPU: {uuid}; where none is named, the driver as a whole). "
    "The driver may be wedged: new jobs would hang in it too.",
    inhibits=BY_BLIND_NODE,
    is_event=True,
    examples=(
        fires(
            "a call on one GPU never comes back",
            "ticket",
            _stuck("gpu3", "0x4 30+60x10", **GPU),
            _stuck("nvml-init", "0x20"),
            at_s=600,
        ),
        fires(
            "two GPUs whose identity was never read hang: one alert for the driver",
            "ticket",
            _stuck("gpu0", "0x4 30+60x10", gpu="0"),
            _stuck("gpu1", "0x4 30+60x10", gpu="1"),
            at_s=600,
        ),
        silent(
            "another lane hangs: not the driver's",
            _stuck("nfs", "0x4 30+60x10"),
            _stuck("gpu3", "0x20", **GPU),
            at_s=600,
        ),
        planned(
            "a driver upgrade: loading without persistence mode takes 40 s",
            _stuck("nvml-init", "0x4 40 0x10"),
            at_s=300,
        ),
    ),
)

GPU_COUNT_LOW: Final = Condition(
    name="GpuCountLow",
    series=Select(
        metric="gpufeed_host_health", matchers=(Matcher("check", "=~", "gpu_count|driver"),), without=("check",)
    ),
    threshold=1,
    for_s=15 * MINUTE_S,
    severity="ticket",
    layer="gpu",
    action="drain",
    summary="The driver serves fewer GPUs than the node has",
    description="For 15 minutes the driver has shown fewer GPUs than this node should have, or none at all. "
    "A job that starts here gets fewer GPUs than it asked for, or none.",
    examples=(
        fires("seven of eight GPUs after a boot", "ticket", _host("gpu_count", "2x40"), at_s=1200),
        fires("no driver after an upgrade that failed", "ticket", _host("driver", "0x4 2x40"), at_s=1800),
        silent("all there", _host("gpu_count", "0x40"), _host("driver", "0x40"), at_s=1800),
        planned("a driver upgrade of ten minutes", _host("driver", "0x4 2x9 0x30"), at_s=780),
    ),
)

GPU_RECOVERY_PENDING: Final = Condition(
    name="GpuRecoveryPending",
    series=Select(metric="gpufeed_gpu_health", matchers=(Matcher("check", "=", "recovery_action"),)),
    threshold=1,
    for_s=2 * MINUTE_S,
    severity="page",
    severity_idle="ticket",
    in_use="gpu",
    layer="gpu",
    action="gpu_reset",
    summary="The driver asks for a reset or reboot: GPU {gpu}",
    description="For 2 minutes the driver has said that GPU {gpu} ({uuid}) does no more work before a reset or a "
    "reboot. gpufeed_gpu_recovery_action says which of them.",
    examples=(
        fires(
            "a job's GPU asks for a reset",
            "page",
            gpu_check("recovery_action", "0x4 2x20"),
            gpu_in_use("1x30"),
            at_s=600,
        ),
        fires(
            "an idle GPU asks for a reset",
            "ticket",
            gpu_check("recovery_action", "0x4 2x20"),
            gpu_in_use("0x30"),
            at_s=600,
        ),
        silent(
            "the driver asks for a drain only: work may end first",
            gpu_check("recovery_action", "0x4 1x20"),
            gpu_in_use("1x30"),
            at_s=600,
        ),
        planned(
            "the reset of a drained GPU takes a minute",
            gpu_check("recovery_action", "0x4 2 0x20"),
            gpu_in_use("0x30"),
            at_s=360,
        ),
    ),
)

GPU_DRIVER_ERROR: Final = Condition(
    name="GpuDriverError",
    series=Select(metric="gpufeed_gpu_health", matchers=(Matcher("check", "=", "driver_error"),)),
    comparison=">=",
    threshold=1,
    for_s=10 * MINUTE_S,
    severity="ticket",
    layer="gpu",
    action="investigate",
    summary="The driver answers with errors for GPU {gpu}",
    description="For 10 minutes the driver has answered with errors when asked about GPU {gpu} ({uuid}). "
    "Much of what this exporter says of that GPU is missing meanwhile.",
    examples=(
        fires("errors that stay", "ticket", gpu_check("driver_error", "0x4 1x30"), at_s=1200),
        silent("errors of five minutes", gpu_check("driver_error", "0x4 1x4 0x30"), at_s=600),
        planned("a MIG change: two minutes of errors", gpu_check("driver_error", "0x4 1x1 0x30"), at_s=360),
    ),
)

CONDITIONS: Final = (GPU_LOST, NVML_HANG, GPU_COUNT_LOW, GPU_RECOVERY_PENDING, GPU_DRIVER_ERROR)
