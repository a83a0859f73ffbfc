# SPDX-License-Identifier: Apache-2.0
"""Conditions of what feeds the GPUs: storage and fabric."""

from typing import Final

from gpufeed.alerting.define import Condition, Example, ExampleSeries, Matcher, Ratio, Select
from gpufeed.alerting.table.shares import WORKING, shares, state_seconds

_MINUTE_S: Final = 60
_PORT: Final = (("device", "mlx5_2"), ("port", "1"))


def _port_down(values: str) -> ExampleSeries:
    return ExampleSeries(metric="gpufeed_ib_health", labels=(*_PORT, ("check", "port_down")), values=values)


def _host_in_use(values: str) -> ExampleSeries:
    return ExampleSeries(metric="gpufeed_host_in_use_recently", values=values)


GPU_STARVED_BY_STORAGE: Final = Condition(
    name="GpuStarvedByStorage",
    series=Ratio(
        numerator=shares(Matcher("state", "=", "starved"), Matcher("cause", "=", "storage")), denominator=WORKING
    ),
    statistic="rate",
    window_s=30 * _MINUTE_S,
    short_window_s=5 * _MINUTE_S,
    threshold=0.1,
    for_s=15 * _MINUTE_S,
    severity="ticket",
    layer="storage",
    action="investigate",
    summary="GPUs wait for storage {value:percent} of their working time",
    description="The GPUs of this node waited for storage {value:percent} of the time "
    "they had work in the last 30 minutes.",
    examples=(
        Example(
            says="a quarter of the time for storage",
            outcome="fires",
            severity="ticket",
            series=(state_seconds("starved", "storage", "0+15x70"), state_seconds("busy", "tensor", "0+45x70")),
            at_s=3600,
        ),
        Example(
            says="a sixteenth of the time for storage",
            outcome="silent",
            series=(state_seconds("starved", "storage", "0+3.75x70"), state_seconds("busy", "tensor", "0+56.25x70")),
            at_s=3600,
        ),
        Example(
            says="much waiting until an hour ago, none now",
            outcome="silent",
            series=(
                state_seconds("starved", "storage", "0+30x30 900x70"),
                state_seconds("busy", "tensor", "0+30x30 960+60x70"),
            ),
            at_s=2400,
        ),
        Example(
            says="an NFS server fails over in two minutes",
            outcome="planned",
            series=(
                state_seconds("starved", "storage", "0x30 60 120x60"),
                state_seconds("busy", "tensor", "0+60x30 1800 1800+60x60"),
            ),
            at_s=2100,
        ),
    ),
)

IB_PORT_DOWN: Final = Condition(
    name="IbPortDown",
    series=Select(metric="gpufeed_ib_health", matchers=(Matcher("check", "=", "port_down"),)),
    threshold=1,
    for_s=_MINUTE_S,
    severity="page",
    severity_idle="ticket",
    in_use="host",
    layer="fabric",
    action="investigate",
    summary="Fabric port {device}/{port} is down",
    description="Port {port} of {device} was up and is down now. "
    "Collectives over this rail stall until it is back or the job ends.",
    is_event=True,
    examples=(
        Example(
            says="a rail goes down under a job",
            outcome="fires",
            severity="page",
            series=(_port_down("0x4 2x10"), _host_in_use("1x20")),
            at_s=600,
        ),
        Example(
            says="the port is back within a minute",
            outcome="silent",
            series=(_port_down("0x4 2 0x10"), _host_in_use("1x20")),
            at_s=360,
        ),
        Example(
            says="leaf switch maintenance on drained nodes",
            outcome="planned",
            severity="ticket",
            series=(_port_down("0x4 2x10"), _host_in_use("0x20")),
            at_s=600,
        ),
    ),
)

CONDITIONS: Final = (GPU_STARVED_BY_STORAGE, IB_PORT_DOWN)
