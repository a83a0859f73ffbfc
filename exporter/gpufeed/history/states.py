# SPDX-License-Identifier: Apache-2.0
"""Where each GPU's time went lately, slot by slot: what a timeline is drawn from.

Each decided nanosecond falls into exactly one slot. Memory is bounded: 30 minutes in slots of 5 s, of so many GPUs.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gpufeed.model.ids import GpuKey
from gpufeed.model.state import Attribution, NodeState, StateCause
from gpufeed.units import NS_PER_S

SLOT_NS: Final = 5 * NS_PER_S
SLOTS: Final = 30 * 60 // 5
MAX_GPUS: Final = 128
"""Boards or MIG instances: 16 boards of 7 instances, and some room."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The time of one GPU that was decided within [began_ns, began_ns + SLOT_NS), monotonic."""

    began_ns: int
    spent_ns: Mapping[StateCause, int]


@dataclass(slots=True)
class _Track:
    """One GPU: its slots, oldest first, and how far its totals had come."""

    slots: deque[tuple[int, dict[StateCause, int]]] = field(default_factory=lambda: deque(maxlen=SLOTS))
    decided_until_ns: int | None = None
    state_ns: Mapping[StateCause, int] = field(default_factory=dict)


class StateHistory:
    """The recent past of every GPU. Not thread-safe: it belongs to the server's loop."""

    def __init__(self, max_gpus: int = MAX_GPUS) -> None:
        self._max_gpus = max_gpus
        self._tracks: dict[GpuKey, _Track] = {}

    def append(self, state: NodeState) -> None:
        """What was decided since the state before. GPUs beyond the limit are left out."""
        for key, attribution in state.attributions.items():
            track = self._tracks.get(key)
            if track is None:
                if len(self._tracks) >= self._max_gpus:
                    self._forget(state)
                if len(self._tracks) >= self._max_gpus:
                    continue
                track = self._tracks[key] = _Track()
            _extend(track, attribution)

    def slots(self, key: GpuKey) -> tuple[Slot, ...]:
        """All that is remembered of a GPU, oldest first; slots in which nothing was decided are left out."""
        track = self._tracks.get(key)
        if track is None:
            return ()
        return tuple(Slot(number * SLOT_NS, dict(spent)) for number, spent in track.slots)

    def _forget(self, state: NodeState) -> None:
        for gone in [key for key in self._tracks if key not in state.attributions]:
            del self._tracks[gone]


def _extend(track: _Track, attribution: Attribution) -> None:
    began_ns = track.decided_until_ns
    if began_ns is None or attribution.decided_until_ns < began_ns:  # new, or seen anew: its totals began again
        began_ns = attribution.decided_until_ns - attribution.tracked_ns
        track.state_ns = {}
    ended_ns = attribution.decided_until_ns
    if ended_ns > began_ns:
        for cause, total_ns in attribution.state_ns.items():
            spent_ns = total_ns - track.state_ns.get(cause, 0)
            if spent_ns > 0:
                _spread(track, cause, spent_ns, (began_ns, ended_ns))
    track.decided_until_ns, track.state_ns = ended_ns, attribution.state_ns


def _spread(track: _Track, cause: StateCause, spent_ns: int, interval: tuple[int, int]) -> None:
    """Over the slots that the interval touches, in proportion; whole nanoseconds, none lost."""
    began_ns, ended_ns = interval
    first = max(began_ns // SLOT_NS, (ended_ns - 1) // SLOT_NS - SLOTS + 1)
    given_ns = 0
    for number in range(first, (ended_ns - 1) // SLOT_NS + 1):
        until_ns = min((number + 1) * SLOT_NS, ended_ns)
        due_ns = spent_ns * (until_ns - began_ns) // (ended_ns - began_ns)
        spent = _slot(track, number)
        spent[cause] = spent.get(cause, 0) + due_ns - given_ns
        given_ns = due_ns


def _slot(track: _Track, number: int) -> dict[StateCause, int]:
    for known, spent in reversed(track.slots):
        if known == number:
            return spent
        if known < number:
            break
    spent = {}
    track.slots.append((number, spent))
    return spent
