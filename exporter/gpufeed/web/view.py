# SPDX-License-Identifier: Apache-2.0
"""The node as the page and the API show it: made from one `NodeState`, so that all of it is of one moment."""

from msgspec import Struct

from gpufeed.model.frame import LaneStatus
from gpufeed.model.gpu import GpuFast
from gpufeed.model.ids import GpuKey
from gpufeed.model.state import Attribution, GpuRecord, NodeState, StateCause
from gpufeed.units import NS_PER_S, seconds
from gpufeed.web.endpoints import Endpoints, Firing


class StateSeconds(Struct, frozen=True):
    """Time a GPU spent in one state."""

    state: str
    cause: str
    seconds: float


class Reason(Struct, frozen=True):
    """One piece of evidence behind the current state."""

    input: str
    value: float
    unit: str


class GpuView(Struct, frozen=True):
    """One GPU."""

    index: int
    uuid: str
    name: str | None
    pci_bus_id: str | None
    condition: str
    detail: str
    state: str
    cause: str
    confidence: float | None
    evidence: tuple[Reason, ...]
    tracked_seconds: float
    states: tuple[StateSeconds, ...]  # the longest first
    utilization: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    power_watts: float | None
    temperature_celsius: float | None
    processes: int | None


class LaneView(Struct, frozen=True):
    """One lane of the probe."""

    lane: str
    collector: str
    state: str  # ok, late, stuck
    busy_seconds: float  # since the call outstanding began
    call: str


class InputView(Struct, frozen=True):
    """One input that is not measured."""

    input: str
    scope: str
    state: str
    reason: str
    fix: str


class HealthView(Struct, frozen=True):
    """One check that is not ok."""

    subject: str
    check: str
    level: str
    reason: str
    action: str


class AlertView(Struct, frozen=True):
    """One alert that is pending or fires."""

    name: str
    severity: str
    state: str
    text: str


class NodeView(Struct, frozen=True):
    """Everything the page shows."""

    version: str
    hostname: str
    simulated: bool
    scenario: str
    time_seconds: float  # of the frame all of this is from
    ready: bool
    probe_up: bool
    gpus: tuple[GpuView, ...]
    lanes: tuple[LaneView, ...]
    missing_inputs: tuple[InputView, ...]
    health: tuple[HealthView, ...]
    alerts: tuple[AlertView, ...]


def view(endpoints: Endpoints) -> NodeView:
    """The node now."""
    state, identity = endpoints.state(), endpoints.identity
    return NodeView(
        version=identity.version,
        hostname=identity.hostname,
        simulated=identity.is_simulated,
        scenario=identity.scenario,
        time_seconds=state.time.wall_ns / NS_PER_S,
        ready=endpoints.is_ready(),
        probe_up=state.probe.is_up,
        gpus=tuple(_gpu(record, state) for record in sorted(state.gpus.values(), key=lambda one: one.index)),
        lanes=tuple(_lane(lane, state.time.monotonic_ns) for _, lane in sorted(state.lanes.items())),
        missing_inputs=_missing(state),
        health=_health(state),
        alerts=tuple(_alert(one) for one in endpoints.alerts()),
    )


def _gpu(record: GpuRecord, state: NodeState) -> GpuView:
    key = GpuKey(record.uuid)
    attribution = state.attributions.get(key)
    current = attribution.current if attribution is not None else StateCause("unknown", "no_data")
    held = state.latest(GpuFast).get(key)
    fast = held.sample if held is not None else None
    return GpuView(
        index=record.index,
        uuid=record.uuid,
        name=record.identity.name if record.identity is not None else None,
        pci_bus_id=record.identity.pci_bus_id if record.identity is not None else None,
        condition=record.condition,
        detail=record.detail,
        state=current.state,
        cause=current.cause,
        confidence=attribution.confidence_ratio if attribution is not None else None,
        evidence=_evidence(attribution),
        tracked_seconds=seconds(attribution.tracked_ns) if attribution is not None else 0.0,
        states=_states(attribution),
        utilization=fast.utilization_ratio if fast is not None else None,
        memory_used_bytes=fast.memory_used_bytes if fast is not None else None,
        memory_total_bytes=fast.memory_total_bytes if fast is not None else None,
        power_watts=fast.power_w if fast is not None else None,
        temperature_celsius=fast.temperature_c if fast is not None else None,
        processes=record.processes,
    )


def _evidence(attribution: Attribution | None) -> tuple[Reason, ...]:
    if attribution is None:
        return ()
    return tuple(Reason(one.input, one.value, one.unit) for one in attribution.evidence)


def _states(attribution: Attribution | None) -> tuple[StateSeconds, ...]:
    if attribution is None:
        return ()
    longest_first = sorted(attribution.state_ns.items(), key=lambda item: (-item[1], item[0]))
    return tuple(StateSeconds(at.state, at.cause, seconds(spent_ns)) for at, spent_ns in longest_first if spent_ns > 0)


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
    words = {1: "degraded", 2: "failed"}
    return tuple(
        HealthView(_subject(one.subject), one.check, words[one.level], one.reason, one.action)
        for one in worst_first
        if one.level > 0
    )


def _subject(subject: object) -> str:
    if isinstance(subject, str):
        return subject
    parts = (getattr(subject, name) for name in getattr(subject, "__struct_fields__", ()))
    return ":".join(str(part) for part in parts if part is not None)


def _alert(one: Firing) -> AlertView:
    return AlertView(one.name, one.severity, one.state, one.text)
