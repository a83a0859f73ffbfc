# SPDX-License-Identifier: Apache-2.0
"""Conditions on the interconnect between nodes: InfiniBand and RoCE."""

from typing import Final

from gpufeed.alerting.define import Condition, ExampleSeries, Inhibit, Matcher, Select
from gpufeed.alerting.table.examples import HOUR_S, MINUTE_S, PORT, fires, host_in_use, planned, series, silent

_OF_THE_PORT: Final = ("instance", "device", "port")


def _check(name: str) -> Select:
    return Select(metric="gpufeed_ib_health", matchers=(Matcher("check", "=", name),))


def _port(check: str, values: str) -> ExampleSeries:
    return series("ib_health", values, **PORT, check=check)


def _errors(kind: str, values: str) -> ExampleSeries:
    return series("ib_port_errors_total", values, **PORT, type=kind)


def _events(event: str, values: str) -> ExampleSeries:
    return series("ib_port_hw_events_total", values, **PORT, event=event)


IB_PORT_DOWN: Final = Condition(
    name="IbPortDown",
    series=_check("port_down"),
    threshold=1,
    for_s=MINUTE_S,
    severity="page",
    severity_idle="ticket",
    in_use="host",
    layer="fabric",
    action="investigate",
    summary="Fabric port {device}/{port} is down",
    description="Port {port} of {device} was up and is down now. "
    "Collectives over this rail stall until it is back or the job ends.",
    inhibits=(
        Inhibit(targets=("IbLinkFlap", "IbRateLow", "IbFatalCounters", "IbSymbolErrors", "IbXmitDiscards",
                         "RoceLoss"), equal=_OF_THE_PORT),
        Inhibit(targets=("GpuStarvedByFabric", "JobHangSuspected", "StragglerGpu")),
    ),
    is_event=True,
    examples=(
        fires("a rail goes down under a job", "page", _port("port_down", "0x4 2x10"), host_in_use("1x20"), at_s=600),
        silent("the port is back within a minute", _port("port_down", "0x4 2 0x10"), host_in_use("1x20"), at_s=360),
        planned(
            "leaf switch maintenance on drained nodes",
            _port("port_down", "0x4 2x10"),
            host_in_use("0x20"),
            at_s=600,
            severity="ticket",
        ),
    ),
)  # fmt: skip

NIC_COUNT_LOW: Final = Condition(
    name="NicCountLow",
    series=Select(metric="gpufeed_host_health", matchers=(Matcher("check", "=", "fabric_ports"),), without=("check",)),
    threshold=1,
    for_s=5 * MINUTE_S,
    severity="ticket",
    layer="fabric",
    action="drain",
    summary="A fabric port of this node is gone",
    description="For 5 minutes a fabric port that was up before has not been there at all: its card fell off the bus, "
    "or its driver is not loaded. The node's page names it.",
    inhibits=(Inhibit(targets=("IbPortDown", "GpuStarvedByFabric", "JobHangSuspected")),),
    examples=(
        fires("a card falls off the bus", "ticket", series("host_health", "0x4 2x20", check="fabric_ports"), at_s=900),
        silent("all there", series("host_health", "0x20", check="fabric_ports"), at_s=900),
        planned(
            "new firmware for the card, and its driver again: three minutes",
            series("host_health", "0x4 2x2 0x20", check="fabric_ports"),
            at_s=420,
        ),
    ),
)

IB_LINK_FLAP: Final = Condition(
    name="IbLinkFlap",
    series=_check("flapping"),
    comparison=">=",
    threshold=1,
    severity="ticket",
    layer="fabric",
    action="replace",
    summary="Fabric port {device}/{port} flaps",
    description="Port {port} of {device} went down and came back three times within 12 hours. "
    "Each time collectives stall or time out.",
    examples=(
        fires("the third time", "ticket", _port("flapping", "0x4 1x20"), at_s=600),
        silent("twice", _port("flapping", "0x20"), at_s=600),
        planned("the leaf switch reboots once", _port("flapping", "0x4 stale _x4 0x20"), at_s=900),
    ),
)

IB_RATE_LOW: Final = Condition(
    name="IbRateLow",
    series=_check("rate"),
    comparison=">=",
    threshold=1,
    for_s=10 * MINUTE_S,
    severity="ticket",
    layer="fabric",
    action="replace",
    summary="Fabric port {device}/{port} is slower than its like",
    description="For 10 minutes port {port} of {device} has been up at a lower rate than ports of the same kind of "
    "card in this node. One slow rail slows every collective.",
    examples=(
        fires("200 of 400 Gbit/s", "ticket", _port("rate", "0x4 1x30"), at_s=1200),
        silent("all alike", _port("rate", "0x40"), at_s=1200),
        planned("a cable is changed: it trains at half rate first", _port("rate", "0x4 1x3 0x40"), at_s=480),
    ),
)

