# SPDX-License-Identifier: Apache-2.0
"""GPUs as the page and the API show them."""

from collections.abc import Iterable
from typing import Final

from gpufeed.history.states import SLOT_NS
from gpufeed.model.gpu import GpuFast, NvlinkTotals
from gpufeed.model.ids import GpuKey
from gpufeed.model.state import Attribution, GpuRecord, NodeState, StateCause
from gpufeed.units import NS_PER_S, seconds
from gpufeed.web.endpoints import Endpoints
from gpufeed.web.shape import GpuHistory, GpuView, History, JobName, Reason, SlotView, StateSeconds

RECENT_NS: Final = 5 * 60 * NS_PER_S


def gpus(state: NodeState, endpoints: Endpoints) -> tuple[GpuView, ...]:
    """All GPUs, in their order."""
    return tuple(_gpu(record, state, endpoints) for record in _in_order(state))


def history(state: NodeState, endpoints: Endpoints, since_ns: int) -> History:
    """What every GPU did since then (monotonic)."""
    to_wall_ns = state.time.wall_ns - state.time.monotonic_ns
    return History(
        time_seconds=state.time.wall_ns / NS_PER_S,
        slot_seconds=seconds(SLOT_NS),
        gpus=tuple(
            GpuHistory(
                record.index,
                record.uuid,
                tuple(
                    SlotView((slot.began_ns + to_wall_ns) / NS_PER_S, _states(slot.spent_ns.items()))
                    for slot in endpoints.slots(GpuKey(record.uuid))
                    if slot.began_ns + SLOT_NS > since_ns
                ),
            )
            for record in _in_order(state)
        ),
    )


def _in_order(state: NodeState) -> list[GpuRecord]:
    return sorted(state.gpus.values(), key=lambda one: (one.index, one.uuid))


def _gpu(record: GpuRecord, state: NodeState, endpoints: Endpoints) -> GpuView:
    key = GpuKey(record.uuid)
    attribution = state.attributions.get(key)
    current = attribution.current if attribution is not None else StateCause("unknown", "no_data")
    held = state.latest(GpuFast).get(key)
    fast = held.sample if held is not None else None
    identity = record.identity
    return GpuView(
        index=record.index,
        uuid=record.uuid,
        name=identity.name if identity is not None else None,
        pci_bus_id=identity.pci_bus_id if identity is not None else None,
        condition=record.condition,
        detail=record.detail,
        state=current.state,
        cause=current.cause,
        confidence=attribution.confidence_ratio if attribution is not None else None,
        evidence=_evidence(attribution),
        tracked_seconds=seconds(attribution.tracked_ns) if attribution is not None else 0.0,
        states=_states(attribution.state_ns.items()) if attribution is not None else (),
        utilization=fast.utilization_ratio if fast is not None else None,
        memory_used_bytes=fast.memory_used_bytes if fast is not None else None,
        memory_total_bytes=fast.memory_total_bytes if fast is not None else None,
        power_watts=fast.power_w if fast is not None else None,
        temperature_celsius=fast.temperature_c if fast is not None else None,
        processes=record.processes,
        recent=_recent(key, state.time.monotonic_ns, endpoints),
        nvlink_bytes_per_second=_nvlink(key, endpoints),
        job=_job(key, state) if endpoints.options().has_job_names else None,
    )


def _evidence(attribution: Attribution | None) -> tuple[Reason, ...]:
    if attribution is None:
        return ()
    return tuple(Reason(one.input, one.value, one.unit) for one in attribution.evidence)


def _states(spent: Iterable[tuple[StateCause, int]]) -> tuple[StateSeconds, ...]:
    longest_first = sorted(spent, key=lambda item: (-item[1], item[0]))
    return tuple(StateSeconds(at.state, at.cause, seconds(spent_ns)) for at, spent_ns in longest_first if spent_ns > 0)


def _recent(key: GpuKey, now_ns: int, endpoints: Endpoints) -> tuple[StateSeconds, ...]:
    sums: dict[StateCause, int] = {}
    for slot in endpoints.slots(key):
        if slot.began_ns > now_ns - RECENT_NS:
            for cause, spent_ns in slot.spent_ns.items():
                sums[cause] = sums.get(cause, 0) + spent_ns
    return _states(sums.items())


def _nvlink(key: GpuKey, endpoints: Endpoints) -> float | None:
    rates = endpoints.rates(NvlinkTotals, key)
    return sum(rates.values()) if rates else None


def _job(key: GpuKey, state: NodeState) -> JobName | None:
    job = state.ownership.jobs.get(key)
    if job is None:
        return None
    return JobName(job.scheduler, job.job_id, job.step, job.k8s_namespace, job.k8s_pod)
