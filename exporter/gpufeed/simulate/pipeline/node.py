# SPDX-License-Identifier: Apache-2.0
"""A node whose jobs are simulated stage by stage: what its faces show and its truth say come from the same events."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from gpufeed.simulate.activity import Activity, Cause
from gpufeed.simulate.faults import Fault
from gpufeed.simulate.hardware import DEFAULT_DRIVER, MODELS, Board, boards
from gpufeed.simulate.pipeline.calendar import Calendar, Process
from gpufeed.simulate.pipeline.conditions import Conditions
from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.pipeline.host import JudgedHost
from gpufeed.simulate.pipeline.job import start_training
from gpufeed.simulate.pipeline.meter import Meter
from gpufeed.simulate.pipeline.scenario import JudgedScenario
from gpufeed.simulate.pipeline.scenarios import JUDGED
from gpufeed.simulate.pipeline.site import Site
from gpufeed.simulate.pipeline.stages import Speeds, Stage
from gpufeed.simulate.pipeline.track import Palette, Track
from gpufeed.simulate.pipeline.workload import SLOWNESS, Job, Training

_SECOND_NS: Final = 1_000_000_000
_FREE: Final = Activity(truth=("idle_free", ""), occupant="none", power=0.0, temperature_c=30.0)
_HELD: Final = Activity(truth=("idle_held", ""), memory=0.5, power=0.1, temperature_c=38.0)


class JudgedNode:
    """The same scenario, model, number of GPUs, seed and speeds give the same node, however time is cut."""

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
        self.driver_version = DEFAULT_DRIVER
        self.has_driver = True
        self.seed = f"{seed}/{self.scenario.name}"
        self._calendar = Calendar()
        self._palette = Palette(self.model)
        self._speeds = Speeds(speedup)
        self.conditions = Conditions(self._calendar, self.scenario.troubles, gpus)
        self.job_meters: list[Meter] = []
        self.gpus = [self._gpu(board) for board in boards(self.model, gpus)]
        self._jobs = [self._start(job, number, gpus) for number, job in enumerate(self.scenario.jobs)]
        self.host = JudgedHost(self._calendar, self.gpus, self.job_meters)
        self._calendar.start(self._warm())
        self._calendar.run_until(0)

    @property
    def age_ns(self) -> int:
        """Time since the start."""
        return self._calendar.now

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
        return ()

    def _gpu(self, board: Board) -> JudgedGpu:
        level = self._palette.known("free") or self._palette.make(_FREE, key="free")
        site = Site(
            gpu=board.index,
            model=self.model,
            slowness=SLOWNESS[self.model.key],
            calendar=self._calendar,
            palette=self._palette,
            track=Track(level),
            meter=Meter(),
            speeds=self._speeds,
            conditions=self.conditions,
            seed=self.seed,
        )
        return JudgedGpu(board, site)

    def _start(self, job: Job, number: int, gpus: int) -> Sequence[int]:
        meter = Meter()
        self.job_meters.append(meter)
        ranks = job.ranks(gpus)
        sites = [self.gpus[rank].site for rank in ranks]
        for rank, site in zip(ranks, sites, strict=True):
            site.meter.job = meter
            self.gpus[rank].job = number
        if sites and isinstance(job.workload, Training):
            start_training(job.workload, sites, f"{self.seed}/{number}")
        return ranks

    def _warm(self) -> Process:
        while True:
            yield _SECOND_NS
            for gpu in self.gpus:
                gpu.warm(1.0)
