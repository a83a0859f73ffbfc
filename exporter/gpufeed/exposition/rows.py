# SPDX-License-Identifier: Apache-2.0
"""From things of the state to rows: the labels of GPUs, and one value of each of several things."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from gpufeed.catalogue.define import MetricDef
from gpufeed.exposition.family import Family, Labels, Row
from gpufeed.model.ids import GpuKey
from gpufeed.model.sample import Sample
from gpufeed.model.state import GpuRecord, GpuTotals, NodeState

T = TypeVar("T")
S = TypeVar("S", bound=Sample)

Labelled = list[tuple[Labels, T]]
"""Things beside the label values that name them."""


def records(state: NodeState) -> Labelled[GpuRecord]:
    """Every GPU that is remembered, present or not, with the labels of its board."""
    return [((str(gpu.index), gpu.uuid), gpu) for gpu in sorted(state.gpus.values(), key=lambda gpu: gpu.index)]


def boards(state: NodeState, kind: type[S]) -> Labelled[S]:
    """Fresh samples of whole boards, with their labels."""
    return [(labels[:2], sample) for labels, sample in slices(state, _by_gpu(state, kind)) if not labels[2]]


def board_or_instances(state: NodeState, kind: type[S]) -> Labelled[S]:
    """Fresh samples of boards, and of the instances where a board is split, with their labels."""
    return slices(state, _by_gpu(state, kind))


def slices(state: NodeState, things: Mapping[GpuKey, T]) -> Labelled[T]:
    """Things of GPUs that are remembered, in the order of their index, with their labels."""
    known = [(state.gpus[key.uuid].index, key, thing) for key, thing in things.items() if key.uuid in state.gpus]
    known.sort(key=lambda item: (item[0], item[1].uuid, _place(item[1].gi), _place(item[1].ci)))
    return [((str(index), key.uuid, text(key.gi), text(key.ci)), thing) for index, key, thing in known]


def fresh_totals(state: NodeState, *kinds: type[Sample]) -> Mapping[GpuKey, GpuTotals]:
    """What the server adds up, of GPUs with a fresh sample of one of `kinds`: one that cannot grow is stale."""
    fresh = {key for kind in kinds for key in state.latest(kind)}
    return {key: total for key, total in state.gpu_totals.items() if key in fresh}


def family(definition: MetricDef, things: Iterable[tuple[Labels, T]], read: Callable[[T], float | None]) -> Family:
    """One value of each thing; a thing that cannot give it has no row."""
    return Family(definition, [(labels, value) for labels, thing in things if (value := read(thing)) is not None])


def slice_family(
    definition: MetricDef, things: Iterable[tuple[Labels, T]], read: Callable[[T], float | None]
) -> Family:
    """As `family`. Where a board's instances have rows the board has none: they would add up twice."""
    return Family(definition, without_split_boards(family(definition, things, read).rows))


def without_split_boards(rows: list[Row]) -> list[Row]:
    """Rows of slices, less those of boards that have rows of instances too."""
    split = {labels[1] for labels, _ in rows if labels[2]}
    return [row for row in rows if row[0][2] or row[0][1] not in split] if split else rows


def text(value: object) -> str:
    """A label value; what is not known is empty."""
    return "" if value is None else str(value)


def flag(value: bool | None) -> int | None:  # noqa: FBT001  # it is the value itself
    """A yes or no as 0 or 1."""
    return None if value is None else int(value)


def _by_gpu(state: NodeState, kind: type[S]) -> Mapping[GpuKey, S]:
    return {key: held.sample for key, held in state.latest(kind).items() if isinstance(key, GpuKey)}


def _place(instance: int | None) -> int:
    return -1 if instance is None else instance
