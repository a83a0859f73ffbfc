# SPDX-License-Identifier: Apache-2.0
"""The latest frames, kept encoded while somebody records, and let go when nobody has asked for a while."""

from base64 import b64encode
from collections import deque
from typing import Any, Final

import msgspec

from gpufeed.clock import Clock
from gpufeed.errors import WireError
from gpufeed.model.frame import Frame, Reading
from gpufeed.model.ids import CollectorName, GroupName, LaneId
from gpufeed.model.state import NodeState
from gpufeed.signals.samples import STALE_PERIODS
from gpufeed.units import NS_PER_S
from gpufeed.wire.framing import encode

_MAX_KEPT_BYTES: Final = 8 * 1024 * 1024
_MAX_ANSWER_BYTES: Final = 512 * 1024
_NOBODY_ASKS_NS: Final = 30 * NS_PER_S


class Frames:
    """Numbered as they come. Costs nothing while nobody records."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: deque[tuple[int, bytes]] = deque()
        self._kept_bytes = 0
        self._next = 0
        self._asked_ns: int | None = None

    def on_frame(self, frame: Frame) -> None:
        """One more."""
        if self._asked_ns is None:
            return
        if self._clock.monotonic_ns() - self._asked_ns > _NOBODY_ASKS_NS:
            self._asked_ns = None
            self._kept.clear()
            self._kept_bytes = 0
            return
        try:
            data = encode(frame)
        except WireError:  # a gap of ours can always be encoded; what came over the wire as well
            return
        self._kept.append((self._next, data))
        self._next += 1
        self._kept_bytes += len(data)
        while self._kept_bytes > _MAX_KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popleft()[1])

    def begin(self, state: NodeState) -> dict[str, object]:
        """From now on; first comes one that holds all that is known: who the GPUs are is read once a minute only."""
        self._asked_ns = self._clock.monotonic_ns()
        try:
            opening = [b64encode(encode(opening_of(state))).decode()]
        except WireError:
            opening = []
        return {"frames": opening, "next": self._next, "lost": 0, "time": msgspec.to_builtins(state.time)}

    def since(self, number: int) -> dict[str, object]:
        """Those from `number` on. `lost`: how many of them are gone."""
        self._asked_ns = self._clock.monotonic_ns()
        first = self._kept[0][0] if self._kept else self._next
        answer: list[str] = []
        size, following = 0, max(number, first)
        for at, data in self._kept:
            if at < number:
                continue
            if answer and size + len(data) > _MAX_ANSWER_BYTES:
                break
            answer.append(b64encode(data).decode())
            size, following = size + len(data), at + 1
        return {"frames": answer, "next": following, "lost": max(0, first - number)}


def opening_of(state: NodeState) -> Frame:
    """A frame of everything that is fresh, as if it had all been read when it was read last."""
    together: dict[tuple[int, LaneId, GroupName, CollectorName, int], list[Any]] = {}
    for held_of_kind in state.samples.values():
        for held in held_of_kind.values():
            key = (held.read_at_ns, held.lane, held.group, held.collector, held.stale_at_ns)
            together.setdefault(key, []).append(held.sample)
    readings = (
        Reading(
            lane=lane,
            group=group,
            collector=collector,
            began_ns=read_at_ns,
            ended_ns=read_at_ns,
            period_ns=max(1, (stale_at_ns - read_at_ns) // STALE_PERIODS),
            samples=tuple(samples),
        )
        for (read_at_ns, lane, group, collector, stale_at_ns), samples in sorted(
            together.items(), key=lambda item: item[0]
        )
    )
    return Frame(
        sequence=0,
        time=state.time,
        lanes=tuple(state.lanes.values()),
        readings=tuple(readings),
        inputs=tuple(state.inputs.values()),
        probe_pid=state.probe.pid,
    )
