# SPDX-License-Identifier: Apache-2.0
"""Frames of judged nodes, and the same nodes lived again to know what was true at any instant."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from gpufeed.model.frame import Frame, Reading
from gpufeed.model.sample import Sample
from gpufeed.simulate.pipeline.node import JudgedNode
from gpufeed.simulate.pipeline.track import POSITION
from gpufeed.simulate.sensors.face import SensorFace, frames
from gpufeed.simulate.sensors.scene import BOOT_NS
from gpufeed.simulate.sensors.settings import QUIET, Sensing

SECOND_NS = 1_000_000_000
S = TypeVar("S", bound=Sample)


@dataclass
class Seen:
    """What one face saw of a node."""

    node: JudgedNode
    face: SensorFace
    frames: list[Frame]

    @property
    def readings(self) -> list[Reading]:
        return [reading for frame in self.frames for reading in frame.readings]

    def all_of(self, kind: type[S]) -> Iterator[tuple[int, S]]:
        """Each sample with the age of the node that its reading says it is of."""
        for reading in self.readings:
            for sample in reading.samples:
                if isinstance(sample, kind):
                    yield reading.ended_ns - BOOT_NS, sample

    def list_of(self, kind: type[S]) -> list[S]:
        return [sample for _, sample in self.all_of(kind)]


class Twin:
    """The node that was seen, without a face. It can be asked for the truth at ages that never fall."""

    def __init__(self, seen: Seen) -> None:
        self.node = JudgedNode(seen.node.scenario, seen.node.model.key, len(seen.node.gpus), seed=1)

    def at(self, age_ns: int) -> JudgedNode:
        self.node.advance(age_ns - self.node.age_ns)
        return self.node

    def total(self, age_ns: int, name: str, gpu: int = 0) -> float:
        return self.at(age_ns).gpus[gpu].integrals[POSITION[name]]


def look(scenario: str, sensing: Sensing, seconds: float, model: str = "h100", gpus: int = 2) -> Seen:
    """Live for so long, and be seen."""
    node = JudgedNode(scenario, model, gpus, seed=1)
    face = SensorFace(node, sensing)
    return Seen(node, face, [frame for _, frame in frames(node, [face], int(seconds * SECOND_NS))])


def only(**noise: Any) -> Sensing:
    """No noise but this."""
    return Sensing(noise=replace(QUIET, **noise), placement="task")
