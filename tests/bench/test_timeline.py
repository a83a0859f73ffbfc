# SPDX-License-Identifier: Apache-2.0
"""Answers that come when they come, cut at the edges of bins."""

from collections.abc import Mapping

import pytest

from bench.accuracy.classifiers import Answer
from bench.accuracy.timeline import AnswerClerk, TruthClerk
from gpufeed.model.frame import Frame, FrameTime
from gpufeed.model.ids import GpuUuid
from gpufeed.simulate.activity import Cause
from gpufeed.simulate.pipeline.node import JudgedNode
from gpufeed.simulate.sensors.face import frames
from gpufeed.simulate.sensors.scene import BOOT_NS

S = 1_000_000_000
GPU = GpuUuid("GPU-1")
BUSY, IDLE = ("busy", "tensor"), ("idle_held", "")


class Scripted:
    """Says what it was told to say, one answer a frame."""

    is_conserving = True

    def __init__(self, *answers: tuple[float, Mapping[Cause, float]] | None) -> None:
        self._answers = [None if a is None else Answer(BOOT_NS + int(a[0] * S), a[1]) for a in answers]

    def take(self, frame: Frame) -> None:
        self._now = self._answers[frame.sequence]

    def answer(self, _uuid: GpuUuid) -> Answer | None:
        return self._now


def heard(*answers: tuple[float, Mapping[Cause, float]] | None) -> list[Mapping[Cause, float]]:
    clerk = AnswerClerk(Scripted(*answers), (GPU,))
    for at in range(len(answers)):
        clerk.take(Frame(sequence=at, time=FrameTime(0, 0, 0)))
    return clerk.bins(GPU)


def test_between_two_answers_time_passes_evenly() -> None:
    bins = heard((4.0, {BUSY: 4.0}), (6.0, {BUSY: 5.0, IDLE: 1.0}), (10.0, {BUSY: 9.0, IDLE: 1.0}))
    assert bins == [
        {BUSY: pytest.approx(4.5), IDLE: pytest.approx(0.5)},
        {BUSY: pytest.approx(4.5), IDLE: pytest.approx(0.5)},
    ]


def test_one_answer_over_several_bins_fills_all_of_them() -> None:
    assert heard((20.0, {BUSY: 20.0})) == [{BUSY: pytest.approx(5.0)}] * 4


def test_a_gpu_that_is_seen_late_has_less_in_its_first_bin() -> None:
    bins = heard(None, (4.0, {BUSY: 1.0}), (10.0, {BUSY: 7.0}))
    assert bins == [{BUSY: pytest.approx(2.0)}, {BUSY: pytest.approx(5.0)}]


def test_what_was_taken_back_counts_as_it_is() -> None:
    bins = heard((5.0, {BUSY: 5.0}), (10.0, {BUSY: 3.0, IDLE: 7.0}))
    assert bins[1] == {BUSY: pytest.approx(-2.0), IDLE: pytest.approx(7.0)}


def test_truth_is_written_down_at_every_edge() -> None:
    node = JudgedNode("storage_50", gpus=2, seed=1)
    clerk = TruthClerk(node)
    assert not list(frames(node, [clerk], 20 * S))
    for at in range(2):
        assert [sum(seconds.values()) for seconds in clerk.bins[at]] == [pytest.approx(5.0)] * 4
        total = sum(seconds.get(("starved", "storage"), 0.0) for seconds in clerk.bins[at])
        assert total == pytest.approx(node.truth_ns(at)["starved", "storage"] / 1e9)
