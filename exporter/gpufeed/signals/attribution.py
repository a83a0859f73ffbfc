# SPDX-License-Identifier: Apache-2.0
"""Where every GPU's time went: each instant decided once, some seconds later, and never lost.

For one GPU `decided_until` moves forward only. The time it moves over is cut where a reading begins or ends and where
something overrides all readings; each piece is split into states, in integer nanoseconds that add up exactly.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gpufeed.model.balance import StallCause, StallCounts
from gpufeed.model.gpu import GpmInterval, GpuFast, MigInstances
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.model.state import Attribution, GpuRecord, StateCause
from gpufeed.signals import reasons
from gpufeed.signals.activity import is_exchange, is_spin
from gpufeed.signals.current import Recent, label
from gpufeed.signals.decision import Decision, decide
from gpufeed.signals.exposed import exposed_ratio
from gpufeed.signals.faults import NO_DATA, UNSUPPORTED, Override, Signs, override
from gpufeed.signals.features import GpuFeatures, features, levels_of
from gpufeed.signals.footprint import UNKNOWN, Footprint
from gpufeed.signals.instance import instance_features
from gpufeed.signals.jobs import peers_of
from gpufeed.signals.ledger import added, split
from gpufeed.signals.reasons import Reasons
from gpufeed.signals.stalls import NONE, Stall, Waited, counted
from gpufeed.signals.timeline import REMEMBERED_NS, Timeline
from gpufeed.signals.view import View
from gpufeed.units import NS_PER_S, seconds

STALE: Final = StateCause("unknown", "stale")
SPINNING_AFTER_NS: Final = 10 * NS_PER_S
"""Without GPM a GPU must have looked like polling for this long before others may take it as company."""
GPM_SILENT_NS: Final = 5 * NS_PER_S
"""GPM that is this far behind utilization has ended."""
PHASES_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Phase:
    """From `since_ns` on this overrides all readings; None: nothing does."""

    since_ns: int
    cause: StateCause | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """What is remembered of one GPU beside its totals."""

    first_seen_ns: int
    decided_until_ns: int
    phases: tuple[Phase, ...] = ()
    spinning_since_ns: int | None = None
    recent: Recent = field(default_factory=Recent)
    footprint: Footprint = UNKNOWN
    waited: Waited = NONE
    reasons: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributions:
    """Of all GPUs."""

    results: Mapping[GpuKey, Attribution] = field(default_factory=dict)
    tracks: Mapping[GpuKey, Track] = field(default_factory=dict)
    stalls: Mapping[StallCause, StallCounts] = field(default_factory=dict)


def fold(previous: Attributions, view: View, signs: Signs) -> Attributions:
    """All GPUs decided as far as can be at this frame."""
    results, tracks = {}, {}
    ended: list[Stall] = []
    spinning = _spinning(previous.tracks, signs.now_ns)
    for key in (*map(GpuKey, view.records), *_instances(view)):
        record = view.records[key.uuid]
        first_seen_ns = signs.now_ns if key.is_instance else record.first_seen_ns
        track = previous.tracks.get(key) or Track(first_seen_ns=first_seen_ns, decided_until_ns=first_seen_ns)
        track = _overridden(track, record, signs, primary(key, view))
        peers = () if key.is_instance else peers_of(key.uuid, view)
        turn = _Turn(
            key,
            view,
            is_company=any(GpuKey(peer) in spinning for peer in peers),
            peer_entered_s=_least_entered_s(previous.tracks, peers),
        )
        tracks[key], results[key] = turn.take(track, previous.results.get(key), signs.now_ns)
        ended += turn.stalls
    stalls = counted(previous.stalls, ended) if ended else previous.stalls
    return Attributions(results=results, tracks=tracks, stalls=stalls)


def _instances(view: View) -> tuple[GpuKey, ...]:
    """GPU instances of the boards that are split: each has its own account, beside that of the whole board."""
    found = {
        GpuKey(uuid, instance.gi)
        for uuid in view.records
        if (split := view.latest(MigInstances, GpuKey(uuid))) is not None
        for instance in split.instances
    }
    return tuple(sorted(found))


def primary(key: GpuKey, view: View) -> Timeline:
    """What says whether a kernel was resident: GPM where there is any, else utilization."""
    gpm, fast = view.line(GpmInterval, key), view.line(GpuFast, key)
    is_gpm = any("graphics" in segment.values for segment in gpm)
    if is_gpm and fast and gpm[-1].ended_ns < fast[-1].ended_ns - GPM_SILENT_NS:
        is_gpm = False
    return gpm if is_gpm else fast


def _spinning(tracks: Mapping[GpuKey, Track], now_ns: int) -> frozenset[GpuKey]:
    return frozenset(
        key
        for key, track in tracks.items()
        if track.spinning_since_ns is not None and now_ns - track.spinning_since_ns >= SPINNING_AFTER_NS
    )


def _least_entered_s(tracks: Mapping[GpuKey, Track], peers: tuple[GpuUuid, ...]) -> float | None:
    """Of the peer that spends least time inside exchanges; None: none is known."""
    known = (tracks.get(GpuKey(peer)) for peer in peers)
    return min((track.footprint.entered_s for track in known if track is not None), default=None)


def _overridden(track: Track, record: GpuRecord, signs: Signs, line: Timeline) -> Track:
    """With what overrides the readings now.

    A fault began where the last reading ended: what has not been decided since belongs to it too.
    """
    found = override(record, signs)
    cause = found.cause if found is not None else None
    if cause == (track.phases[-1].cause if track.phases else None):
        return track
    since_ns = _since(found, signs.now_ns, line)
    kept = [phase for phase in track.phases if phase.since_ns < since_ns]
    before = [phase for phase in kept if phase.since_ns <= track.decided_until_ns][-1:]
    later = [phase for phase in kept if phase.since_ns > track.decided_until_ns]
    return replace(track, phases=(*before, *later, Phase(since_ns, cause))[-PHASES_MAX:])


def _since(found: Override | None, now_ns: int, line: Timeline) -> int:
    if found is None:
        return now_ns
    if found.cause.state == "fault" and line:
        return min(found.since_ns, max(line[-1].ended_ns, found.since_ns - 3 * NS_PER_S))
    return min(found.since_ns, now_ns)


class _Turn:
    """One GPU's turn at one frame."""

    def __init__(self, key: GpuKey, view: View, *, is_company: bool, peer_entered_s: float | None) -> None:
        self.key = key
        self.view = view
        self.is_company = is_company
        self.peer_entered_s = peer_entered_s
        self.line = primary(key, view)
        self.footprint = UNKNOWN
        self.stalls: list[Stall] = []  # that ended in this turn

    def take(self, track: Track, before: Attribution | None, now_ns: int) -> tuple[Track, Attribution]:
        """Decide what can be decided."""
        until_ns = max(track.decided_until_ns, self._reach(track, now_ns))
        state_ns = before.state_ns if before is not None else {}
        recent, spinning_since_ns, waited = track.recent, track.spinning_since_ns, track.waited
        why = track.reasons
        self.footprint = track.footprint
        for began_ns, ended_ns, cause in self._pieces(track, until_ns):
            decision = self._decide(began_ns, ended_ns, cause)
            parts = split(ended_ns - began_ns, decision.shares)
            state_ns = added(state_ns, parts)
            why = reasons.after(why, parts, decision, ended_ns)
            recent = recent.after(parts, decision, ended_ns - began_ns)
            waited, stall = waited.after(parts)
            if stall is not None:
                self.stalls.append(stall)
            if not decision.is_spin:
                spinning_since_ns = None
            elif spinning_since_ns is None:
                spinning_since_ns = began_ns
        track = replace(
            track,
            decided_until_ns=until_ns,
            spinning_since_ns=spinning_since_ns,
            recent=recent,
            footprint=self.footprint,
            waited=waited,
            reasons=why,
        )
        return track, self._result(track, state_ns, before)

    def _result(self, track: Track, state_ns: Mapping[StateCause, int], before: Attribution | None) -> Attribution:
        now = track.phases[-1].cause if track.phases else None
        current, runner_up = label(track.recent, before.current if before is not None else None, now)
        return Attribution(
            state_ns=state_ns,
            tracked_ns=track.decided_until_ns - track.first_seen_ns,
            decided_until_ns=track.decided_until_ns,
            current=current,
            confidence_ratio=track.recent.confidence,
            evidence=track.recent.evidence,
            runner_up=runner_up,
            reasons=track.reasons,
        )

    def _reach(self, track: Track, now_ns: int) -> int:
        """How far can be decided: whole readings, once both their sides are known; at the limit, whatever there is."""
        settings = self.view.settings
        settled_ns = now_ns - settings.decision_lag_ns
        expired_ns = now_ns - settings.decision_limit_ns
        if track.phases and track.phases[-1].cause is not None:
            return settled_ns
        whole_ns = (segment.ended_ns for segment in self.line if segment.ended_ns <= settled_ns)
        return max(expired_ns, max(whole_ns, default=expired_ns))

    def _pieces(self, track: Track, until_ns: int) -> Iterator[tuple[int, int, StateCause | None]]:
        """From decided until `until_ns`, cut at every change: (began, ended, what overrides)."""
        edges = {until_ns}
        edges.update(phase.since_ns for phase in track.phases)
        for segment in self.line:
            edges.update((segment.began_ns, segment.ended_ns))
        at_ns = track.decided_until_ns
        for edge_ns in sorted(edges):
            if at_ns < edge_ns <= until_ns:
                yield at_ns, edge_ns, _cause_at(track.phases, at_ns)
                at_ns = edge_ns

    def _decide(self, began_ns: int, ended_ns: int, cause: StateCause | None) -> Decision:
        if cause is not None:
            return Decision(shares=((cause, 1.0),), confidence=1.0 if cause.state == "fault" else None)
        found = self._features(began_ns, ended_ns)
        if found is None:
            return Decision(shares=((self._blind(began_ns, ended_ns), 1.0),), confidence=None)
        if found.is_held is False:
            self.footprint = UNKNOWN  # the next job is another
        length_s = seconds(ended_ns - began_ns)
        self.footprint = self.footprint.after(levels_of(found), ended_ns, length_s)
        decision = decide(self.key, self.view, found, (began_ns, ended_ns), is_company=self.is_company)
        exposed = sum(share for cause, share in decision.shares if is_exchange(cause))
        entered = exposed_ratio(found) * found.active if found.has_gpm else 0.0
        self.footprint = self.footprint.with_exchange(
            levels_of(found), exposed * length_s, entered * length_s, length_s
        )
        return decision if not is_spin(found) else decision.spinning()

    def _features(self, began_ns: int, ended_ns: int) -> GpuFeatures | None:
        if self.key.is_instance:
            return instance_features(self.key, self.view, began_ns, ended_ns, self.footprint)
        return features(self.key, self.view, began_ns, ended_ns, self.footprint, self.peer_entered_s)

    def _blind(self, began_ns: int, ended_ns: int) -> StateCause:
        """Nothing says whether a kernel was resident: nothing was read around then, or no reading ever says."""
        line = self.line
        if not line or ended_ns <= line[0].began_ns or began_ns > line[-1].ended_ns + REMEMBERED_NS:
            return NO_DATA
        says = any("utilization" in segment.values or "graphics" in segment.values for segment in line)
        return STALE if says else UNSUPPORTED


def _cause_at(phases: tuple[Phase, ...], at_ns: int) -> StateCause | None:
    cause = None
    for phase in phases:
        if phase.since_ns <= at_ns:
            cause = phase.cause
    return cause
