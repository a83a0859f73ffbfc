# SPDX-License-Identifier: Apache-2.0
"""What flows now: rates of counters over the last few readings, for people. Prometheus makes its own."""

from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from typing import Final, NamedTuple

from gpufeed.model.fabric import IbCounters
from gpufeed.model.gpu import NvlinkTotals
from gpufeed.model.host import Pressure
from gpufeed.model.state import NodeState
from gpufeed.model.storage import StorageCounters
from gpufeed.units import NS_PER_S, seconds

WINDOW_NS: Final = 10 * NS_PER_S
MAX_SUBJECTS: Final = 1_000
_READINGS: Final = 64

Counters = Mapping[str, float]
Watched = StorageCounters | IbCounters | Pressure | NvlinkTotals
_WATCHED: Final[tuple[type[Watched], ...]] = (StorageCounters, IbCounters, Pressure, NvlinkTotals)
_NAMES: Final[Mapping[type[Watched], tuple[str, ...]]] = {
    StorageCounters: ("read_bytes", "write_bytes", "reads", "read_s", "busy_s"),
    IbCounters: ("receive_bytes", "transmit_bytes"),
    Pressure: ("waiting_s", "stalled_s"),
    NvlinkTotals: ("receive_bytes", "transmit_bytes"),
}


class _Reading(NamedTuple):
    at_ns: int
    counters: Counters


class Rates:
    """Rates per second by kind of sample and subject. Not thread-safe: it belongs to the server's loop."""

    def __init__(self, max_subjects: int = MAX_SUBJECTS) -> None:
        self._max_subjects = max_subjects
        self._readings: dict[tuple[type[Watched], Hashable], deque[_Reading]] = {}

    def append(self, state: NodeState) -> None:
        """What was read since the state before. What is no longer read is forgotten."""
        fresh = dict(_fresh(state))
        for gone in self._readings.keys() - fresh.keys():
            del self._readings[gone]
        for key, reading in fresh.items():
            known = self._readings.get(key)
            if known is None:
                if len(self._readings) >= self._max_subjects:
                    continue
                known = self._readings[key] = deque(maxlen=_READINGS)
            if not known or reading.at_ns > known[-1].at_ns:
                known.append(reading)
            while len(known) > 2 and known[0].at_ns < reading.at_ns - WINDOW_NS:  # noqa: PLR2004 a rate needs two
                known.popleft()

    def of(self, kind: type[Watched], subject: Hashable) -> Mapping[str, float]:
        """Rates per second of a subject's counters; a counter that was reset or not read has none."""
        known = self._readings.get((kind, subject))
        if known is None or known[-1].at_ns <= known[0].at_ns:
            return {}
        took_s = seconds(known[-1].at_ns - known[0].at_ns)
        first, last = known[0].counters, known[-1].counters
        return {
            name: (last[name] - first[name]) / took_s for name in last if first.get(name, last[name] + 1) <= last[name]
        }


def _fresh(state: NodeState) -> Iterator[tuple[tuple[type[Watched], Hashable], _Reading]]:
    for kind in _WATCHED:
        for subject, held in state.latest(kind).items():
            values = ((name, getattr(held.sample, name)) for name in _NAMES[kind])
            counters = {name: float(value) for name, value in values if value is not None}
            yield (kind, subject), _Reading(held.read_at_ns, counters)
