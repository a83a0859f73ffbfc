# SPDX-License-Identifier: Apache-2.0
"""Loader processes of one rank: each fetches a batch, computes on it, and may be only so far ahead."""

import math
from heapq import heapreplace
from random import Random

from gpufeed.simulate.pipeline.calendar import Gate, Process
from gpufeed.simulate.pipeline.chance import about_one, hardness
from gpufeed.simulate.pipeline.server import Server
from gpufeed.simulate.pipeline.site import POLLING_CORES, Site
from gpufeed.simulate.pipeline.stages import Stage
from gpufeed.simulate.pipeline.workload import Input


class Loader:
    """Batches of a rank by number, in order. Where each of them is now is known."""

    def __init__(self, site: Site, of: Input, server: Server) -> None:
        self.site = site
        self.of = of
        self.server = server
        self.wanted = -1  # the batch the GPU waits for; -1: none
        self._where: dict[int, Stage] = {}
        self._ready: set[int] = set()
        self._arrival = Gate()
        self._room: dict[int, Gate] = {}
        self._taken = 0
        self._ahead = max(1, of.workers) * of.prefetch
        self._cores = [0] * of.cores  # when each of them is free
        self._randoms = [site.random(f"loader {worker}") for worker in range(max(1, of.workers))]
        for worker in range(of.workers):
            site.start(self._work(worker))
        site.loaders = of.workers
        site.cores = of.cores

    def take(self, number: int) -> Process:
        """Until batch `number` is ready in a pinned buffer; then it is the caller's."""
        if not self.of.workers:
            yield from self._make(number, self._randoms[0], is_main=True)
        while number not in self._ready:
            yield self._arrival
        self._ready.discard(number)
        self._taken = number + 1
        gate = self._room.pop(number + self._ahead, None)
        if gate is not None:
            self.site.calendar.open(gate)

    def where(self, number: int) -> Stage:
        """A batch that nobody has begun with waits for a loader."""
        return self._where.get(number, Stage.HOST_CPU)

    def move(self, number: int, stage: Stage) -> None:
        """A batch is in this stage from now on."""
        self._where[number] = stage
        if number == self.wanted:
            self.site.wait_for(stage, POLLING_CORES)

    @property
    def copies_ahead(self) -> bool:
        """Whether the next batch is copied while the GPU computes on this one."""
        return self.of.copies_ahead and self.of.workers > 0

    def forget(self, number: int) -> None:
        """The GPU has it."""
        self._where.pop(number, None)

    def _work(self, worker: int) -> Process:
        number, random = worker, self._randoms[worker]
        while True:
            if number >= self._taken + self._ahead:
                gate = self._room[number] = Gate()
                yield gate
            yield from self._make(number, random, is_main=False)
            number += self.of.workers

    def _make(self, number: int, random: Random, *, is_main: bool) -> Process:
        of, site = self.of, self.site
        size = of.batch_bytes * about_one(random, of.spread)
        effort = hardness(random, of.storage.spread)
        missing = size * (1 - self._cached(number))
        if missing or of.files_per_batch:
            self.move(number, Stage.STORAGE)
            site.meter.move(site.calendar.now, blocked=self.server.blocks)
            yield from self._fetch(missing, effort / site.conditions.factor("late_input", site.gpu))
            site.meter.move(site.calendar.now, blocked=-self.server.blocks)
        self.move(number, Stage.HOST_CPU)
        yield from self._compute(random, is_main=is_main)
        if of.reclaim_s and not site.speeds.is_free(Stage.HOST_MEMORY):
            self.move(number, Stage.HOST_MEMORY)
            yield from self._reclaim(random)
        self.move(number, Stage.PCIE)
        self._ready.add(number)
        site.calendar.open(self._arrival)

    def _fetch(self, size: float, effort: float) -> Process:
        if self.of.files_per_batch:
            yield from self.server.open(self.site.meter, self.of.files_per_batch, effort)
        if size:
            yield from self.server.read(self.site.meter, size, effort)

    def _compute(self, random: Random, *, is_main: bool) -> Process:
        site = self.site
        left = site.conditions.factor("processors_taken", site.gpu)
        need_ns = site.speeds.ns(Stage.HOST_CPU, self.of.cpu_s * about_one(random, self.of.cpu_spread) / left)
        if not need_ns:
            return
        if is_main:
            site.meter.set_trainer(site.calendar.now, left)
            yield need_ns
            return
        now = site.calendar.now
        begins_ns = max(now, self._cores[0])
        heapreplace(self._cores, begins_ns + need_ns)
        if begins_ns > now:
            site.meter.move(now, queued=1)
            yield begins_ns - now
            site.meter.move(begins_ns, queued=-1)
        is_robbed = int(left < 1)  # somebody else's tasks run on its processors for a part of the time
        site.meter.move(begins_ns, running=left, queued=is_robbed)
        yield need_ns
        site.meter.move(site.calendar.now, running=-left, queued=-is_robbed)

    def _reclaim(self, random: Random) -> Process:
        site = self.site
        site.meter.move(site.calendar.now, swapping=1)
        yield site.speeds.ns(Stage.HOST_MEMORY, self.of.reclaim_s * about_one(random, 0.3))
        site.meter.move(site.calendar.now, swapping=-1)

    def _cached(self, number: int) -> float:
        """Share of a batch that the page cache holds: nothing in the first epoch."""
        of = self.of
        if of.dataset_bytes is None or (number + 1) * of.batch_bytes <= of.dataset_bytes:
            return 0.0
        return cached_share(of.cache_bytes / of.dataset_bytes)


def cached_share(fits: float) -> float:
    """Hits of a least-recently-used cache that holds `fits` of a data set read once an epoch in random order.

    A record at a share x of one order and y of the next is kept if fewer others came between than the cache holds:
    1 - x (1 - y) ≤ fits, which for independent uniform x and y has the probability fits + (1 - fits) ln(1 - fits).
    """
    if fits >= 1:
        return 1.0
    return fits + (1 - fits) * math.log1p(-fits)
