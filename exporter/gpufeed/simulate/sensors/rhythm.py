# SPDX-License-Identifier: Apache-2.0
"""When lanes wake: at every round of the fast period, early or late by a little, sometimes held up."""

from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple, Protocol

from gpufeed.simulate.sensors.settings import Noise

NEVER_NS: Final = 1 << 62
_NS: Final = 1e9
_MOST_JITTER: Final = 0.25
"""Of the period: beyond, a round would meet its neighbours."""


class Happening(Protocol):
    """Something that happens at ages of the node, again and again."""

    @property
    def due_ns(self) -> int:
        """When next."""

    def perform(self, age_ns: int) -> object:
        """It happens."""


class Wake(NamedTuple):
    """One round: when its calls begin, and how long they are held up. Ages of the node in nanoseconds."""

    began_ns: int
    held_ns: int


class Rhythm:
    """Rounds of lanes that wake together. The same for all that ask, in whatever order.

    `is_held_up`: they call into a driver that lets one caller in at a time.
    """

    def __init__(self, random: Random, period_ns: int, noise: Noise, *, is_held_up: bool) -> None:
        self.period_ns = period_ns
        self._random = random
        self._jitter_s = noise.jitter_s
        self._stalls = noise.stalls if is_held_up else 0.0
        self._stall_s = noise.stall_s
        self._wakes: list[Wake] = []

    def wake(self, number: int) -> Wake:
        """Round `number`, from 0 on."""
        while len(self._wakes) <= number:
            self._wakes.append(self._make(len(self._wakes)))
        return self._wakes[number]

    def following(self, after_ns: int) -> int:
        """The first round that is due after an age: those missed meanwhile are not caught up on."""
        number = max(0, after_ns // self.period_ns)
        while self.wake(number).began_ns <= after_ns:
            number += 1
        return number

    def _make(self, number: int) -> Wake:
        # all three are drawn at every round: what one switch leaves out moves nothing else
        late_s = self._random.gauss(0.0, 1.0) * self._jitter_s
        is_held = self._random.random() < self._stalls
        held_s = self._random.uniform(*self._stall_s)
        most_ns = int(_MOST_JITTER * self.period_ns)
        late_ns = min(most_ns, max(-most_ns, int(late_s * _NS)))
        return Wake(max(0, number * self.period_ns + late_ns), int(held_s * _NS) if is_held else 0)


def moments(random: Random, every_s: float) -> Iterator[int]:
    """Ages at which something happens that happens so often in the mean, for ever; 0: never."""
    at_s = 0.0
    while every_s:
        at_s += random.expovariate(1 / every_s)
        yield int(at_s * _NS)
    while True:
        yield NEVER_NS
