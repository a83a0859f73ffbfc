# SPDX-License-Identifier: Apache-2.0
"""The latest sample of each thing while it is fresh. Stale is absent."""

from collections.abc import Container, Hashable, Mapping
from typing import Any, Final, TypeVar

from gpufeed.model.frame import Frame, Reading
from gpufeed.model.gpu import DriverInfo, GpuIdentity, MigInstances, PciGpus
from gpufeed.model.host import NodeInfo
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.sample import Sample
from gpufeed.model.state import Held
from gpufeed.units import NS_PER_S

S = TypeVar("S", bound=Sample)

Samples = Mapping[type[Sample], Mapping[Hashable, Held[Any]]]

NEVER_NS: Final = -(1 << 70)
STALE_PERIODS: Final = 3
STALE_MIN_NS: Final = 10 * NS_PER_S
IDENTITIES: Final[frozenset[type[Sample]]] = frozenset({DriverInfo, GpuIdentity, MigInstances, NodeInfo, PciGpus})
"""What stays until its lane ends: it does not change while nobody looks."""
_OF_A_GPU: Final[frozenset[type[Sample]]] = frozenset({GpuIdentity, MigInstances})
"""What also stays known when its GPU stops answering."""


def fold(previous: Samples, frame: Frame, stuck: frozenset[LaneId]) -> Samples:
    """The fresh samples after `frame`. `stuck`: lanes whose readings are withdrawn.

    What a reading has replaces what the same lane and group had before: what it has no longer is gone. Only who a GPU
    is and how it is split stays known when it stops answering.
    """
    read = [reading for reading in frame.readings if reading.lane not in stuck]
    replaced = {(reading.lane, reading.group): reading.ended_ns for reading in read}
    new: dict[type[Sample], dict[Hashable, Held[Any]]] = {}
    for reading in read:
        if reading.ended_ns == replaced[reading.lane, reading.group]:
            for sample in reading.samples:
                new.setdefault(type(sample), {})[sample.subject] = hold(reading, sample)
    renewed = {kind: {(item.lane, item.group) for item in new.get(kind, {}).values()} for kind in _OF_A_GPU}
    samples: dict[type[Sample], Mapping[Hashable, Held[Any]]] = {
        kind: _kept(kind, held, frame, stuck, renewed.get(kind, replaced)) for kind, held in previous.items()
    }
    for kind, items in new.items():
        old = samples.get(kind)
        samples[kind] = {**old, **items} if old else items
    return samples


def all_of(samples: Samples, kind: type[S]) -> list[S]:
    """Every fresh sample of a kind, in the order in which they were first read."""
    held: Mapping[Hashable, Held[Any]] = samples.get(kind, {})
    return [item.sample for item in held.values()]


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


def _kept(
    kind: type[Sample],
    held: Mapping[Hashable, Held[Any]],
    frame: Frame,
    stuck: frozenset[LaneId],
    replaced: Container[tuple[LaneId, GroupName]],
) -> Mapping[Hashable, Held[Any]]:
    """What is still good of one kind; the same mapping where all is."""
    withdrawn, now_ns = frame.withdrawn, frame.time.monotonic_ns
    if kind in IDENTITIES:
        stuck, now_ns = frozenset(), NEVER_NS
    elif frame.gap:
        return {}
    kept = {
        subject: item
        for subject, item in held.items()
        if item.stale_at_ns > now_ns
        and (item.lane, item.group) not in replaced
        and item.lane not in stuck
        and item.lane not in withdrawn
    }
    return held if len(kept) == len(held) else kept
