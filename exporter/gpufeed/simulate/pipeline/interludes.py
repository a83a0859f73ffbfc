# SPDX-License-Identifier: Apache-2.0
"""What interrupts training: its start, checkpoints, evaluations, an optimizer on the host."""

from dataclasses import replace
from typing import Final

from gpufeed.simulate.pipeline.calendar import Process
from gpufeed.simulate.pipeline.exchange import Exchanges
from gpufeed.simulate.pipeline.server import Server
from gpufeed.simulate.pipeline.site import POLLING_CORES, Site
from gpufeed.simulate.pipeline.stages import Stage
from gpufeed.simulate.pipeline.workload import Checkpoint, Collective, Evaluation, Offload, Startup, Training

COMPILING_CORES: Final = 3.5
_BARRIER: Final = Collective()
"""Nothing moves: everybody waits for the last."""


class Interludes:
    """Of one job; counted in steps, so that they come at the same work whatever the speed."""

    def __init__(self, of: Training, step_s: float, exchanges: Exchanges, reads: Server | None, writes: Server) -> None:
        self._of = of
        self._exchanges = exchanges
        self._reads = reads
        self._writes = writes
        self._saves_every = _steps(of.checkpoint.every_s, step_s) if of.checkpoint else 0
        self._evaluates_every = _steps(of.evaluation.every_s, step_s) if of.evaluation else 0

    def start(self, site: Site) -> Process:
        """Before the first step."""
        if self._of.startup is not None:
            yield from self._start(site, self._of.startup)

    def between(self, site: Site, number: int) -> Process:
        """After so many steps."""
        of = self._of
        if of.offload is not None:
            yield from self._update(site, of.offload)
        if of.checkpoint is not None and number % self._saves_every == 0:
            yield from self._save(site, of.checkpoint)
        if of.evaluation is not None and number % self._evaluates_every == 0:
            yield from self._evaluate(site, of.evaluation)

    def _start(self, site: Site, of: Startup) -> Process:
        site.meter.set_trainer(site.calendar.now, 1.0)
        yield site.speeds.ns(Stage.HOST_CPU, of.import_s)
        if of.scan_files and self._reads is not None:
            site.wait_for(Stage.STORAGE, POLLING_CORES)
            site.meter.move(site.calendar.now, blocked=self._reads.blocks)
            yield from self._reads.open(site.meter, of.scan_files, 1.0)
            site.meter.move(site.calendar.now, blocked=-self._reads.blocks)
        site.wait_for(Stage.HOST_CPU, COMPILING_CORES)
        yield site.speeds.ns(Stage.HOST_CPU, of.compile_s)

    def _update(self, site: Site, of: Offload) -> Process:
        """The optimizer's step on the host: down, computing, up."""
        site.wait_for(Stage.PCIE, 1.0)
        yield from site.copy_out(of.bytes, Stage.PCIE)
        site.wait_for(Stage.HOST_CPU, of.cores)
        yield site.speeds.ns(Stage.HOST_CPU, of.cpu_s / of.cores)
        site.wait_for(Stage.PCIE, 1.0)
        yield from site.copy_in(of.bytes)

    def _save(self, site: Site, of: Checkpoint) -> Process:
        if not of.by_first_only or site.rank == 0:
            site.wait_for(Stage.CHECKPOINT, 1.0)
            yield from site.copy_out(of.bytes, Stage.CHECKPOINT)
            if of.is_async:
                site.start(self._write_behind(site, of))
            else:
                yield from self._write(site, of)
        yield from self._exchanges.join(site, _BARRIER, 0)

    def _write(self, site: Site, of: Checkpoint) -> Process:
        yield site.speeds.ns(Stage.CHECKPOINT, of.bytes / of.serialize_bytes_per_s)
        site.wait_for(Stage.CHECKPOINT, 0.0)
        site.meter.move(site.calendar.now, blocked=1)
        yield from self._writes.write(site.meter, of.bytes)
        site.meter.move(site.calendar.now, blocked=-1)

    def _write_behind(self, site: Site, of: Checkpoint) -> Process:
        """The same by a process of its own, while training goes on."""
        site.meter.move(site.calendar.now, running=1)
        yield site.speeds.ns(Stage.CHECKPOINT, of.bytes / of.serialize_bytes_per_s)
        site.meter.move(site.calendar.now, running=-1, blocked=1)
        yield from self._writes.write(site.meter, of.bytes)
        site.meter.move(site.calendar.now, blocked=-1)

    def _evaluate(self, site: Site, of: Evaluation) -> Process:
        """Forward passes over data that is in memory, then scores on the host."""
        forward = self._of.works[0].activity
        key = ("evaluation", id(forward))
        level = site.palette.known(*key) or site.palette.make(
            replace(forward, power=forward.power * 0.8, dram=forward.dram * 0.8), key=key
        )
        site.begin(level, forward.host.trainer_cpu)
        yield int(of.seconds * site.slowness * 1e9)
        site.wait_for(Stage.HOST_CPU, 1.0)
        yield site.speeds.ns(Stage.HOST_CPU, of.cpu_s)
        yield from self._exchanges.join(site, _BARRIER, 0)


def _steps(every_s: float, step_s: float) -> int:
    return max(1, round(every_s / step_s))
