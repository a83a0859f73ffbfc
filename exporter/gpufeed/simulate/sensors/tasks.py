# SPDX-License-Identifier: Apache-2.0
"""Threads of the processes that hold GPUs, looked at one by one: states of the moment, some of them missed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from gpufeed.model.frame import AnySample
from gpufeed.model.host import JobTasks
from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.sensors.host import TICKS_PER_S
from gpufeed.simulate.sensors.scene import Scene

HELPERS: Final = 2
"""Threads of a trainer that sleep."""


@dataclass(slots=True)
class _Seen:
    """Processor time of one rank when it was last looked at, and what its ended loaders took with them."""

    at_ns: int
    trainer_s: float
    loader_s: float
    gone_s: float = 0.0


@dataclass(slots=True)
class _Look:
    """What one look at a cgroup finds."""

    gpus: list[JudgedGpu] = field(default_factory=list)
    processes: int = 0
    threads: int = 0
    running: int = 0
    blocked: int = 0
    cpu_s: float = 0.0
    cores: int = 0
    busiest: tuple[float, float] | None = None  # seconds of processor, of time

    def used(self, cpu_s: float, wall_s: float) -> None:
        """Some thread used so much: the busiest counts."""
        if self.busiest is None or cpu_s / wall_s > self.busiest[0] / self.busiest[1]:
            self.busiest = (cpu_s, wall_s)


class TaskSensors:
    """All cgroups with GPUs."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._random = scene.random("tasks")
        self._seen: dict[int, _Seen] = {}

    def end_loaders(self, gpu: JudgedGpu) -> None:
        """The loaders of a rank end, and others begin: what they have used counts no more."""
        seen = self._seen.get(gpu.board.index)
        if seen is not None:
            seen.gone_s = _ticks(self._scene.host(gpu)["loader_cpu_s"])

    def read(self, age_ns: int) -> tuple[AnySample, ...]:
        """A sample per cgroup."""
        looks: dict[str, _Look] = {}
        for gpu in self._scene.node.gpus:
            if self._scene.is_held(gpu) and not gpu.is_lost:
                self._add(looks.setdefault(self._scene.cgroup(gpu), _Look()), gpu, age_ns)
            else:
                self._seen.pop(gpu.board.index, None)
        return tuple(self._sample(cgroup, look) for cgroup, look in sorted(looks.items()))

    def _add(self, look: _Look, gpu: JudgedGpu, age_ns: int) -> None:
        loaders, states = gpu.site.loaders, self._scene.activity(gpu).host
        awake = [("R", _whole(states.trainer_cpu, self._random)), ("R", states.loaders_running)]
        awake.append(("D", states.loaders_blocked))
        for state, count in awake:
            found = count - self._missed(count)
            look.running += found * (state == "R")
            look.blocked += found * (state == "D")
        look.gpus.append(gpu)
        look.processes += 1 + loaders
        look.threads += 1 + HELPERS + loaders - self._missed(1 + HELPERS + loaders)
        look.cores += gpu.site.cores
        self._add_times(look, gpu, age_ns)

    def _add_times(self, look: _Look, gpu: JudgedGpu, age_ns: int) -> None:
        host, loaders = self._scene.host(gpu), gpu.site.loaders
        trainer_s, loader_s = _ticks(host["trainer_cpu_s"]), _ticks(host["loader_cpu_s"])
        seen = self._seen.get(gpu.board.index)
        if seen is None:
            seen = self._seen[gpu.board.index] = _Seen(age_ns, trainer_s, loader_s)
        elif age_ns > seen.at_ns:
            wall_s = (age_ns - seen.at_ns) / 1e9
            look.used(min(wall_s, trainer_s - seen.trainer_s), wall_s)
            if loaders:
                look.used((loader_s - seen.loader_s) / loaders, wall_s)
            seen.at_ns, seen.trainer_s, seen.loader_s = age_ns, trainer_s, loader_s
        look.cpu_s += trainer_s + loader_s - seen.gone_s

    def _sample(self, cgroup: str, look: _Look) -> JobTasks:
        gpus = {self._scene.uuid(gpu) for gpu in look.gpus}
        for gpu in look.gpus:
            stray = self._scene.strays.get(gpu.board.index)
            if stray is not None:
                gpus.add(self._scene.uuid(self._scene.node.gpus[stray]))
        return JobTasks(
            cgroup=cgroup,
            gpus=tuple(sorted(gpus)),
            processes=look.processes,
            threads=look.threads,
            running=look.running,
            blocked=look.blocked,
            cpu_s=look.cpu_s,
            busiest_thread_cpu_s=None if look.busiest is None else look.busiest[0],
            busiest_thread_wall_s=None if look.busiest is None else look.busiest[1],
            cpus_allowed=look.cores,
        )

    def _missed(self, count: int) -> int:
        return sum(self._random.random() < self._scene.noise.missed_tasks for _ in range(count))


def _whole(cores: float, random: Random) -> int:
    """Threads that run at this moment, where so many cores are used in the mean."""
    return int(cores) + (random.random() < cores % 1)


def _ticks(seconds: float) -> float:
    return int(seconds * TICKS_PER_S) / TICKS_PER_S


def held_cgroups(scene: Scene) -> dict[str, Sequence[JudgedGpu]]:
    """The cgroups with GPUs, and the GPUs of each."""
    found: dict[str, list[JudgedGpu]] = {}
    for gpu in scene.node.gpus:
        if scene.is_held(gpu) and not gpu.is_lost:
            found.setdefault(scene.cgroup(gpu), []).append(gpu)
    return dict(sorted(found.items()))
