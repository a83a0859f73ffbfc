# SPDX-License-Identifier: Apache-2.0
"""Conditions of a GPU."""

from typing import Final

from gpufeed.alerting.define import Condition, Example, ExampleSeries, Inhibit, Matcher, Select

_GPU: Final = (("gpu", "3"), ("uuid", "GPU-5a"))
_MINUTE_S: Final = 60


def _health(check: str, values: str) -> ExampleSeries:
    return ExampleSeries(metric="gpufeed_gpu_health", labels=(*_GPU, ("check", check)), values=values)


def _in_use(values: str) -> ExampleSeries:
    return ExampleSeries(metric="gpufeed_gpu_in_use_recently", labels=_GPU, values=values)


def _thermal(values: str) -> ExampleSeries:
    return ExampleSeries(
        metric="gpufeed_gpu_clock_event_seconds_total", labels=(*_GPU, ("reason", "hw_thermal")), values=values
    )


def _stuck(lane: str, labels: tuple[tuple[str, str], ...], values: str) -> ExampleSeries:
    return ExampleSeries(metric="gpufeed_lane_stuck_seconds", labels=(("lane", lane), *labels), values=values)


GPU_LOST: Final = Condition(
    name="GpuLost",
    series=Select(metric="gpufeed_gpu_health", matchers=(Matcher("check", "=", "lost"),)),
    threshold=1,
    for_s=_MINUTE_S,
    severity="page",
    severity_idle="ticket",
    in_use="gpu",
    layer="gpu",
    action="drain",
    summary="GPU {gpu} is lost",
    description="GPU {gpu} ({uuid}) fell off its bus or is no longer there. "
    "It counts as lost until it answers again, the node reboots or somebody acknowledges it.",
    inhibits=(Inhibit(targets=("XidGpuUnusable", "GpuHwThermalSlowdown"), equal=("instance", "uuid")),),
    is_event=True,
    examples=(
        Example(
            says="a GPU falls off the bus under a job",
            outcome="fires",
            severity="page",
            series=(_health("lost", "0x4 2x10"), _in_use("1x20")),
            at_s=600,
        ),
        Example(
            says="a GPU nobody uses falls off the bus",
            outcome="fires",
            severity="ticket",
            series=(_health("lost", "0x4 2x10"), _in_use("0x20")),
            at_s=600,
        ),
        Example(
            says="one reading fails and the next is well",
            outcome="silent",
            series=(_health("lost", "0x4 2 0x10"), _in_use("1x20")),
            at_s=360,
        ),
        Example(
            says="an operator releases NVML and resets the GPU: the verdict is gone for five minutes",
            outcome="planned",
            series=(_health("lost", "0x4 stale _x4 0x10"), _in_use("0x20")),
            at_s=600,
        ),
    ),
)

XID_GPU_UNUSABLE: Final = Condition(
    name="XidGpuUnusable",
    series=Select(metric="gpufeed_gpu_health", matchers=(Matcher("check", "=", "xid"),)),
    threshold=1,
    severity="page",
    severity_idle="ticket",
    in_use="gpu",
    layer="gpu",
    action="gpu_reset",
    summary="An XID has left GPU {gpu} unusable",
    description="GPU {gpu} ({uuid}) reported an XID after which it does no more work. "
    "It counts as unusable until it is reset, the node reboots or somebody acknowledges it.",
    is_event=True,
    examples=(
        Example(
            says="a job's GPU reports a fatal XID",
            outcome="fires",
            severity="page",
            series=(_health("xid", "0x4 2x10"), _in_use("1x20")),
            at_s=300,
        ),
        Example(
            says="an idle GPU reports a fatal XID",
            outcome="fires",
            severity="ticket",
            series=(_health("xid", "0x4 2x10"), _in_use("0x20")),
            at_s=300,
        ),
        Example(
            says="a contained error leaves the GPU degraded only",
            outcome="silent",
            series=(_health("xid", "0x4 1x10"), _in_use("1x20")),
            at_s=600,
        ),
        Example(
            says="the node reboots after its GPU was drained for a latched XID",
            outcome="planned",
            series=(_health("xid", "2x4 stale _x4 0x10"), _in_use("0x4 stale _x4 0x10")),
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
    inhibits=(
        Inhibit(targets=("GpuLost", "XidGpuUnusable", "GpuStarvedByStorage", "AttributionBlind", "ExporterStale")),
    ),
    is_event=True,
    examples=(
        Example(
            says="a call on one GPU never comes back",
            outcome="fires",
            severity="ticket",
            series=(_stuck("gpu3", _GPU, "0x4 30+60x10"), _stuck("nvml-init", (), "0x20")),
            at_s=600,
        ),
        Example(
            says="two GPUs whose identity was never read hang: one alert for the driver",
            outcome="fires",
            severity="ticket",
            series=(_stuck("gpu0", (("gpu", "0"),), "0x4 30+60x10"), _stuck("gpu1", (("gpu", "1"),), "0x4 30+60x10")),
            at_s=600,
        ),
        Example(
            says="another lane hangs: not the driver's",
            outcome="silent",
            series=(_stuck("nfs", (), "0x4 30+60x10"), _stuck("gpu3", _GPU, "0x20")),
            at_s=600,
        ),
        Example(
            says="a driver upgrade: loading without persistence mode takes 40 s",
            outcome="planned",
            series=(_stuck("nvml-init", (), "0x4 40 0x10"),),
            at_s=300,
        ),
    ),
)

GPU_HW_THERMAL_SLOWDOWN: Final = Condition(
    name="GpuHwThermalSlowdown",
    series=Select(
        metric="gpufeed_gpu_clock_event_seconds_total",
        matchers=(Matcher("reason", "=", "hw_thermal"),),
        without=("reason",),
    ),
    statistic="rate",
    window_s=10 * _MINUTE_S,
    threshold=0.01,
    for_s=5 * _MINUTE_S,
    severity="ticket",
    layer="gpu",
    action="investigate",
    summary="GPU {gpu} is slowed down by heat {value:percent} of the time",
    description="The hardware of GPU {gpu} ({uuid}) cut its clock by half or more because of heat "
    "in {value:percent} of the last 10 minutes. Every GPU of the job waits for it.",
    examples=(
        Example(
            says="a quarter of the time too hot",
            outcome="fires",
            severity="ticket",
            series=(_thermal("0+15x40"),),
            at_s=1800,
        ),
        Example(says="never too hot", outcome="silent", series=(_thermal("0x40"),), at_s=1800),
        Example(
            says="four seconds at the start of a job after cooling maintenance",
            outcome="planned",
            series=(_thermal("0x9 4x30"),),
            at_s=1080,
        ),
    ),
)

CONDITIONS: Final = (GPU_LOST, NVML_HANG, XID_GPU_UNUSABLE, GPU_HW_THERMAL_SLOWDOWN)
