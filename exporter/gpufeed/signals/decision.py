# SPDX-License-Identifier: Apache-2.0
"""One interval of one GPU: the shares of its states, and the numbers that decided."""

from dataclasses import dataclass, replace
from typing import Final

from gpufeed.model.evidence import Evidence
from gpufeed.model.ids import GpuKey
from gpufeed.model.state import StateCause
from gpufeed.signals.activity import copied_between_gpus, split_active
from gpufeed.signals.causes import IDLE_FREE, IDLE_HELD, NO_KERNEL_MAX, UNDECIDED, Waiting, waiting_cause
from gpufeed.signals.features import RESIDENT_MIN, GpuFeatures
from gpufeed.signals.pipeline import pipeline
from gpufeed.signals.view import View

CONFLICT: Final = StateCause("unknown", "conflict")
HELD_UNKNOWN: Final = StateCause("unknown", "unsupported")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Shares of an interval; the last takes what rounding leaves."""

    shares: tuple[tuple[StateCause, float], ...]
    confidence: float | None  # None: there was nothing to be sure of
    evidence: tuple[Evidence, ...] = ()
    runner_up: StateCause | None = None
    is_spin: bool = False

    def spinning(self) -> "Decision":
        """The same of a GPU whose kernel only polls."""
        return replace(self, is_spin=True)


def decide(key: GpuKey, view: View, of: GpuFeatures, interval: tuple[int, int], *, is_company: bool) -> Decision:
    """The states of one GPU over `interval`, by its readings. `is_company`: see `activity.split_active`."""
    measured = _measured(of)
    if of.is_contradictory:
        return Decision(shares=((CONFLICT, 1.0),), confidence=None, evidence=measured)
    if of.is_held is None and of.active < NO_KERNEL_MAX:
        return Decision(shares=((HELD_UNKNOWN, 1.0),), confidence=None, evidence=measured)
    if of.is_held is False and of.active < NO_KERNEL_MAX:
        return Decision(shares=((IDLE_FREE, 1.0),), confidence=0.95, evidence=measured)
    parts = split_active(of, is_company=is_company)
    waiting = 1.0 - of.active
    shares = [(part.cause, part.ratio) for part in parts]
    sure = sum(part.ratio * part.confidence for part in parts)
    if waiting <= 0:
        return Decision(shares=tuple(shares), confidence=sure, evidence=measured)
    host = pipeline(key.uuid, view, *interval)
    if of.peer_active >= RESIDENT_MIN and host.tasks is not None:
        host = replace(host, tasks=replace(host.tasks, busiest=None))  # a rank that waits in a collective polls
    why = waiting_cause(of, host, view.settings)
    if of.is_sharing and why.cause != IDLE_HELD:
        why = Waiting(HELD_UNKNOWN, 0.0)
    if why.cause in {UNDECIDED, IDLE_HELD} and (exchange := copied_between_gpus(of)) is not None:
        why = Waiting(exchange, 0.5)
    return Decision(
        shares=(*shares, (why.cause, waiting)),
        confidence=min(1.0, sure + waiting * why.confidence),
        evidence=(*measured, *why.evidence),
        runner_up=why.runner_up,
    )


def _measured(of: GpuFeatures) -> tuple[Evidence, ...]:
    """What the GPU itself shows."""
    readings = (
        ("active", of.active, None),
        ("SMs with work", of.sm, of.footprint.sm or None),
        ("tensor pipes", of.tensor, of.footprint.tensor or None),
        ("device memory", of.dram, None),
        ("NVLink of capacity", of.nvlink, None),
        ("fabric port of rate", of.fabric, None),
        ("SM clock of highest", of.clock_lowest, None),
        ("power of limit", of.power, None),
    )
    return tuple(
        Evidence(input=name, value=value, unit="ratio", usual=usual)
        for name, value, usual in readings
        if value is not None
    )
