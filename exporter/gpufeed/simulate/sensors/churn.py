# SPDX-License-Identifier: Apache-2.0
"""Processes that end and begin anew: an epoch is over, loaders are started again, a number is given out twice."""

from typing import Final

from gpufeed.simulate.sensors.lane import SECOND_NS
from gpufeed.simulate.sensors.rhythm import NEVER_NS, moments
from gpufeed.simulate.sensors.scene import Scene
from gpufeed.simulate.sensors.tasks import TaskSensors

_STRAY_NS: Final = 2 * SECOND_NS
"""Until the driver is asked again who holds its boards."""


class Churn:
    """Of all ranks of the node."""

    def __init__(self, scene: Scene, tasks: TaskSensors) -> None:
        self._scene = scene
        self._tasks = tasks
        self._random = scene.random("churn")
        every_s = scene.noise.churn_every_s / len(scene.node.gpus)
        self._moments = moments(scene.random("churn", "moments"), every_s)
        self._stray_until_ns = NEVER_NS
        self._next_ns = next(self._moments)

    @property
    def due_ns(self) -> int:
        """When the next processes end, or a number that was given out twice is found out."""
        return min(self._next_ns, self._stray_until_ns)

    def perform(self, age_ns: int) -> None:
        """At that age."""
        if age_ns >= self._stray_until_ns:
            self._scene.strays.clear()
            self._stray_until_ns = NEVER_NS
        if age_ns >= self._next_ns:
            gpu = self._random.choice(self._scene.node.gpus)
            self._tasks.end_loaders(gpu)
            self._scene.pids[gpu.board.index] += 10
            if self._random.random() < self._scene.noise.pid_reuse:
                other = self._random.choice(self._scene.node.gpus)
                self._scene.strays[gpu.board.index] = other.board.index
                self._stray_until_ns = age_ns + _STRAY_NS
            self._next_ns = next(self._moments)
