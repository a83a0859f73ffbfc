# SPDX-License-Identifier: Apache-2.0
"""A node whose jobs are simulated stage by stage: what its faces show and its truth say come from the same events."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.simulate.activity import Cause
from gpufeed.simulate.faults import Fault
from gpufeed.simulate.hardware import MODELS, Board, boards
from gpufeed.simulate.pipeline.calendar import Calendar, Process
from gpufeed.simulate.pipeline.conditions import Conditions
from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.pipeline.host import JudgedHost
from gpufeed.simulate.pipeline.incidents import FREE, NO_DRIVER, Incidents
from gpufeed.simulate.pipeline.job import slowness_of, start
from gpufeed.simulate.pipeline.meter import Crowd, Meter
from gpufeed.simulate.pipeline.neighbour import NeighbourWork
from gpufeed.simulate.pipeline.scenario import JudgedScenario
from gpufeed.simulate.pipeline.scenarios import JUDGED
from gpufeed.simulate.pipeline.site import Site
from gpufeed.simulate.pipeline.stages import Speeds, Stage
from gpufeed.simulate.pipeline.track import Palette, Track
from gpufeed.simulate.pipeline.workload import Job

_SECOND_NS: Final = 1_000_000_000
_SPARE_CORES: Final = 8
"""Processors of the node that no rank is bound to."""


class JudgedNode:
    """The same scenario, model, number of GPUs, seed and speeds give the same node, however time is cut.

    Raises KeyError for a scenario that is not there, ValueError for one that is not told on this model.
    """

    def __init__(
        self,
        scenario: str | JudgedScenario,
        model: str = "h100",
        gpus: int = 8,
        seed: int = 0,
        speedup: Mapping[Stage, float] = MappingProxyType({}),
    ) -> None:
        self.scenario = JUDGED[scenario] if isinstance(scenario, str) else scenario
        self.model = MODELS[model]
        if self.scenario.models and model not in self.scenario.models:
            raise ValueError(f"scenario {self.scenario.name} is for {', '.join(self.scenario.models)}, not {model}")
        self.seed = f"{seed}/{self.scenario.name}"
        self._calendar = Calendar()
        self._palette = Palette(self.model)
        self._speeds = Speeds(speedup)
        self.conditions = Conditions(self._calendar, self.scenario.troubles, gpus)
        self.gpus = [self._gpu(board) for board in boards(self.model, gpus)]
        self.crowd = Crowd()  # of the whole node
        is_alone = len(self.scenario.jobs) == 1 and not self.scenario.neighbours
        self.crowds = [self.crowd] if is_alone else [Crowd(self.crowd) for _ in self.scenario.jobs]
        self._incidents = Incidents(self.scenario.incidents, self.gpus, self._calendar, self._palette)
        self._calendar.start(self._begin(), self._driver_ns())
        self._calendar.start(self._warm())
        self._calendar.run_until(0)
        neighbours = [
            NeighbourWork(of, self._calendar, Meter(self.crowd), f"{self.seed}/{number}")
            for number, of in enumerate(self.scenario.neighbours)
        ]
        cpus = _SPARE_CORES + sum(gpu.site.cores for gpu in self.gpus)
        self.host = JudgedHost(self._calendar, self.crowd, [gpu.site.meter for gpu in self.gpus], neighbours, cpus)
        self._calendar.run_until(0)

    @property
    def age_ns(self) -> int:
        """Time since the start."""
        return self._calendar.now

    @property
    def events(self) -> int:
        """How many things have happened so far: what simulating costs, whatever the machine."""
        return self._calendar.events

    @property
    def has_driver(self) -> bool:
        """Whether the driver is loaded."""
        return self._incidents.has_driver

    def advance(self, duration_ns: int) -> None:
        """Time passes."""
        self._calendar.run_until(self._calendar.now + duration_ns)

    def truth(self, gpu: int) -> Cause:
        """The (state, cause) of a GPU in the interval that begins now."""
        return self.gpus[gpu].truth

    def truth_ns(self, gpu: int) -> dict[Cause, int]:
        """How long each (state, cause) of a GPU has been true so far."""
        return self.gpus[gpu].truth_ns

    def faults(self) -> tuple[Fault, ...]:
        """What the driver does wrong now because of the scenario's incidents."""
        return self._incidents.faults()

    def _gpu(self, board: Board) -> JudgedGpu:
        has_driver = self._driver_ns() == 0
        key = "free" if has_driver else "no driver"
        level = self._palette.known(key) or self._palette.make(FREE if has_driver else NO_DRIVER, key=key)
        site = Site(
            gpu=board.index,
            model=self.model,
            slowness=slowness_of(self.model),
            calendar=self._calendar,
            palette=self._palette,
            track=Track(level),
            meter=Meter(),
            speeds=self._speeds,
            conditions=self.conditions,
            seed=self.seed,
        )
        return JudgedGpu(board, site)

    def _driver_ns(self) -> int:
        """When the driver is loaded."""
        return max((i.until_ns or 0 for i in self.scenario.incidents if i.kind == "driver_absent"), default=0)

    def _begin(self) -> Process:
        """All jobs, once there is a driver."""
        level = self._palette.known("free") or self._palette.make(FREE, key="free")
        for gpu in self.gpus:
            gpu.site.track.begin(level, self._calendar.now)
        for number, job in enumerate(self.scenario.jobs):
            self._start(job, number)
        yield from ()

    def _start(self, job: Job, number: int) -> None:
        ranks = job.ranks(len(self.gpus))
        for rank, gpu in enumerate(ranks):
            site = self.gpus[gpu].site
            site.meter.crowd = self.crowds[number]
            site.rank = rank
            self.gpus[gpu].job = number
        if ranks:
            start(job.workload, [self.gpus[gpu].site for gpu in ranks], f"{self.seed}/{number}")

    def _warm(self) -> Process:
        while True:
            yield _SECOND_NS
            for gpu in self.gpus:
                gpu.warm(1.0)
