# SPDX-License-Identifier: Apache-2.0
"""Counters that somebody resets now and then: a mount anew, a tool that clears a port, links that are trained again."""

from collections.abc import Sequence

from gpufeed.simulate.sensors.rhythm import moments
from gpufeed.simulate.sensors.scene import Scene


class Resettable:
    """Sums of the truth as one group of counters shows them: since they were last reset."""

    def __init__(self, scene: Scene, *what: object) -> None:
        self._resets = moments(scene.random("reset", *what), scene.noise.reset_every_s)
        self._next_ns = next(self._resets)
        self._origin: list[float] = []
        self._last: list[float] = []

    def counted(self, age_ns: int, sums: Sequence[float]) -> list[float]:
        """`sums` since the last reset."""
        if not self._origin:
            self._origin = [0.0] * len(sums)
        if age_ns >= self._next_ns:
            # it was reset at some moment since the last look: what came before that look is gone for certain
            self._origin = self._last or self._origin
            while age_ns >= self._next_ns:
                self._next_ns = next(self._resets)
        self._last = list(sums)
        return [value - origin for value, origin in zip(sums, self._origin, strict=True)]
