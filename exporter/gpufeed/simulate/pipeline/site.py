# SPDX-License-Identifier: Apache-2.0
"""What every process of one rank has at hand: its GPU's track, its host meter, time, chance, and the conditions."""

from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from gpufeed.simulate.activity import Activity
from gpufeed.simulate.hardware import GpuModel
from gpufeed.simulate.pipeline.calendar import Calendar
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
    model: GpuModel
    slowness: float
    calendar: Calendar
    palette: Palette
    track: Track
    meter: Meter
    speeds: Speeds
    conditions: Conditions
    seed: str
    copies_in: Copies = field(default_factory=Copies)
    copies_out: Copies = field(default_factory=Copies)
    finished: int = 0  # parts of its work that are done
    finished_ns: int = 0  # when the last of them was
    goal: int | None = None
    goal_ns: int | None = None  # when so many of them were

    def random(self, what: str) -> Random:
        """A source of chance of its own."""
        return source(self.seed, self.gpu, what)

    def begin(self, level: Level, cores: float) -> None:
        """The GPU does this from now on, and the main thread uses so many cores."""
        self.track.begin(level, self.calendar.now)
        self.meter.set_trainer(self.calendar.now, cores)

    def wait_for(self, stage: Stage) -> None:
        """No kernel from now on: the item that the GPU waits for is in this stage."""
        self.track.begin(self.waiting(stage), self.calendar.now)

    def waiting(self, stage: Stage) -> Level:
        """The level of waiting for a stage."""
        known = self.palette.known("waiting", stage)
        return known or self.palette.make(replace(WAITING, truth=STARVED[stage]), key=("waiting", stage))

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
