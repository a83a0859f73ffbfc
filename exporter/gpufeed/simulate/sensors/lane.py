# SPDX-License-Identifier: Apache-2.0
"""A lane of the probe that is not there: groups of readings that are taken together, and come late or never."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from gpufeed.model.frame import AnySample, LaneStatus, Reading
from gpufeed.model.ids import CollectorName, GroupName, LaneId
from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.sensors.rhythm import Rhythm, Wake
from gpufeed.simulate.sensors.scene import BOOT_NS, Scene

SECOND_NS: Final = 1_000_000_000
SLOW_NS: Final = 10 * SECOND_NS
_LATE_NS: Final = 2 * SECOND_NS
_STUCK_NS: Final = 8 * SECOND_NS
_APART_NS: Final = 500_000
"""Between two boards: the driver lets one caller in at a time."""
_LOOK_AGAIN_NS: Final = SECOND_NS // 4
_SLACK: Final = 0.3
"""Of a round: a group that is due so soon is read now. More than a round can be early."""

Read = Callable[[int], tuple[AnySample, ...] | None]
"""From the age of the node to what is read at it; None: the read gave nothing at all."""


@dataclass(slots=True, kw_only=True)
class Group:
    """Readings of one lane at one period."""

    name: str
    collector: CollectorName
    period_ns: int
    read: Read
    due_ns: int = 0


class Lane:
    """Wakes with its rhythm, reads the groups that are due, and gives what it read some time later."""

    def __init__(
        self, scene: Scene, name: str, rhythm: Rhythm, groups: Sequence[Group], gpu: JudgedGpu | None = None
    ) -> None:
        self.name = LaneId(name)
        self.gpu = gpu
        self.groups = groups
        self.delay_s = 0.0  # at most, from what was read to the time it is given
        self._scene = scene
        self._rhythm = rhythm
        self._random = scene.random("lane", name)
        self._offset_ns = _APART_NS * gpu.board.index if gpu is not None else 0
        self._idle = LaneStatus(
            lane=self.name,
            collector=groups[0].collector,
            busy_since_ns=None,
            late_after_ns=_LATE_NS,
            stuck_after_ns=_STUCK_NS,
            gpu=None if gpu is None else gpu.board.index,
            uuid=None if gpu is None else scene.uuid(gpu),
        )
        self._wake = Wake(0, 0)
        self.due_ns = 0
        self._schedule(rhythm.following(-1))

    def perform(self, age_ns: int) -> list[Reading]:
        """What the round gave that is due now. The node is at this age."""
        if self._is_hung():
            self.due_ns = age_ns + _LOOK_AGAIN_NS
            return []
        began_ns = self._wake.began_ns + self._offset_ns
        ended_ns = age_ns + int(self._random.random() * self.delay_s * SECOND_NS)
        round_ns = self._rhythm.period_ns
        found = []
        for group in self.groups:
            if group.due_ns > age_ns + _SLACK * round_ns:
                continue
            group.due_ns = (age_ns + round_ns // 2) // round_ns * round_ns + group.period_ns
            samples = group.read(age_ns)
            is_lost = self._random.random() < self._scene.noise.lost
            if samples is not None and not is_lost:
                found.append(
                    Reading(
                        lane=self.name,
                        group=GroupName(group.name),
                        collector=group.collector,
                        began_ns=BOOT_NS + min(began_ns, age_ns),
                        ended_ns=BOOT_NS + ended_ns,
                        period_ns=group.period_ns,
                        samples=samples,
                    )
                )
        self._schedule(self._rhythm.following(age_ns))
        return found

    def status(self, age_ns: int) -> LaneStatus:
        """The lane at this age: idle, or since when its call is outstanding."""
        began_ns = self._wake.began_ns + self._offset_ns
        if self.due_ns == began_ns or began_ns > age_ns:
            return self._idle
        return replace(self._idle, busy_since_ns=BOOT_NS + began_ns, call="nvmlDeviceGetFieldValues")

    def _schedule(self, number: int) -> None:
        self._wake = self._rhythm.wake(number)
        self.due_ns = self._wake.began_ns + self._wake.held_ns + self._offset_ns

    def _is_hung(self) -> bool:
        if self.gpu is None:
            return False
        return any(
            fault.effect == "hang" and fault.gpu in (None, self.gpu.board.index) for fault in self._scene.node.faults()
        )
