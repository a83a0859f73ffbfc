# SPDX-License-Identifier: Apache-2.0
"""Conditions of gpufeed itself: without them every other one is silent for the wrong reason."""

from typing import Final

from gpufeed.alerting.define import Condition, Example, ExampleSeries, Inhibit, Matcher, Ratio, Select
from gpufeed.alerting.table.examples import MINUTE_S, PORT, fires, planned, series, silent
from gpufeed.alerting.table.names import CONSEQUENCES, STARVING
from gpufeed.alerting.table.shares import WORKING, shares, state_seconds


def _age(collector: str, values: str) -> ExampleSeries:
    return series("sample_age_seconds", values, collector=collector)


EXPORTER_STALE: Final = Condition(
    name="ExporterStale",
    series=Select(metric="gpufeed_sample_age_seconds", without=("collector",)),
    threshold=60,
    for_s=2 * MINUTE_S,
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
    window_s=30 * MINUTE_S,
    threshold=0.3,
    for_s=30 * MINUTE_S,
    severity="info",
    layer="self",
    action="investigate",
    summary="For {value:percent} of the GPUs' working time it is unknown what they did",
    description="Over the last 30 minutes {value:percent} of the working time of this node's GPUs is in state unknown. "
    "Alerts on starvation cannot be trusted meanwhile.",
    inhibits=(Inhibit(targets=STARVING),),
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

PROBE_DOWN: Final = Condition(
    name="ProbeDown",
    series=Select(metric="gpufeed_probe_up"),
    comparison="<",
    threshold=1,
    for_s=2 * MINUTE_S,
    severity="ticket",
    layer="self",
    action="investigate",
    summary="gpufeed measures nothing on this node",
    description="The process of gpufeed that reads the hardware has been down for 2 minutes. "
    "The exporter answers, and knows nothing new.",
    inhibits=(Inhibit(targets=("ExporterStale", "AttributionBlind", *CONSEQUENCES)),),
    examples=(
        fires("it ends again and again", "ticket", series("probe_up", "1x4 0x20"), at_s=600),
        silent("it is replaced within a minute", series("probe_up", "1x4 0 1x20"), at_s=420),
        planned("a rolling upgrade of gpufeed", series("probe_up", "1x4 stale _x1 0 1x20"), at_s=540),
    ),
)

CONFIG_REFUSED: Final = Condition(
    name="ConfigRefused",
    series=Select(metric="gpufeed_config_last_reload_successful"),
    comparison="<",
    threshold=1,
    for_s=30 * MINUTE_S,
    severity="ticket",
    layer="self",
    action="tune",
    summary="gpufeed refused its configuration and runs with the one before",
    description="The configuration that was loaded last is not in force: it has errors, and the one before it is used. "
    "After a restart gpufeed would not start.",
    examples=(
        fires("an unknown key", "ticket", series("config_last_reload_successful", "1x4 0x60"), at_s=3000),
        silent("in force", series("config_last_reload_successful", "1x60"), at_s=3000),
        planned(
            "a configuration that is mended ten minutes later",
            series("config_last_reload_successful", "1x4 0x9 1x60"),
            at_s=2400,
        ),
    ),
)

ALERTS_UNDELIVERED: Final = Condition(
    name="AlertsUndelivered",
    series=Select(metric="gpufeed_alert_queue_length", without=("receiver",)),
    statistic="min",
    window_s=10 * MINUTE_S,
    threshold=0,
    for_s=5 * MINUTE_S,
    severity="ticket",
    layer="self",
    action="investigate",
    summary="Alerts of this node have not reached a receiver for 15 minutes",
    description="For 15 minutes {value:number} alerts or more have waited for a receiver that does not take them. "
    "Alerts that the node evaluates itself may reach nobody.",
    examples=(
        fires(
            "a receiver that is gone",
            "ticket",
            series("alert_queue_length", "0x4 3x60", receiver="am1:9093"),
            at_s=1800,
        ),
        silent("nothing waits", series("alert_queue_length", "0x60", receiver="am1:9093"), at_s=1800),
        planned(
            "Alertmanager is upgraded: five minutes",
            series("alert_queue_length", "0x4 3x4 0x60", receiver="am1:9093"),
            at_s=900,
        ),
    ),
)

IB_COUNTER_SATURATED: Final = Condition(
    name="IbCounterSaturated",
    series=Select(metric="gpufeed_ib_port_saturated_counters"),
    threshold=0,
    for_s=60 * MINUTE_S,
    severity="info",
    layer="fabric",
    action="tune",
    summary="{value:number} error counters of {device}/{port} stand at their end",
    description="{value:number} error counters of port {port} of {device} have reached their ceiling and count no "
    "further: new errors do not show.",
    examples=(
        fires("two counters", "info", series("ib_port_saturated_counters", "2x90", **PORT), at_s=4800),
        silent("none", series("ib_port_saturated_counters", "0x90", **PORT), at_s=4800),
        planned("they are cleared", series("ib_port_saturated_counters", "2x30 0x90", **PORT), at_s=4800),
    ),
)

CONDITIONS: Final = (
    EXPORTER_STALE,
    ATTRIBUTION_BLIND,
    PROBE_DOWN,
    CONFIG_REFUSED,
    ALERTS_UNDELIVERED,
    IB_COUNTER_SATURATED,
)
