# SPDX-License-Identifier: Apache-2.0
"""Conditions of gpufeed itself: without them every other one is silent for the wrong reason."""

from typing import Final

from gpufeed.alerting.define import Condition, Example, ExampleSeries, Inhibit, Matcher, Ratio, Select
from gpufeed.alerting.table.shares import WORKING, shares, state_seconds

_MINUTE_S: Final = 60


def _age(collector: str, values: str) -> ExampleSeries:
    return ExampleSeries(metric="gpufeed_sample_age_seconds", labels=(("collector", collector),), values=values)


EXPORTER_STALE: Final = Condition(
    name="ExporterStale",
    series=Select(metric="gpufeed_sample_age_seconds", without=("collector",)),
    threshold=60,
    for_s=2 * _MINUTE_S,
    severity="ticket",
    layer="self",
    action="investigate",
    summary="A collector of gpufeed has brought nothing for {value:duration}",
    description="The exporter answers, but the newest reading of one of its collectors is {value:duration} old. "
    "gpufeed_sample_age_seconds says which one.",
    examples=(
        Example(
            says="the infiniband collector hangs",
            outcome="fires",
            severity="ticket",
            series=(_age("infiniband", "1x4 1+60x20"), _age("nvml", "1x30")),
            at_s=720,
        ),
        Example(says="every reading is young", outcome="silent", series=(_age("nvml", "1x30"),), at_s=720),
        Example(
            says="a rolling upgrade of gpufeed: three minutes without series",
            outcome="planned",
            series=(_age("nvml", "1x4 stale _x2 1x20"),),
            at_s=480,
        ),
    ),
)

ATTRIBUTION_BLIND: Final = Condition(
    name="AttributionBlind",
    series=Ratio(numerator=shares(Matcher("state", "=", "unknown")), denominator=WORKING),
    statistic="rate",
    window_s=30 * _MINUTE_S,
    threshold=0.3,
    for_s=30 * _MINUTE_S,
    severity="info",
    layer="self",
    action="investigate",
    summary="For {value:percent} of the GPUs' working time it is unknown what they did",
    description="Over the last 30 minutes {value:percent} of the working time of this node's GPUs is in state unknown. "
    "Alerts on starvation cannot be trusted meanwhile.",
    inhibits=(Inhibit(targets=("GpuStarvedByStorage",)),),
    examples=(
        Example(
            says="half of the time unknown",
            outcome="fires",
            severity="info",
            series=(state_seconds("unknown", "no_data", "0+30x90"), state_seconds("busy", "tensor", "0+30x90")),
            at_s=4800,
        ),
        Example(
            says="a quarter of the time unknown",
            outcome="silent",
            series=(state_seconds("unknown", "no_data", "0+15x90"), state_seconds("busy", "tensor", "0+45x90")),
            at_s=4800,
        ),
        Example(
            says="a driver upgrade: five minutes of no data",
            outcome="planned",
            series=(
                state_seconds("unknown", "no_data", "0x30 0+60x5 300x60"),
                state_seconds("busy", "tensor", "0+60x30 1800x5 1860+60x60"),
            ),
            at_s=3000,
        ),
    ),
)

CONDITIONS: Final = (EXPORTER_STALE, ATTRIBUTION_BLIND)
