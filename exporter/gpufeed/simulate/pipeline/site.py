# SPDX-License-Identifier: Apache-2.0
"""What every process of one rank has at hand: its GPU's track, its host meter, time, chance, and the conditions."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from gpufeed.simulate.activity import Activity, Cause
from gpufeed.simulate.hardware import GpuModel
from gpufeed.simulate.pipeline.calendar import Calendar, Process
from gpufeed.simulate.pipeline.chance import source
from gpufeed.simulate.pipeline.conditions import Conditions
from gpufeed.simulate.pipeline.flows import Copies
from gpufeed.simulate.pipeline.meter import Meter
from gpufeed.simulate.pipeline.stages import STARVED, Speeds, Stage
from gpufeed.simulate.pipeline.track import Level, Palette, Track

WAITING: Final = Activity(truth=("starved", "unknown"), power=0.1, clock=0.93, temperature_c=50.0)
"""No kernel: the job holds its memory."""
POLLING_CORES: Final = 0.05
"""What a main thread uses that waits for its loaders."""
COPY_REACH: Final = 0.88
"""Share of the link's rate that copies between host and GPU get."""


@dataclass(slots=True, kw_only=True)
class Site:
    """One GPU and the processes that feed it."""

    gpu: int
    rank: int = 0  # its number in its job
    model: GpuModel
    slowness: float
    calendar: Calendar
    palette: Palette
    track: Track
    meter: Meter
    speeds: Speeds
    conditions: Conditions
    seed: str
    loaders: int = 0
    cores: int = 4  # that its processes may use
    copies_in: Copies = field(default_factory=Copies)
    copies_out: Copies = field(default_factory=Copies)
    excuses: defaultdict[Stage, int] = field(default_factory=lambda: defaultdict(int))
    """What it waited for since it last met its peers, in nanoseconds: why it is late, if it is."""
    roots_ns: defaultdict[Cause, int] = field(default_factory=lambda: defaultdict(int))
    """Time spent waiting for peers, by what was true of the last of them."""
    finished: int = 0  # parts of its work that are done
    finished_ns: int = 0  # when the last of them was
    goal: int | None = None
    goal_ns: int | None = None  # when so many of them were
    processes: list[Process] = field(default_factory=list)
    _waits_for: Stage | None = None
    _waits_since_ns: int = 0

    def random(self, what: str) -> Random:
        """A source of chance of its own."""
        return source(self.seed, self.gpu, what)

    def start(self, process: Process) -> None:
        """Let a process of this rank begin."""
        self.processes.append(process)
        self.calendar.start(process)

    def end(self, level: Level) -> None:
        """All its processes are no more; the GPU does this from now on, for ever."""
        for process in self.processes:
            process.close()
        self.processes.clear()
        self.begin(level, 0.0)
        self.meter.clear(self.calendar.now)

    def begin(self, level: Level, cores: float) -> None:
        """The GPU does this from now on, and the main thread uses so many cores."""
        now_ns = self.calendar.now
        if self._waits_for is not None:
            self.excuses[self._waits_for] += now_ns - self._waits_since_ns
            self._waits_for = None
        self.track.begin(level, now_ns)
        self.meter.set_trainer(now_ns, cores)

    def wait_for(self, stage: Stage, cores: float) -> None:
        """No kernel from now on: the item that the GPU waits for is in this stage."""
        self.begin(self._waiting(stage), cores)
        self._waits_for = stage
        self._waits_since_ns = self.calendar.now

    def excuse(self) -> Cause:
        """Why it comes late to its peers: what it waited for longest, or what its GPU did more slowly than theirs."""
        worst = max(self.excuses, key=self.excuses.__getitem__, default=None)
        return self.track.level.truth if worst is None else STARVED[worst]

    def copy_in(self, size: float) -> Process:
        """From the host to the GPU."""
        copy_ns = self.speeds.ns(Stage.PCIE, size / self.copy_bytes_per_s)
        if copy_ns:
            rate = size / copy_ns
            self.copies_in.begin(self.calendar.now, rate)
            yield copy_ns
            self.copies_in.end(self.calendar.now, rate)

    def copy_out(self, size: float, of: Stage) -> Process:
        """From the GPU to the host, as part of a stage."""
        copy_ns = self.speeds.ns(of, size / self.copy_bytes_per_s)
        if copy_ns:
            rate = size / copy_ns
            self.copies_out.begin(self.calendar.now, rate)
            yield copy_ns
            self.copies_out.end(self.calendar.now, rate)

    def finish(self) -> None:
        """A part of the work is done."""
        self.finished += 1
        self.finished_ns = self.calendar.now
        if self.finished == self.goal:
            self.goal_ns = self.calendar.now

    @property
    def copy_bytes_per_s(self) -> float:
        """What a copy gets of the link as it is now."""
        return self.model.pcie_bytes_per_s * COPY_REACH * self.conditions.factor("pcie_narrow", self.gpu)

    def _waiting(self, stage: Stage) -> Level:
        known = self.palette.known("waiting", stage)
        return known or self.palette.make(replace(WAITING, truth=STARVED[stage]), key=("waiting", stage))
