# SPDX-License-Identifier: Apache-2.0
"""An inference engine: requests come by chance, join the batch that is being decoded, and leave when they are done."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

from gpufeed.simulate.activity import Activity, Cause
from gpufeed.simulate.pipeline.calendar import Gate, Process
from gpufeed.simulate.pipeline.chance import source
from gpufeed.simulate.pipeline.notebook import hold
from gpufeed.simulate.pipeline.site import Site
from gpufeed.simulate.pipeline.stages import Stage
from gpufeed.simulate.pipeline.track import Level
from gpufeed.simulate.pipeline.workload import Serving

BLOCK_S: Final = 0.25
"""Tokens are decoded in blocks of this length: nobody joins or leaves within one."""

_LEAST_BLOCK_S: Final = 0.02
_PREFILL: Final = Activity(
    truth=("busy", "tensor"), graphics=1.0, sm=0.9, occupancy=0.4, tensor=0.5, dram=0.3, power=0.8, clock=0.95,
    memory=0.9, temperature_c=60.0,
)  # fmt: skip
_DECODE: Final = Activity(
    truth=("busy", "memory"), graphics=1.0, sm=0.75, occupancy=0.2, tensor=0.05, dram=0.65, power=0.45,
    memory=0.9, temperature_c=55.0,
)  # fmt: skip
_FULL: Final = 3
"""Bucket of a batch that fills the engine; 0 is a single request."""
_COMMUNICATING: Final = 0.10
"""Share of decoding over several GPUs that passes in exchanges of a few microseconds each."""
_ENGINE_CORES: Final = 0.9


def start_serving(of: Serving, sites: Sequence[Site], seed: str) -> None:
    """One engine over all GPUs, or one on each."""
    groups = [sites] if of.together else [[site] for site in sites]
    for number, group in enumerate(groups):
        engine = Engine(of, group, source(seed, "requests", number))
        group[0].start(engine.receive())
        group[0].start(engine.run())


class Engine:
    """All GPUs of it do the same."""

    def __init__(self, of: Serving, sites: Sequence[Site], random: Random) -> None:
        self._of = of
        self._sites = sites
        self._random = random
        self._site = sites[0]
        self._calendar = sites[0].calendar
        self._slowness = sites[0].slowness
        self._queue: deque[float] = deque()  # seconds of decoding that each wants
        self._active: list[float] = []
        self._arrival = Gate()
        self._is_flooded = sites[0].speeds.is_free(Stage.REQUESTS)
        self._gap = of.host_gap / sites[0].speeds.of(Stage.HOST_CPU)

    def receive(self) -> Process:
        """Requests come."""
        of = self._of
        per_s = of.load * self.capacity_per_s
        changes_ns, is_burst = 0, False
        while not self._is_flooded:
            now_ns = self._calendar.now
            if of.burst > 1 and now_ns >= changes_ns:
                is_burst = not is_burst
                mean_s = of.burst_s if is_burst else of.calm_s
                changes_ns = now_ns + int(self._random.expovariate(1 / mean_s) * 1e9)
            rate = per_s * (of.burst if is_burst else self._calm_share()) if of.burst > 1 else per_s
            yield int(self._random.expovariate(rate) * 1e9)
            self._queue.append(self._request_s())
            self._calendar.open(self._arrival)

    @property
    def capacity_per_s(self) -> float:
        """Requests a second that a full batch gives."""
        of = self._of
        return of.batch / (of.request_s + of.batch * of.prefill_s) / self._slowness

    def run(self) -> Process:
        """Prefill those who came, decode a block for all who are there."""
        while True:
            if self._is_flooded:
                while len(self._queue) < self._of.batch:
                    self._queue.append(self._request_s())
            if not self._queue and not self._active:
                for site in self._sites:
                    hold(site)
                yield self._arrival
            joining = min(len(self._queue), self._of.batch - len(self._active))
            if joining:
                self._begin(self._prefill(), _ENGINE_CORES)
                yield int(joining * self._of.prefill_s * self._slowness * 1e9)
                self._active += [self._queue.popleft() for _ in range(joining)]
            yield from self._decode()

    def _decode(self) -> Process:
        block_s = max(_LEAST_BLOCK_S, min(BLOCK_S, *self._active))
        self._begin(self._decoding(), _ENGINE_CORES)
        yield int(block_s * self._slowness * (1 - self._of.host_gap + self._gap) * 1e9)
        left = [want_s - block_s for want_s in self._active]
        self._active = [want_s for want_s in left if want_s > 0]
        for site in self._sites:
            for _ in range(len(left) - len(self._active)):
                site.finish()

    def _begin(self, level: Level, cores: float) -> None:
        for site in self._sites:
            site.begin(level, cores)

    def _request_s(self) -> float:
        return max(0.05, self._of.request_s * self._random.lognormvariate(0.0, self._of.spread))

    def _calm_share(self) -> float:
        """Of the mean rate between bursts, so that the mean is what it says."""
        of = self._of
        return max(0.01, (of.burst_s + of.calm_s - of.burst * of.burst_s) / of.calm_s)

    def _prefill(self) -> Level:
        key = ("prefill", len(self._sites) > 1)
        activity = replace(_PREFILL, nvlink=0.12 if len(self._sites) > 1 else 0.0)
        return self._site.palette.known(*key) or self._site.palette.make(activity, key=key)

    def _decoding(self) -> Level:
        """By how full the batch is: the same memory traffic, more arithmetic."""
        bucket = min(_FULL, len(self._active) * (_FULL + 1) // self._of.batch)
        gap = round(self._gap / (1 - self._of.host_gap + self._gap), 4)
        key = ("decode", bucket, gap, len(self._sites) > 1)
        known = self._site.palette.known(*key)
        if known is not None:
            return known
        moved = _COMMUNICATING if len(self._sites) > 1 else 0.0
        activity = replace(
            _DECODE,
            graphics=1 - gap,
            sm=0.75 * (1 - gap),
            tensor=(0.04 + 0.03 * bucket) * (1 - gap),
            dram=0.65 * (1 - gap),
            power=0.42 + 0.07 * bucket,
            nvlink=0.02 + 0.03 * bucket if moved else 0.0,
        )
        truths: dict[Cause, float] = {activity.truth: 1 - gap - moved}
        if gap:
            truths["starved", "host_cpu"] = gap
        if moved:
            truths["communicating", "nvlink"] = moved
        return self._site.palette.make(activity, truths, key)
