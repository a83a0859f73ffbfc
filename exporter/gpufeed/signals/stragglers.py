# SPDX-License-Identifier: Apache-2.0
"""Which GPU of a job makes the others wait. In a synchronous job all are slow together, and only one waits for nobody.

Where all wait alike the straggler is on another node: there it waits least of all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from gpufeed.model.balance import Straggler
from gpufeed.model.evidence import Evidence
from gpufeed.model.gpu import GpuFast, GpuSlow
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.model.state import StateCause
from gpufeed.signals.jobs import peers_of
from gpufeed.signals.view import View
from gpufeed.signals.window import Window

Shares = Mapping[StateCause, float]
"""Of the time since the last look, by state."""

PEER: Final = StateCause("starved", "peer")
WORTH_A_REASON: Final = 0.05
DIFFERS: Final = 0.05
_OWN: Final[Mapping[str, tuple[StateCause, ...]]] = {
    "waits for its own storage": (StateCause("starved", "storage"), StateCause("starved", "checkpoint")),
    "waits for its own host": (StateCause("starved", "host_cpu"), StateCause("starved", "host_memory")),
    "waits for its own copies": (StateCause("starved", "pcie"),),
    "thermal throttling": (StateCause("throttled", "thermal"),),
    "power throttling": (StateCause("throttled", "power_brake"), StateCause("throttled", "power_cap")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stragglers:
    """Scores as means of the last minutes, and what stands behind the present ones."""

    blamed: Mapping[GpuUuid, Window] = field(default_factory=dict)
    results: Mapping[GpuUuid, Straggler] = field(default_factory=dict)


def fold(
    previous: Stragglers, view: View, shares: Mapping[GpuUuid, Shares], interval: tuple[int, int], length_s: float
) -> Stragglers:
    """Of every GPU that works together with another on this node; `interval` is what `shares` are of."""
    blamed: dict[GpuUuid, Window] = {}
    results: dict[GpuUuid, Straggler] = {}
    for uuid, own in shares.items():
        peers = [shares[peer] for peer in peers_of(uuid, view) if peer in shares]
        if not peers:
            continue
        ahead = max(0.0, fmean(peer.get(PEER, 0.0) for peer in peers) - own.get(PEER, 0.0))
        blamed[uuid] = previous.blamed.get(uuid, Window()).after(interval[1], ahead * length_s, length_s)
        score = min(1.0, blamed[uuid].mean or 0.0)
        before = previous.results.get(uuid)
        reasons = before.reasons if before is not None and score >= WORTH_A_REASON else ()
        if ahead >= WORTH_A_REASON and score >= WORTH_A_REASON:
            reasons = _reasons(uuid, view, shares, interval)
        results[uuid] = Straggler(score=score, reasons=reasons)
    return Stragglers(blamed=blamed, results=results)


def _reasons(
    uuid: GpuUuid, view: View, shares: Mapping[GpuUuid, Shares], interval: tuple[int, int]
) -> tuple[Evidence, ...]:
    """What it does more of than the others do, most first; then how its clock and its link differ."""
    others = [peer for peer in peers_of(uuid, view) if peer in shares]
    more = []
    for name, causes in _OWN.items():
        own = sum(shares[uuid].get(cause, 0.0) for cause in causes)
        usual = fmean(sum(shares[peer].get(cause, 0.0) for cause in causes) for peer in others)
        if own >= usual + DIFFERS:
            more.append(Evidence(input=name, value=own, unit="ratio", usual=usual))
    more.sort(key=lambda one: one.value - (one.usual or 0.0), reverse=True)
    return (*more, *_slower(uuid, others, view, interval))


def _slower(uuid: GpuUuid, others: list[GpuUuid], view: View, interval: tuple[int, int]) -> tuple[Evidence, ...]:
    def clock_hz(of: GpuUuid) -> float | None:
        return view.mean(GpuFast, GpuKey(of), *interval).get("sm_clock")

    def lanes(of: GpuUuid) -> float | None:
        slow: GpuSlow | None = view.latest(GpuSlow, GpuKey(of))
        return None if slow is None or slow.pcie_width is None else float(slow.pcie_width)

    found = []
    for name, unit, read in (("SM clock", "hertz", clock_hz), ("PCIe lanes", "count", lanes)):
        own, known = read(uuid), [value for value in map(read, others) if value is not None]
        if own is not None and known and own <= (1 - DIFFERS) * fmean(known):
            found.append(Evidence(input=name, value=own, unit=unit, usual=fmean(known)))
    return tuple(found)
