# SPDX-License-Identifier: Apache-2.0
"""The latest sample of each thing while it is fresh. Stale is absent."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final

from gpufeed.model.frame import Frame, Reading
from gpufeed.model.gpu import DriverInfo, GpuIdentity, PciGpus
from gpufeed.model.host import NodeInfo
from gpufeed.model.ids import LaneId
from gpufeed.model.sample import Sample
from gpufeed.model.state import Held
from gpufeed.units import NS_PER_S

Samples = Mapping[type[Sample], Mapping[Hashable, Held[Any]]]

STALE_PERIODS: Final = 3
STALE_MIN_NS: Final = 10 * NS_PER_S
IDENTITIES: Final[frozenset[type[Sample]]] = frozenset({DriverInfo, GpuIdentity, NodeInfo, PciGpus})
"""What stays until its lane ends: it does not change while nobody looks."""


def fold(previous: Samples, frame: Frame, stuck: frozenset[LaneId]) -> Samples:
    """The fresh samples after `frame`. `stuck`: lanes whose readings are withdrawn."""
    samples: dict[type[Sample], Mapping[Hashable, Held[Any]]] = dict(previous)
    fresh = [reading for reading in frame.readings if reading.lane not in stuck]
    for reading in fresh:
        _put(samples, reading)
    _prune(samples, frame, stuck)
    return samples


def hold(reading: Reading, sample: Sample) -> Held[Any]:
    """`sample` with the time from which it is stale."""
    return Held(
        sample=sample,
        lane=reading.lane,
        group=reading.group,
        collector=reading.collector,
        read_at_ns=reading.ended_ns,
        stale_at_ns=reading.ended_ns + max(STALE_PERIODS * reading.period_ns, STALE_MIN_NS),
    )


def _put(samples: dict[type[Sample], Mapping[Hashable, Held[Any]]], reading: Reading) -> None:
    """What `reading` has replaces what the same lane and group had before: what it has no longer is gone."""
    new: dict[type[Sample], dict[Hashable, Held[Any]]] = {}
    for sample in reading.samples:
        new.setdefault(type(sample), {})[sample.subject] = hold(reading, sample)
    for kind, held in samples.items():
        gone = [
            subject
            for subject, item in held.items()
            if item.lane == reading.lane and item.group == reading.group and subject not in new.get(kind, ())
        ]
        if gone:
            samples[kind] = _without(held, gone)
    for kind, items in new.items():
        samples[kind] = {**samples.get(kind, {}), **items}


def _prune(samples: dict[type[Sample], Mapping[Hashable, Held[Any]]], frame: Frame, stuck: frozenset[LaneId]) -> None:
    now_ns, withdrawn, is_gap = frame.time.monotonic_ns, frame.withdrawn, bool(frame.gap)
    for kind, held in samples.items():
        if kind in IDENTITIES:
            gone = [subject for subject, item in held.items() if item.lane in withdrawn]
        elif is_gap:
            gone = list(held)
        else:
            gone = [
                subject
                for subject, item in held.items()
                if item.stale_at_ns <= now_ns or item.lane in stuck or item.lane in withdrawn
            ]
        if gone:
            samples[kind] = _without(held, gone)


def _without(held: Mapping[Hashable, Held[Any]], gone: Iterable[Hashable]) -> Mapping[Hashable, Held[Any]]:
    rest = dict(held)
    for subject in gone:
        del rest[subject]
    return rest
