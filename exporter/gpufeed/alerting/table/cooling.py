# SPDX-License-Identifier: Apache-2.0
"""Conditions on heat, power, and clocks that are held down."""

from typing import Final

from gpufeed.alerting.define import Condition, ExampleSeries, Inhibit, Matcher, Ratio, Select
from gpufeed.alerting.table.examples import GPU, MINUTE_S, fires, gpu_check, planned, series, silent
from gpufeed.alerting.table.shares import WORKING, shares, state_seconds


def _held_down(reason: str, values: str) -> ExampleSeries:
    return series("gpu_clock_event_seconds_total", values, **GPU, reason=reason)


def _clock_event(reason: str) -> Select:
    return Select(
        metric="gpufeed_gpu_clock_event_seconds_total", matchers=(Matcher("reason", "=", reason),), without=("reason",)
    )


GPU_HW_THERMAL_SLOWDOWN: Final = Condition(
    name="GpuHwThermalSlowdown",
    series=_clock_event("hw_thermal"),
    statistic="rate",
    window_s=10 * MINUTE_S,
    threshold=0.01,
    for_s=5 * MINUTE_S,
    severity="ticket",
    layer="gpu",
    action="investigate",
    summary="GPU {gpu} is slowed down by heat {value:percent} of the time",
    description="The hardware of GPU {gpu} ({uuid}) cut its clock by half or more because of heat "
    "in {value:percent} of the last 10 minutes. Every GPU of the job waits for it.",
    inhibits=(
        Inhibit(targets=("GpuThermalMargin", "StragglerGpu"), equal=("instance", "uuid")),
        Inhibit(targets=("ThrottledShare",)),
    ),
    examples=(
        fires("a quarter of the time too hot", "ticket", _held_down("hw_thermal", "0+15x40"), at_s=1800),
        silent("never too hot", _held_down("hw_thermal", "0x40"), at_s=1800),
        planned(
            "four seconds at the start of a job after cooling maintenance",
            _held_down("hw_thermal", "0x9 4x30"),
            at_s=1080,
        ),
    ),
)

GPU_THERMAL_MARGIN: Final = Condition(
    name="GpuThermalMargin",
    series=Select(metric="gpufeed_gpu_temperature_margin_celsius"),
    comparison="<",
    threshold=0,
    for_s=2 * MINUTE_S,
    severity="ticket",
    layer="gpu",
    action="investigate",
    summary="GPU {gpu} is {value:number} degrees from where it slows down",
    description="The hottest sensor of GPU {gpu} ({uuid}) has been past the limit at which the GPU slows down "
    "for 2 minutes (margin {value:number} degrees). If it grows hotter, it switches itself off.",
    examples=(
        fires("past the limit", "ticket", series("gpu_temperature_margin_celsius", "20x4 -3x20", **GPU), at_s=600),
        silent("warm, and within the limit", series("gpu_temperature_margin_celsius", "4x20", **GPU), at_s=600),
        planned(
            "a pump is switched over: a minute",
            series("gpu_temperature_margin_celsius", "20x4 -1 20x20", **GPU),
            at_s=360,
        ),
    ),
)

GPU_POWER_BRAKE: Final = Condition(
    name="GpuPowerBrake",
    series=_clock_event("hw_power_brake"),
    statistic="rate",
    window_s=10 * MINUTE_S,
    threshold=0.005,
    severity="ticket",
    layer="gpu",
    action="investigate",
    summary="GPU {gpu} is held down by a power brake {value:percent} of the time",
    description="A signal from outside held the clock of GPU {gpu} ({uuid}) down in {value:percent} of the last "
    "10 minutes: a power supply, a power shelf or the rack.",
    inhibits=(
        Inhibit(targets=("StragglerGpu",), equal=("instance", "uuid")),
        Inhibit(targets=("ThrottledShare",)),
    ),
    examples=(
        fires("half of the time", "ticket", _held_down("hw_power_brake", "0+30x40"), at_s=1200),
        silent("never", _held_down("hw_power_brake", "0x40"), at_s=1200),
        planned(
            "a test of the second power supply: ten seconds",
            _held_down("hw_power_brake", "0x9 10x40"),
            at_s=900,
            severity="ticket",
        ),
    ),
)

POWER_LIMIT_BELOW_PEERS: Final = Condition(
    name="PowerLimitBelowPeers",
    series=Select(metric="gpufeed_gpu_health", matchers=(Matcher("check", "=", "power_limit"),)),
    comparison=">=",
    threshold=1,
    for_s=60 * MINUTE_S,
    severity="ticket",
    layer="gpu",
    action="tune",
    summary="GPU {gpu} may draw less power than its neighbours",
    description="For an hour the power limit of GPU {gpu} ({uuid}) has been more than 5 % below that of GPUs of the "
    "same type in this node. It is the slow one of every job.",
    examples=(
        fires("a limit that somebody forgot", "ticket", gpu_check("power_limit", "1x90"), at_s=4800),
        silent("all alike", gpu_check("power_limit", "0x90"), at_s=4800),
        planned("a benchmark of half an hour", gpu_check("power_limit", "0x4 1x29 0x90"), at_s=4800),
    ),
)

THROTTLED_SHARE: Final = Condition(
    name="ThrottledShare",
    series=Ratio(numerator=shares(Matcher("state", "=", "throttled")), denominator=WORKING),
    statistic="rate",
    window_s=30 * MINUTE_S,
    threshold=0.05,
    for_s=30 * MINUTE_S,
    severity="ticket",
    layer="gpu",
    action="investigate",
    summary="The GPUs are held far below their clock {value:percent} of their working time",
    description="GPUs of this node spent {value:percent} of the working time of the last 30 minutes far below their "
    "clock. gpufeed_gpu_state_seconds_total{{state=throttled}} says which, and whether heat, a brake or a cap does it.",
    examples=(
        fires(
            "a quarter of the time",
            "ticket",
            state_seconds("throttled", "thermal", "0+15x90"),
            state_seconds("busy", "tensor", "0+45x90"),
            at_s=4800,
        ),
        silent(
            "a thirty-second part of the time",
            state_seconds("throttled", "thermal", "0+1.875x90"),
            state_seconds("busy", "tensor", "0+58.125x90"),
            at_s=4800,
        ),
        planned(
            "a test of the cooling: ten minutes",
            state_seconds("throttled", "thermal", "0x19 0+60x10 600x60"),
            state_seconds("busy", "tensor", "0+60x19 1140x10 1200+60x60"),
            at_s=3600,
        ),
    ),
)

CONDITIONS: Final = (
    GPU_HW_THERMAL_SLOWDOWN,
    GPU_THERMAL_MARGIN,
    GPU_POWER_BRAKE,
    POWER_LIMIT_BELOW_PEERS,
    THROTTLED_SHARE,
)
