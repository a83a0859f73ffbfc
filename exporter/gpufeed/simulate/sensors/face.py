# SPDX-License-Identifier: Apache-2.0
"""Frames of a judged node, made without a probe. Several faces may look at one node at once, each in its own way."""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Final, Protocol

from gpufeed.model.frame import Frame, FrameTime, Reading, XidEvent
from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.pipeline.node import JudgedNode
from gpufeed.simulate.sensors.inputs import statuses
from gpufeed.simulate.sensors.lane import SECOND_NS, Lane
from gpufeed.simulate.sensors.plan import Plan
from gpufeed.simulate.sensors.rhythm import Happening, moments
from gpufeed.simulate.sensors.scene import BOOT_NS, Scene
from gpufeed.simulate.sensors.settings import Sensing

WALL_NS: Final = 1_700_000_000 * SECOND_NS
PROBE_PID: Final = 1234
_BEHIND_NS: Final = 45_000_000
"""So long after the lanes wake their readings are sent: by then nearly all of them are there."""


class Face(Protocol):
    """Whoever looks at a node from time to time, and now and then has a frame of it."""

    @property
    def due_ns(self) -> int:
        """The age of the node at which it wants to look again."""

    def perform(self) -> Frame | None:
        """It looks."""


class SensorFace:
    """Looks at a node as `sensing` says. The same node and sensing give the same frames."""

    def __init__(self, node: JudgedNode, sensing: Sensing) -> None:
        self.scene = Scene(node, sensing)
        self._plan = Plan(self.scene)
        self._due: list[tuple[int, int, Happening]] = []
        for happening in (*self._plan.happenings, *self._plan.lanes):
            self._put(happening)
        self._outbox: list[tuple[int, Reading]] = []
        self._frame_ns = _BEHIND_NS
        self._sequence = 0
        self._xids = {gpu.board.index: 0 for gpu in node.gpus}
        noise, random = self.scene.noise, self.scene.random("face")
        self._random = random
        self._pauses = moments(self.scene.random("pauses"), noise.pause_every_s)
        self._pause = self._next_pause()
        self._steps = moments(self.scene.random("steps"), noise.clock_step_every_s)
        self._step_ns = next(self._steps)
        self._wall_offset_ns = 0
        self._latest_ns = int(max(noise.counter_delay_s, noise.gpm_delay_s) * SECOND_NS)

    @property
    def due_ns(self) -> int:
        """The age of the node at which it wants to look again, or to send a frame."""
        due_ns = min(self._due[0][0], self._frame_ns)
        began_ns, ended_ns = self._pause
        return ended_ns if began_ns <= due_ns < ended_ns else due_ns

    def perform(self) -> Frame | None:
        """Whatever is due at this age of the node; a frame if it is time for one."""
        age_ns = self.scene.node.age_ns
        if age_ns >= self._pause[1]:
            self._pause = self._next_pause()
        while self._due[0][0] <= age_ns:
            *_, happening = heappop(self._due)
            done = happening.perform(age_ns)
            if isinstance(happening, Lane) and isinstance(done, list):
                self._outbox.extend((age_ns + self._latest_ns, reading) for reading in done)
            self._put(happening)
        if age_ns < self._frame_ns:
            return None
        period_ns = self.scene.sensing.period_ns
        self._frame_ns = (age_ns // period_ns + 1) * period_ns + _BEHIND_NS
        return self._frame(age_ns)

    def _frame(self, age_ns: int) -> Frame:
        self._sequence += 1
        ready = tuple(reading for ready_ns, reading in self._outbox if ready_ns <= age_ns)
        self._outbox = [entry for entry in self._outbox if entry[0] > age_ns]
        has_driver = self.scene.node.has_driver
        lanes = [lane for lane in self._plan.lanes if has_driver or lane.gpu is None]
        return Frame(
            sequence=self._sequence,
            time=self._time(age_ns),
            lanes=tuple(lane.status(age_ns) for lane in lanes),
            readings=ready,
            inputs=statuses(self.scene) if self._sequence == 1 else (),
            events=tuple(self._events(age_ns)),
            probe_pid=PROBE_PID,
        )

    def _time(self, age_ns: int) -> FrameTime:
        while age_ns >= self._step_ns:
            self._step_ns = next(self._steps)
            self._wall_offset_ns += int(self._random.uniform(-1, 1) * self.scene.noise.clock_step_s * SECOND_NS)
        return FrameTime(BOOT_NS + age_ns, BOOT_NS + age_ns, WALL_NS + age_ns + self._wall_offset_ns)

    def _events(self, age_ns: int) -> Iterator[XidEvent]:
        for gpu in self.scene.node.gpus:
            for xid in self._news(gpu):
                yield XidEvent(
                    at_ns=BOOT_NS + age_ns,
                    xid=xid,
                    uuid=self.scene.uuid(gpu),
                    pci_bus_id=gpu.board.pci_bus_id,
                    origin="nvml",
                )

    def _news(self, gpu: JudgedGpu) -> list[int]:
        known = self._xids[gpu.board.index]
        self._xids[gpu.board.index] = len(gpu.xids)
        return gpu.xids[known:]

    def _next_pause(self) -> tuple[int, int]:
        began_ns = next(self._pauses)
        return began_ns, began_ns + int(self._random.uniform(*self.scene.noise.stall_s) * SECOND_NS)

    def _put(self, happening: Happening) -> None:
        heappush(self._due, (happening.due_ns, self._plan.rank[id(happening)], happening))


def frames(node: JudgedNode, faces: Sequence[Face], until_ns: int) -> Iterator[tuple[int, Frame]]:
    """Let a node live until an age: every frame, with the number of the face it is of. The node is at that moment."""
    while True:
        number = min(range(len(faces)), key=lambda at: faces[at].due_ns)
        due_ns = faces[number].due_ns
        if due_ns > until_ns:
            node.advance(until_ns - node.age_ns)
            return
        node.advance(max(0, due_ns - node.age_ns))
        frame = faces[number].perform()
        if frame is not None:
            yield number, frame
