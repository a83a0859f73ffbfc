# SPDX-License-Identifier: Apache-2.0
"""Truth and answers, cut at the same moments: an answer comes later than the time it is about, and in its own steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bench.accuracy.classifiers import Answer, Classifier
from bench.accuracy.verdicts import BIN_NS
from gpufeed.model.frame import Frame
from gpufeed.model.ids import GpuUuid
from gpufeed.simulate.activity import Cause
from gpufeed.simulate.pipeline.node import JudgedNode
from gpufeed.simulate.sensors.scene import BOOT_NS

Seconds = Mapping[Cause, float]


class Bin(NamedTuple):
    """One GPU over BIN_NS: what was true, and what was said."""

    truth: Seconds
    answer: Seconds


class TruthClerk:
    """A face that sends nothing: writes down what has been true at the edge of every bin."""

    def __init__(self, node: JudgedNode) -> None:
        self._node = node
        self.due_ns = BIN_NS
        self.bins: list[list[Seconds]] = [[] for _ in node.gpus]
        self._before: list[Mapping[Cause, int]] = [{} for _ in node.gpus]

    def perform(self) -> Frame | None:
        """At the edge."""
        for at, gpu in enumerate(self._node.gpus):
            now, before = dict(gpu.truth_ns), self._before[at]
            self.bins[at].append(
                {cause: (ns - before.get(cause, 0)) / 1e9 for cause, ns in now.items() if ns > before.get(cause, 0)}
            )
            self._before[at] = now
        self.due_ns += BIN_NS
        return None


@dataclass(slots=True)
class _Track:
    """The answers about one GPU so far."""

    last: Answer | None = None
    edge: Seconds = field(default_factory=dict)  # cumulative, at the last edge
    edge_ns: int = BOOT_NS + BIN_NS
    bins: list[Seconds] = field(default_factory=list)


class AnswerClerk:
    """Writes down what a classifier says, cut at the edges of the bins."""

    def __init__(self, classifier: Classifier, uuids: tuple[GpuUuid, ...]) -> None:
        self.classifier = classifier
        self.uuids = uuids
        self._tracks = {uuid: _Track() for uuid in uuids}

    def take(self, frame: Frame) -> None:
        """Let it see a frame, and ask."""
        self.classifier.take(frame)
        for uuid, track in self._tracks.items():
            answer = self.classifier.answer(uuid)
            if answer is not None:
                _follow(track, answer)

    def bins(self, uuid: GpuUuid) -> list[Seconds]:
        """Of one GPU: as far as it has been decided."""
        return self._tracks[uuid].bins


def _follow(track: _Track, answer: Answer) -> None:
    """Between two answers the time of every cause is taken to pass evenly: they are less than a bin apart."""
    if track.last is None:
        track.last = Answer(answer.until_ns - int(1e9 * sum(answer.seconds.values())), {})
    last = track.last
    while answer.until_ns >= track.edge_ns:
        length_ns = answer.until_ns - last.until_ns
        share = max(0.0, (track.edge_ns - last.until_ns) / length_ns) if length_ns > 0 else 1.0
        at_edge = {
            cause: last.seconds.get(cause, 0.0) + share * (spent_s - last.seconds.get(cause, 0.0))
            for cause, spent_s in answer.seconds.items()
        }
        track.bins.append(_difference(track.edge, at_edge))
        track.edge = at_edge
        track.edge_ns += BIN_NS
    track.last = answer


def _difference(before: Seconds, after: Seconds) -> Seconds:
    """A cause that got less has been taken back: it counts as it is."""
    causes = before.keys() | after.keys()
    steps = {cause: after.get(cause, 0.0) - before.get(cause, 0.0) for cause in causes}
    return {cause: step for cause, step in steps.items() if abs(step) > _NOTHING_S}


_NOTHING_S: Final = 1e-9
