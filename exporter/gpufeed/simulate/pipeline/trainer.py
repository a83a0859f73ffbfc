# SPDX-License-Identifier: Apache-2.0
"""The training process of one rank: waits for a batch, computes, exchanges; for ever."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from gpufeed.simulate.activity import Activity, Cause
from gpufeed.simulate.pipeline.calendar import Gate, Process
from gpufeed.simulate.pipeline.chance import about_one
from gpufeed.simulate.pipeline.exchange import Exchanges, with_hidden
from gpufeed.simulate.pipeline.interludes import Interludes
from gpufeed.simulate.pipeline.loader import Loader
from gpufeed.simulate.pipeline.notebook import hold
from gpufeed.simulate.pipeline.site import POLLING_CORES, Site
from gpufeed.simulate.pipeline.stages import Stage
from gpufeed.simulate.pipeline.track import Level
from gpufeed.simulate.pipeline.workload import Collective, Training, Work

LAUNCHING: Final[Cause] = ("starved", "host_cpu")
WOVEN: Final[Cause] = ("communicating", "nvlink")
DEEP_THROTTLE: Final = 0.7
"""Share of the highest clock below which a power cap is more than the normal life of a busy board."""


class Trainer:
    """One rank. Its feeder copies the next batch while this one is computed on, where the scenario has it so."""

    def __init__(
        self, site: Site, of: Training, loader: Loader | None, exchanges: Exchanges, interludes: Interludes
    ) -> None:
        self.site = site
        self.of = of
        self.loader = loader
        self.exchanges = exchanges
        self.interludes = interludes
        self._random = site.random("trainer")
        self._copied = 0  # batches on the GPU so far
        self._taken = 0  # of those, given to a step
        self._arrival, self._room = Gate(), Gate()

    def run(self) -> Process:
        """The main thread."""
        site, of = self.site, self.of
        yield from self.interludes.start(site)
        if self.loader is not None and self.loader.copies_ahead:
            site.start(self._feed(self.loader))
        number = 0
        while True:
            if site.conditions.is_there("hang", site.gpu):
                hold(site)
                yield Gate()  # that nobody opens
            if of.loop_s and (loop_ns := site.speeds.ns(Stage.HOST_CPU, of.loop_s)):
                site.wait_for(Stage.HOST_CPU, 1.0)
                yield loop_ns
            if self.loader is not None:
                yield from self._input(self.loader, number)
            noise = about_one(self._random, of.spread)
            for work in of.works:
                yield from self._work(work, noise)
            number += 1
            yield from self.interludes.between(site, number)

    def _input(self, loader: Loader, number: int) -> Process:
        site = self.site
        if self._copied <= number:
            site.wait_for(loader.where(number), POLLING_CORES)
            loader.wanted = number
            if loader.copies_ahead:
                while self._copied <= number:
                    yield self._arrival
            else:
                yield from self._bring(loader, number)
            loader.wanted = -1
        loader.forget(number)
        self._taken = number + 1
        site.calendar.open(self._room)

    def _feed(self, loader: Loader) -> Process:
        number = 0
        while True:
            yield from self._bring(loader, number)
            self.site.calendar.open(self._arrival)
            number += 1
            while number > self._taken:
                yield self._room

    def _bring(self, loader: Loader, number: int) -> Process:
        yield from loader.take(number)
        yield from self.site.copy_in(loader.of.copy_bytes)
        self._copied = number + 1

    def _work(self, work: Work, noise: float) -> Process:
        site = self.site
        clock, slow = self._clock()
        gap = work.launch_gap
        launches = (1 - gap) / clock + gap / site.speeds.of(Stage.HOST_CPU)
        compute_ns = int(work.seconds * site.slowness * noise * launches * 1e9 / slow)
        site.begin(self._level(work, clock, slow), 1.0 if gap else work.activity.host.trainer_cpu)
        yield compute_ns
        site.finish()
        if work.collective is not None:
            yield from self.exchanges.join(site, work.collective, compute_ns)

    def _clock(self) -> tuple[float, float]:
        """Share of the usual clock, and of the usual speed for reasons that no clock shows."""
        site = self.site
        clock = 1.0 if site.speeds.is_free(Stage.CLOCK) else site.conditions.factor("clock", site.gpu)
        return clock, site.conditions.factor("rank_slow", site.gpu)

    def _level(self, work: Work, clock: float, slow: float) -> Level:
        site = self.site
        reason = site.conditions.clock_reason(site.gpu) if clock < 1 else ""
        gap = _gap(work.launch_gap, clock, site.speeds.of(Stage.HOST_CPU))
        key = (id(work), clock, slow, reason, gap)
        known = site.palette.known(*key)
        if known is not None:
            return known
        collective = work.collective or Collective()
        activity = with_hidden(work.activity, collective, work.seconds * site.slowness, site.model)
        if clock < 1:
            activity = held_down(activity, clock, reason)
        if slow < 1:
            activity = replace(activity, tensor=activity.tensor * slow, power=activity.power * (0.4 + 0.6 * slow))
        shares = {activity.truth: 1 - gap - work.woven, LAUNCHING: gap, WOVEN: work.woven}
        return site.palette.make(launched(activity, gap), {c: s for c, s in shares.items() if s}, key)


def held_down(activity: Activity, clock: float, reason: str) -> Activity:
    """Computing at a lower clock: as many cycles, and less of everything per second."""
    cause = {"hw_thermal": "thermal", "sw_thermal": "thermal", "hw_power_brake": "power_brake"}.get(reason, "power_cap")
    is_throttled = cause != "power_cap" or clock < DEEP_THROTTLE
    reasons: Mapping[str, float] = {**activity.reasons, reason: 1.0}
    if reason in ("hw_thermal", "hw_power_brake"):
        reasons = {**reasons, "hw_slowdown": 1.0}
    return replace(
        activity,
        truth=("throttled", cause) if is_throttled else activity.truth,
        clock=activity.clock * clock,
        dram=activity.dram * clock,
        power=activity.power * (0.25 + 0.75 * clock),
        temperature_c=88.0 if cause == "thermal" else activity.temperature_c,
        reasons=reasons,
    )


def launched(activity: Activity, gap: float) -> Activity:
    """Kernels with pauses between them, in which the GPU waits for the next to be launched."""
    if not gap:
        return activity
    work = 1 - gap
    return replace(
        activity,
        graphics=activity.graphics * work,
        sm=activity.sm * work,
        occupancy=activity.occupancy * work,
        tensor=activity.tensor * work,
        dram=activity.dram * work,
        power=activity.power * (0.3 + 0.7 * work),
    )


def _gap(gap: float, clock: float, launching: float) -> float:
    """Share of the pauses, where kernels take longer or launches less."""
    pause = gap / launching
    return round(pause / ((1 - gap) / clock + pause), 4) if gap else 0.0
