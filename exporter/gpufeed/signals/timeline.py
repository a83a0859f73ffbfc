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
    kept = tuple(known for known in timeline if known.ended_ns > now_ns - REMEMBERED_NS)
    began_ns = max(segment.began_ns, kept[-1].ended_ns) if kept else segment.began_ns
    if not began_ns < segment.ended_ns <= now_ns or not segment.values:
        return kept
    return (*kept, Segment(began_ns, segment.ended_ns, segment.values))


def mean(timeline: Timeline, began_ns: int, ended_ns: int) -> dict[str, float]:
    """Mean of every value over the part of [began_ns, ended_ns) where it is known. Empty: nothing is."""
    single: Segment | None = None
    count = 0
    for segment in timeline:
        if segment.began_ns < ended_ns and segment.ended_ns > began_ns:
            single = segment
            count += 1
    if single is None:
        return {}
    if count == 1:
        return dict(single.values)
    sums: dict[str, float] = {}
    lengths: dict[str, int] = {}
    for segment in timeline:
        overlap_ns = min(segment.ended_ns, ended_ns) - max(segment.began_ns, began_ns)
        if overlap_ns > 0:
            for name, value in segment.values.items():
                sums[name] = sums.get(name, 0.0) + value * overlap_ns
                lengths[name] = lengths.get(name, 0) + overlap_ns
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


def highest(timeline: Timeline, name: str, began_ns: int, ended_ns: int) -> float | None:
    """The highest mean of `name` in any segment that touches the interval."""
    return max(_touching(timeline, name, began_ns, ended_ns), default=None)


def _touching(timeline: Timeline, name: str, began_ns: int, ended_ns: int) -> list[float]:
    return [
        segment.values[name]
        for segment in timeline
        if segment.began_ns < ended_ns and segment.ended_ns > began_ns and name in segment.values
    ]
