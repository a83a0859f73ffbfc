# SPDX-License-Identifier: Apache-2.0
"""The node as the page and the API show it: made from one `NodeState`, so that all of it is of one moment."""

from collections.abc import Iterable
from typing import Final

from gpufeed.health.subject import named
from gpufeed.history.events import Event
from gpufeed.model.frame import LaneStatus
from gpufeed.model.state import NodeState
from gpufeed.units import NS_PER_S, seconds
from gpufeed.web.endpoints import Delivered, Endpoints, Firing
from gpufeed.web.headline import headline
from gpufeed.web.shape import (
    AlertView,
    CollectorView,
    EventView,
    HealthView,
    InputView,
    LaneView,
    NodeView,
    ReceiverView,
    StateSeconds,
)
from gpufeed.web.view_gpu import gpus
from gpufeed.web.view_layers import fabric, pressure, storage

LEVELS: Final = ("ok", "degraded", "failed")
SHOWN_EVENTS: Final = 20


def view(endpoints: Endpoints) -> NodeView:
    """The node now."""
    state, identity = endpoints.state(), endpoints.identity
    seen = gpus(state, endpoints)
    health = _health(state)
    return NodeView(
        version=identity.version,
        hostname=identity.hostname,
        simulated=identity.is_simulated,
        scenario=identity.scenario,
        time_seconds=state.time.wall_ns / NS_PER_S,
        ready=endpoints.is_ready(),
        probe_up=state.probe.is_up,
        gpus=seen,
        lanes=tuple(_lane(lane, state.time.monotonic_ns) for _, lane in sorted(state.lanes.items())),
        missing_inputs=_missing(state),
        health=health,
        alerts=tuple(_alert(one) for one in endpoints.alerts()),
        headline=headline(seen, health, is_probe_up=state.probe.is_up),
        recent=added(one for gpu in seen for one in gpu.recent),
        storage=storage(state, endpoints.rates),
        fabric=fabric(state, endpoints.rates),
        pressure=pressure(state, endpoints.rates),
        collectors=_collectors(state),
        events=tuple(event(one) for one in endpoints.events()[:SHOWN_EVENTS]),
        receivers=tuple(_receiver(one) for one in endpoints.receivers()),
    )


def event(one: Event) -> EventView:
    """A change, as it is sent."""
    return EventView(one.wall_ns / NS_PER_S, one.kind, one.name, one.of, one.to, one.severity, one.text)


def added(parts: Iterable[StateSeconds]) -> tuple[StateSeconds, ...]:
    """Time by state and cause, the longest first."""
    sums: dict[tuple[str, str], float] = {}
    for one in parts:
        sums[one.state, one.cause] = sums.get((one.state, one.cause), 0.0) + one.seconds
    longest_first = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    return tuple(StateSeconds(state, cause, spent_s) for (state, cause), spent_s in longest_first)


def _lane(lane: LaneStatus, now_ns: int) -> LaneView:
    busy_ns = max(now_ns - lane.busy_since_ns, 0) if lane.busy_since_ns is not None else 0
    state = "stuck" if busy_ns >= lane.stuck_after_ns else "late" if busy_ns >= lane.late_after_ns else "ok"
    call = lane.call if state != "ok" else ""
    return LaneView(lane.lane, lane.collector, state, seconds(busy_ns), call)


def _missing(state: NodeState) -> tuple[InputView, ...]:
    return tuple(
        InputView(one.input, one.scope, one.state, one.reason, one.fix)
        for _, one in sorted(state.inputs.items())
        if one.state != "available"
    )


def _health(state: NodeState) -> tuple[HealthView, ...]:
    worst_first = sorted(state.verdicts.values(), key=lambda one: (-one.level, str(one.subject), one.check))
    return tuple(
        HealthView(named(one.subject, state), one.check, LEVELS[one.level], one.reason, one.action)
        for one in worst_first
        if one.level > 0
    )


def _collectors(state: NodeState) -> tuple[CollectorView, ...]:
    now_ns = state.time.monotonic_ns
    return tuple(
        CollectorView(
            collector=name,
            successful=one.is_successful,
            age_seconds=seconds(max(now_ns - one.last_success_ns, 0)) if one.last_success_ns is not None else None,
            errors=sum(one.errors.values()),
        )
        for name, one in sorted(state.collectors.items())
    )


def _receiver(one: Delivered) -> ReceiverView:
    level = "failed" if one.dropped else "degraded" if one.waiting else "ok"
    return ReceiverView(one.receiver, level, one.waiting, one.dropped)


def _alert(one: Firing) -> AlertView:
    return AlertView(one.name, one.severity, one.state, one.text)
