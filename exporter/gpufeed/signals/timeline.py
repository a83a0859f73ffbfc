# SPDX-License-Identifier: Apache-2.0
"""The last few seconds of one input, as segments of known means: what a decision about an instant looks at.

Readings of different lanes never line up. A mean over any interval is the overlap-weighted mean of the segments below
it; what no segment covers is not known, and the answer says how much was.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from gpufeed.units import NS_PER_S

REMEMBERED_NS: Final = 8 * NS_PER_S
"""Longer than the decision limit, the evidence window and the longest fast period together."""


class Segment(NamedTuple):
    """Means over [began_ns, ended_ns), monotonic."""

    began_ns: int
    ended_ns: int
    values: Mapping[str, float]


Timeline = tuple[Segment, ...]
"""In the order of time, without overlaps."""


def extended(timeline: Timeline, segment: Segment, now_ns: int) -> Timeline:
    """With one segment more, less what is older than remembered. What is covered already stays as it is.

    A segment that ends after `now_ns` is refused: it would keep out all that is true until then.
    """
    first, forgotten_ns = 0, now_ns - REMEMBERED_NS
    while first < len(timeline) and timeline[first].ended_ns <= forgotten_ns:
        first += 1
    kept = timeline[first:] if first else timeline
    began_ns = max(segment.began_ns, kept[-1].ended_ns) if kept else segment.began_ns
    if not began_ns < segment.ended_ns <= now_ns or not segment.values:
        return kept
    return (*kept, Segment(began_ns, segment.ended_ns, segment.values))


def mean(timeline: Timeline, began_ns: int, ended_ns: int) -> Mapping[str, float]:
    """Mean of every value over the part of [began_ns, ended_ns) where it is known. Empty: nothing is.

    From the newest on: what is asked for lies near the end, and this is asked more often than anything else.
    """
    touched: list[tuple[int, Mapping[str, float]]] = []
    for segment_began_ns, segment_ended_ns, values in reversed(timeline):
        if segment_ended_ns <= began_ns:
            break
        if segment_began_ns < ended_ns:
            touched.append((min(segment_ended_ns, ended_ns) - max(segment_began_ns, began_ns), values))
    if len(touched) <= 1:
        return touched[0][1] if touched else {}
    sums: dict[str, float] = {}
    lengths: dict[str, int] = {}
    for overlap_ns, values in touched:
        for name, value in values.items():
            if name in sums:
                sums[name] += value * overlap_ns
                lengths[name] += overlap_ns
            else:
                sums[name] = value * overlap_ns
                lengths[name] = overlap_ns
    return {name: total / lengths[name] for name, total in sums.items()}


def mean_of(timeline: Timeline, name: str, began_ns: int, ended_ns: int) -> float | None:
    """Mean of one value; None where nothing is known."""
    total, length_ns = 0.0, 0
    for segment in timeline:
        overlap_ns = min(segment.ended_ns, ended_ns) - max(segment.began_ns, began_ns)
        value = segment.values.get(name) if overlap_ns > 0 else None
        if value is not None:
            total += value * overlap_ns
            length_ns += overlap_ns
    return total / length_ns if length_ns else None


def lowest(timeline: Timeline, name: str, began_ns: int, ended_ns: int) -> float | None:
    """The lowest mean of `name` in any segment that touches the interval."""
    return min(_touching(timeline, name, began_ns, ended_ns), default=None)


def _touching(timeline: Timeline, name: str, began_ns: int, ended_ns: int) -> list[float]:
    return [
        segment.values[name]
        for segment in timeline
        if segment.began_ns < ended_ns and segment.ended_ns > began_ns and name in segment.values
    ]
