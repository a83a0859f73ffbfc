# SPDX-License-Identifier: Apache-2.0
"""Flaps of fabric ports: an outage that ended. Seen as a state between two reads, or by the port's own count."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gpufeed.model.fabric import IbErrors, IbPort
from gpufeed.model.frame import Reading
from gpufeed.model.ids import IbPortKey
from gpufeed.signals.counters import counted

STATE_ACTIVE: Final = 4
LINK_DOWNED: Final = "link_downed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PortPhase:
    """What is remembered of a port.

    `downs`: outages since it was last found up. `balance`: outages the port has counted, less those seen as a state:
    both see the same outage, in either order, and it counts once.
    """

    was_up: bool = False
    is_up: bool = False
    link_downed: int | None = None
    downs: int = 0
    balance: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaps:
    """Flaps by port, and the phases they are counted from."""

    counts: Mapping[IbPortKey, int] = field(default_factory=dict)
    phases: Mapping[IbPortKey, PortPhase] = field(default_factory=dict)


def fold(previous: Flaps, readings: Iterable[Reading]) -> Flaps:
    """The flaps after `readings`. A port that is down when first seen has not flapped when it comes up."""
    counts, phases = dict(previous.counts), dict(previous.phases)
    for reading in readings:
        for sample in reading.samples:
            if isinstance(sample, IbPort):
                phase = phases.get(sample.port, PortPhase())
                is_up = sample.state_id == STATE_ACTIVE
                flaps = phase.downs if is_up else 0
                counts[sample.port] = counts.get(sample.port, 0) + flaps
                phases[sample.port] = _up(phase) if is_up else _down(phase)
            elif isinstance(sample, IbErrors):
                phase = phases.get(sample.port, PortPhase())
                phases[sample.port] = _count(phase, sample.errors.get(LINK_DOWNED))
    return Flaps(counts=counts, phases=phases)


def _up(phase: PortPhase) -> PortPhase:
    return replace(phase, was_up=True, is_up=True, downs=0, balance=min(phase.balance, 0))


def _down(phase: PortPhase) -> PortPhase:
    if not phase.is_up:
        return phase
    is_counted = phase.balance > 0
    return replace(phase, is_up=False, downs=phase.downs + (not is_counted), balance=phase.balance - 1)


def _count(phase: PortPhase, link_downed: int | None) -> PortPhase:
    if link_downed is None:
        return phase
    new = int(counted(phase.link_downed, link_downed) or 0) if phase.was_up else 0
    seen_already = min(new, max(0, -phase.balance))
    return replace(phase, link_downed=link_downed, downs=phase.downs + new - seen_already, balance=phase.balance + new)
