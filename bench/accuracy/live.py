# SPDX-License-Identifier: Apache-2.0
"""One shard: a node lives and is looked at, classifiers hear of it, clerks write both sides down, and it is scored."""

import gc
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.accuracy.alarm import alarms
from bench.accuracy.classifiers import CLASSIFIERS, Oracle, Subject
from bench.accuracy.plans import Shard, View
from bench.accuracy.recording import Recording, Shown
from bench.accuracy.score import Score, scored
from bench.accuracy.standard import Standard
from bench.accuracy.store import read_json, write_json
from bench.accuracy.timeline import AnswerClerk, Bin, TruthClerk
from bench.accuracy.verdicts import BIN_NS, Right, rights_of
from gpufeed.model.ids import GpuUuid
from gpufeed.simulate.pipeline.node import JudgedNode
from gpufeed.simulate.pipeline.scenarios import JUDGED
from gpufeed.simulate.sensors.face import SensorFace, frames
from gpufeed.simulate.sensors.settings import INPUTS, Sensing

_ALLOCATIONS = 100_000
"""Between two looks for garbage in circles: a step makes much that lives long, and hardly a circle."""
_TAIL_S = 10
"""Lived beyond what is scored: an answer about the end comes some seconds after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A shard, and where what belongs to it is kept. Crosses to another process."""

    shard: Shard
    classifier: str
    result: Path
    verdicts: Path
    frames: Path | None = None  # where what a node showed is kept; None: nowhere


def perform(task: Task) -> dict[str, Any]:
    """The result of a shard: read, or found and written."""
    found: dict[str, Any] | None = read_json(task.result)
    if found is None:
        gc.set_threshold(_ALLOCATIONS)
        found = run(task.shard, task.classifier, task.verdicts, task.frames)
        write_json(task.result, found)
    return found


def run(shard: Shard, classifier: str, verdicts: Path, frames_in: Path | None = None) -> dict[str, Any]:
    """Live it, or see once more what it showed."""
    rights = _rights(shard, verdicts)
    node = JudgedNode(shard.scenario, shard.model, shard.gpus, shard.seed)
    make = CLASSIFIERS[classifier]
    uuids = tuple(GpuUuid(gpu.board.uuid) for gpu in node.gpus)
    clerks = [AnswerClerk(make(Subject(node, rights)), uuids) for _ in shard.views]
    truth = TruthClerk(node)
    # an oracle asks the node itself, which has to be there
    kept = Recording(frames_in, shard.name) if frames_in is not None and make is not Oracle else None
    for number, frame in _shown(shard, node, truth, kept):
        clerks[number].take(frame)
    return {
        "name": shard.name,
        "shard": shard.written(),
        "views": [_view(shard, view, truth, clerk, rights) for view, clerk in zip(shard.views, clerks, strict=True)],
    }


def _shown(shard: Shard, node: JudgedNode, truth: TruthClerk, kept: Recording | None) -> Iterator[Shown]:
    """Frames by the number of their view; the truth is whole when they end."""
    if kept is not None and kept.is_there:
        yield from kept.play()
        truth.bins = kept.truth()
        return
    faces = [SensorFace(node, _sensing(view, shard.seed)) for view in shard.views]
    lived = frames(node, [truth, *faces], (shard.seconds + _TAIL_S) * 1_000_000_000)
    shown = ((number - 1, frame) for number, frame in lived)
    if kept is None:
        yield from shown
    else:
        yield from kept.keep(shown)
        kept.finish(truth.bins)


def _view(shard: Shard, view: View, truth: TruthClerk, clerk: AnswerClerk, rights: tuple[Right, ...]) -> dict[str, Any]:
    standard, uuids = Standard.load(), clerk.uuids
    length = shard.seconds * 1_000_000_000 // BIN_NS
    scores: list[Score] = []
    for at, uuid in enumerate(uuids):
        bins = [Bin(*both) for both in zip(truth.bins[at], clerk.bins(uuid), strict=False)][:length]
        scores.append(
            scored(bins, rights[at], is_visible=JUDGED[shard.scenario].is_visible, margin=standard.two_causes_margin)
        )
    return {
        "inputs": view.inputs,
        "period_ms": view.period_ms,
        "gpus": [asdict(score) for score in scores],
        "alarms": alarms([clerk.bins(uuid) for uuid in uuids], standard.rule) if shard.is_day else [],
        "is_conserving": clerk.classifier.is_conserving,
    }


def _rights(shard: Shard, verdicts: Path) -> tuple[Right, ...]:
    if shard.is_day:
        return (Right(),) * shard.gpus
    return rights_of(shard.scenario, shard.seed, shard.seconds, shard.model, shard.gpus, verdicts)


def _sensing(view: View, seed: int) -> Sensing:
    return Sensing(period_ns=view.period_ms * 1_000_000, inputs=INPUTS[view.inputs], seed=seed)
