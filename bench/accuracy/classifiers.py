# SPDX-License-Identifier: Apache-2.0
"""Who is judged: anything that takes frames and says where the GPUs' time went. Ours, and three that we know about."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from bench.accuracy.verdicts import Right
from gpufeed.model.frame import Frame
from gpufeed.model.gpu import GpuFast
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.simulate.activity import Cause
from gpufeed.simulate.pipeline.node import JudgedNode
from gpufeed.simulate.sensors.scene import BOOT_NS
from gpufeed.step import Node, Settings, initial, step

NS: Final = 1e9


class Answer(NamedTuple):
    """Where one GPU's time went, from when it was first seen until then: cumulative seconds."""

    until_ns: int  # monotonic
    seconds: Mapping[Cause, float]


class Classifier(Protocol):
    """Frames in, seconds out."""

    def take(self, frame: Frame) -> None:
        """The next frame."""

    def answer(self, uuid: GpuUuid) -> Answer | None:
        """Of one GPU; None: nothing is said of it yet."""

    @property
    def is_conserving(self) -> bool:
        """Whether all that was said adds up to the time it was said of."""


class Subject(NamedTuple):
    """What a classifier may know at its birth. Only an oracle looks."""

    node: JudgedNode
    rights: tuple[Right, ...]  # by GPU


Make = Callable[[Subject], Classifier]


class Stepped:
    """The product."""

    def __init__(self, _subject: Subject) -> None:
        self._node: Node | None = None
        self.is_conserving = True

    def take(self, frame: Frame) -> None:
        """One step."""
        node = self._node or initial(Settings(), frame.time)
        self._node = step(node, frame)

    def answer(self, uuid: GpuUuid) -> Answer | None:
        """From the state that everybody else sees."""
        found = self._node.state.attributions.get(GpuKey(uuid)) if self._node is not None else None
        if found is None:
            return None
        if sum(found.state_ns.values()) != found.tracked_ns:
            self.is_conserving = False
        return Answer(
            found.decided_until_ns, {(of.state, of.cause): spent_ns / NS for of, spent_ns in found.state_ns.items()}
        )


class AlwaysBusy:
    """Whatever happens, all is well."""

    is_conserving = True

    def __init__(self, _subject: Subject) -> None:
        self._now_ns = BOOT_NS

    def take(self, frame: Frame) -> None:
        """Only its time matters."""
        self._now_ns = frame.time.monotonic_ns

    def answer(self, _uuid: GpuUuid) -> Answer | None:
        """Busy since ever."""
        return Answer(self._now_ns, {("busy", "tensor"): (self._now_ns - BOOT_NS) / NS})


class Threshold:
    """What many dashboards do: below half of utilization a GPU waits for storage."""

    is_conserving = True
    BUSY_FROM: Final = 0.5

    def __init__(self, _subject: Subject) -> None:
        self._until_ns: dict[GpuUuid, int] = {}
        self._seconds: dict[GpuUuid, dict[Cause, float]] = {}

    def take(self, frame: Frame) -> None:
        """Every reading stands for the time since the one before."""
        for reading in frame.readings:
            for sample in reading.samples:
                if isinstance(sample, GpuFast):
                    self._count(sample, reading.ended_ns)

    def answer(self, uuid: GpuUuid) -> Answer | None:
        """So far."""
        seconds = self._seconds.get(uuid)
        return None if seconds is None else Answer(self._until_ns[uuid], dict(seconds))

    def _count(self, sample: GpuFast, now_ns: int) -> None:
        uuid = sample.gpu.uuid
        is_busy = (sample.utilization_ratio or 0.0) >= self.BUSY_FROM
        cause: Cause = ("busy", "tensor") if is_busy else ("starved", "storage")
        seconds = self._seconds.setdefault(uuid, {})
        seconds[cause] = seconds.get(cause, 0.0) + (now_ns - self._until_ns.get(uuid, BOOT_NS)) / NS
        self._until_ns[uuid] = now_ns


class Oracle:
    """Knows the truth, and says no more of a cause than curing it would give."""

    is_conserving = True

    def __init__(self, subject: Subject) -> None:
        self._node = subject.node
        self._rights = subject.rights
        self._answers: dict[GpuUuid, Answer] = {}
        self._last: list[Mapping[Cause, float]] = [{} for _ in subject.node.gpus]  # while cures could be tried

    def take(self, _frame: Frame) -> None:
        """It does not look at the frame: the node stands at the same moment."""
        until_ns = BOOT_NS + self._node.age_ns
        for at, gpu in enumerate(self._node.gpus):
            seconds = {cause: spent_ns / NS for cause, spent_ns in gpu.truth_ns.items()}
            if self._node.age_ns <= self._rights[at].until_s * NS:
                self._last[at] = seconds
            told = dict(self._rights[at].tempered(self._last[at]))
            for cause, spent_s in seconds.items():
                told[cause] = told.get(cause, 0.0) + spent_s - self._last[at].get(cause, 0.0)
            self._answers[GpuUuid(gpu.board.uuid)] = Answer(until_ns, told)

    def answer(self, uuid: GpuUuid) -> Answer | None:
        """As it is."""
        return self._answers.get(uuid)


CLASSIFIERS: Final[Mapping[str, Make]] = {
    "step": Stepped,
    "always_busy": AlwaysBusy,
    "threshold": Threshold,
    "oracle": Oracle,
}
"""By name, for the command line and for processes that are started anew."""