IB_FATAL_COUNTERS: Final = Condition(
    name="IbFatalCounters",
    series=_check("errors"),
    comparison=">=",
    threshold=1,
    severity="ticket",
    layer="fabric",
    action="replace",
    summary="Fabric port {device}/{port} counts errors that a sound link never has",
    description="Within the last hour port {port} of {device} counted local link integrity errors or buffer overruns.",
    examples=(
        fires("one within the hour", "ticket", _port("errors", "0x4 1x60"), at_s=1800),
        silent("none", _port("errors", "0x60"), at_s=1800),
        planned("the counters are cleared with perfquery", _port("errors", "1x4 0x60"), at_s=900),
    ),
)

IB_SYMBOL_ERRORS: Final = Condition(
    name="IbSymbolErrors",
    series=Select(
        metric="gpufeed_ib_port_errors_total", matchers=(Matcher("type", "=", "symbol_error"),), without=("type",)
    ),
    statistic="increase",
    window_s=HOUR_S,
    threshold=120,
    for_s=HOUR_S,
    severity="ticket",
    layer="fabric",
    action="replace",
    summary="Fabric port {device}/{port} counts {value:number} symbol errors an hour",
    description="Port {port} of {device} counted {value:number} symbol errors in an hour; "
    "a link within its specification has at most 120.",
    examples=(
        fires("16 a minute", "ticket", _errors("symbol_error", "0+16x180"), at_s=9000),
        silent("one a minute", _errors("symbol_error", "0+1x180"), at_s=9000),
        planned("a cable is pulled and put back: 200 at once", _errors("symbol_error", "0x30 200x180"), at_s=6600),
    ),
)

IB_XMIT_DISCARDS: Final = Condition(
    name="IbXmitDiscards",
    series=Select(
        metric="gpufeed_ib_port_errors_total",
        matchers=(Matcher("type", "=", "port_xmit_discards"),),
        without=("type",),
    ),
    statistic="rate",
    window_s=10 * MINUTE_S,
    threshold=100,
    for_s=10 * MINUTE_S,
    severity="ticket",
    layer="fabric",
    action="investigate",
    summary="Fabric port {device}/{port} throws away {value:number} packets a second",
    description="Port {port} of {device} gave up {value:number} packets a second that it could not send for 10 "
    "minutes: flow control does not work, or the other end does not take them.",
    examples=(
        fires("200 a second", "ticket", _errors("port_xmit_discards", "0+12000x60"), at_s=1800),
        silent("ten a second", _errors("port_xmit_discards", "0+600x60"), at_s=1800),
        planned(
            "the leaf switch reboots: five minutes of discards",
            _errors("port_xmit_discards", "0x9 0+12000x5 60000x60"),
            at_s=1500,
        ),
    ),
)

ROCE_LOSS: Final = Condition(
    name="RoceLoss",
    series=Select(
        metric="gpufeed_ib_port_hw_events_total",
        matchers=(Matcher("event", "=", "local_ack_timeout_err"),),
        without=("event",),
    ),
    statistic="rate",
    window_s=10 * MINUTE_S,
    threshold=1,
    for_s=10 * MINUTE_S,
    severity="ticket",
    layer="fabric",
    action="investigate",
    summary="Fabric port {device}/{port} waits in vain for {value:number} answers a second",
    description="For 10 minutes port {port} of {device} sent {value:number} times a second again because no answer "
    "came. Every time a collective stands still.",
    examples=(
        fires("four a second", "ticket", _events("local_ack_timeout_err", "0+240x60"), at_s=1800),
        silent("one every four seconds", _events("local_ack_timeout_err", "0+15x60"), at_s=1800),
        planned("a remote node reboots: 300 within a minute", _events("local_ack_timeout_err", "0x9 300x60"), at_s=780),
    ),
)

CONDITIONS: Final = (
    IB_PORT_DOWN,
    NIC_COUNT_LOW,
    IB_LINK_FLAP,
    IB_RATE_LOW,
    IB_FATAL_COUNTERS,
    IB_SYMBOL_ERRORS,
    IB_XMIT_DISCARDS,
    ROCE_LOSS,
)
