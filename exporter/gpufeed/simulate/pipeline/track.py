# SPDX-License-Identifier: Apache-2.0
"""What a GPU does over time: a track of segments in which every level stands still, added up only when read."""

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import Final

from gpufeed.simulate.activity import Activity, Cause
from gpufeed.simulate.block import INTEGRALS
from gpufeed.simulate.hardware import GpuModel
from gpufeed.simulate.levels import HOST_INTEGRALS, Levels, levels

PORT_INTEGRALS: Final = ("ib_receive_bytes", "ib_transmit_bytes", "ib_waiting_s", "ib_lost_packets")
TRACKED: Final = INTEGRALS + PORT_INTEGRALS
"""What a track adds up: all of the GPU, and what passes the network card beside it."""

POSITION: Final = {name: at for at, name in enumerate(TRACKED)}
RECENT_NS: Final = 3_000_000_000
"""How far back the segments themselves are kept: sensors look at windows of at most a second."""

_FROM_HOST: Final = tuple(HOST_INTEGRALS.index(name) for name in PORT_INTEGRALS[:3])


class Level:
    """Everything about a GPU that stands still in a segment. One object per kind of segment: compared by identity."""

    __slots__ = ("activity", "of_model", "rates", "truth", "truths")

    def __init__(self, activity: Activity, truths: Mapping[Cause, float], model: GpuModel) -> None:
        self.activity = activity
        self.truths = tuple(sorted(truths.items(), key=lambda share: -share[1]))
        self.truth = self.truths[0][0]
        self.of_model: Levels = levels(activity, model)
        rates = (*self.of_model.gpu, *(self.of_model.host[at] for at in _FROM_HOST), activity.fabric_lost)
        self.rates = tuple((at, rate / 1e9) for at, rate in enumerate(rates) if rate)


class Palette:
    """Levels of one model, each made once."""

    def __init__(self, model: GpuModel) -> None:
        self.model = model
        self._known: dict[tuple[object, ...], Level] = {}

    def known(self, *key: object) -> Level | None:
        """The level that was put here under this key."""
        return self._known.get(key)

    def make(self, activity: Activity, truths: Mapping[Cause, float] | None = None, key: object = None) -> Level:
        """A level; `truths`: what is true during it, as shares of its time, where it is not the activity's own."""
        level = Level(activity, truths or {activity.truth: 1.0}, self.model)
        if key is not None:
            self._known[key if isinstance(key, tuple) else (key,)] = level
        return level


class Track:
    """The segments of one GPU."""

    __slots__ = ("_integrals", "_pending", "_recent", "_total_ns", "level", "since_ns")

    def __init__(self, level: Level) -> None:
        self.level = level
        self.since_ns = 0
        self._pending: defaultdict[Level, int] = defaultdict(int)
        self._total_ns: defaultdict[Level, int] = defaultdict(int)
        self._integrals = [0.0] * len(TRACKED)
        self._recent: deque[tuple[int, int, Level]] = deque()

    def begin(self, level: Level, now_ns: int) -> None:
        """What the GPU does from now on."""
        spent_ns = now_ns - self.since_ns
        if spent_ns:
            self._pending[self.level] += spent_ns
            recent = self._recent
            recent.append((self.since_ns, now_ns, self.level))
            if recent[0][1] < now_ns - RECENT_NS:
                recent.popleft()
                if recent[0][1] < now_ns - RECENT_NS:
                    recent.popleft()
            self.since_ns = now_ns
        self.level = level

    def integrals(self, now_ns: int) -> list[float]:
        """Sums since the start, in the order of TRACKED."""
        self._fold(now_ns)
        return list(self._integrals)

    def truth_ns(self, now_ns: int) -> dict[Cause, int]:
        """How long each (state, cause) was true since the start. Sums to `now_ns`."""
        self._fold(now_ns)
        spent: defaultdict[Cause, int] = defaultdict(int)
        for level, total_ns in self._total_ns.items():
            left_ns = total_ns
            for cause, share in level.truths[1:]:
                part_ns = int(total_ns * share)
                spent[cause] += part_ns
                left_ns -= part_ns
            spent[level.truth] += left_ns
        return dict(spent)

    def window(self, began_ns: int, ended_ns: int) -> list[float]:
        """What was added between two instants, at most RECENT_NS ago, in the order of TRACKED."""
        added = [0.0] * len(TRACKED)
        for from_ns, until_ns, level in (*self._recent, (self.since_ns, ended_ns, self.level)):
            spent_ns = min(until_ns, ended_ns) - max(from_ns, began_ns)
            if spent_ns > 0:
                for at, rate in level.rates:
                    added[at] += rate * spent_ns
        return added

    def _fold(self, now_ns: int) -> None:
        self.begin(self.level, now_ns)
        integrals = self._integrals
        for level, spent_ns in self._pending.items():
            self._total_ns[level] += spent_ns
            for at, rate in level.rates:
                integrals[at] += rate * spent_ns
        self._pending.clear()
