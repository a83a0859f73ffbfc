# SPDX-License-Identifier: Apache-2.0
"""What all sensors of one face share: the node, how it is looked at, and what its hardware was found to be like."""

from dataclasses import dataclass
from random import Random
from typing import Final

from gpufeed.model.gpu import GpuProcess
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.simulate.activity import Activity
from gpufeed.simulate.pipeline.chance import source
from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.pipeline.node import JudgedNode
from gpufeed.simulate.sensors.settings import Noise, Sensing

BOOT_NS: Final = 1_000_000_000_000
"""Monotonic time at which a node begins."""

FINEST_TICKS_PER_S: Final = 1e9
_SESSION: Final = "/user.slice/user-1000.slice/session-18.scope"
_FIRST_PID: Final = 4000
_PIDS_PER_RANK: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """What differs from node to node, and is the same on one as long as it stands."""

    utilization_window_ns: int  # 0: since the last read
    wait_ticks_per_s: float
    has_narrow_ports: bool
    has_reason_counters: bool  # of each reason for slowing down, not of heat as a whole
    has_gds_counts: bool  # nvidia-fs counts what it moves: off where nobody asked for it
    has_one_cgroup: bool  # for all ranks of a job

    @classmethod
    def drawn(cls, sensing: Sensing, random: Random) -> "Kit":
        """By chance, as far as noise allows."""
        noise = sensing.noise
        # every number is drawn, whatever is switched on: switching one off leaves the others as they were
        draws = [random.random() for _ in range(6)]
        return cls(
            utilization_window_ns=int(1e9 * _chosen(noise.utilization_windows_s, draws[0], 0.0)),
            wait_ticks_per_s=_chosen(noise.wait_ticks_per_s, draws[1], FINEST_TICKS_PER_S),
            has_narrow_ports=draws[2] < noise.narrow_ports,
            has_reason_counters=draws[3] < _EVEN,
            has_gds_counts=draws[4] < _EVEN,
            has_one_cgroup=sensing.placement == "job" or (sensing.placement == "any" and draws[5] < _EVEN),
        )


_EVEN: Final = 0.5


class Scene:
    """What each sensor is given."""

    def __init__(self, node: JudgedNode, sensing: Sensing) -> None:
        self.node = node
        self.sensing = sensing
        self.kit = Kit.drawn(sensing, self.random("kit"))
        self.pids = {gpu.board.index: _FIRST_PID + _PIDS_PER_RANK * gpu.board.index for gpu in node.gpus}
        self.strays: dict[int, int] = {}  # GPU that another rank's process counts for too, by that rank's GPU
        self.uuids = tuple(GpuUuid(gpu.board.uuid) for gpu in node.gpus)
        self.keys = tuple(GpuKey(uuid) for uuid in self.uuids)
        self._looked_ns = -1
        self._sums: dict[int, list[float]] = {}
        self._hosts: dict[int, dict[str, float]] = {}
        self._activities: dict[int, Activity] = {}

    @property
    def noise(self) -> Noise:
        """What sensors do."""
        return self.sensing.noise

    def random(self, *what: object) -> Random:
        """A source of chance of its own."""
        return source(self.node.seed, "sensors", self.sensing.seed, *what)

    def sums(self, gpu: JudgedGpu) -> list[float]:
        """`gpu.integrals` of now: several sensors look at one instant."""
        self._look()
        found = self._sums.get(gpu.board.index)
        if found is None:
            found = self._sums[gpu.board.index] = gpu.integrals
        return found

    def host(self, gpu: JudgedGpu) -> dict[str, float]:
        """`gpu.host` of now."""
        self._look()
        found = self._hosts.get(gpu.board.index)
        if found is None:
            found = self._hosts[gpu.board.index] = gpu.host
        return found

    def activity(self, gpu: JudgedGpu) -> Activity:
        """`gpu.activity` of now."""
        self._look()
        found = self._activities.get(gpu.board.index)
        if found is None:
            found = self._activities[gpu.board.index] = gpu.activity
        return found

    def uuid(self, gpu: JudgedGpu) -> GpuUuid:
        """Of the board."""
        return self.uuids[gpu.board.index]

    def key(self, gpu: JudgedGpu) -> GpuKey:
        """The whole board."""
        return self.keys[gpu.board.index]

    def is_held(self, gpu: JudgedGpu) -> bool:
        """Whether a process holds the GPU now."""
        return self.activity(gpu).occupant == "held"

    def ranks(self, job: int) -> list[JudgedGpu]:
        """The GPUs of a job that it still holds."""
        return [gpu for gpu in self.node.gpus if gpu.job == job and self.is_held(gpu)]

    def jobs(self) -> range:
        """All jobs of the scenario."""
        return range(len(self.node.scenario.jobs))

    def cgroup(self, gpu: JudgedGpu) -> str:
        """Of the processes that hold a GPU."""
        if not self.sensing.inputs.cgroups:
            return _SESSION
        step = f"/system.slice/slurmstepd.scope/job_{job_id(gpu.job)}/step_0"
        return f"{step}/user" if self.kit.has_one_cgroup else f"{step}/user/task_{gpu.site.rank}"

    def processes(self, gpu: JudgedGpu) -> tuple[GpuProcess, ...]:
        """That hold a GPU."""
        if not self.is_held(gpu):
            return ()
        return (GpuProcess(self.pids[gpu.board.index], int(gpu.levels.memory_used_bytes)),)

    def _look(self) -> None:
        if self._looked_ns != self.node.age_ns:
            self._looked_ns = self.node.age_ns
            self._sums.clear()
            self._hosts.clear()
            self._activities.clear()


def job_id(job: int) -> str:
    """Of a scenario's job, as the scheduler numbers it."""
    return str(4242 + job)


def _chosen(choices: tuple[float, ...], draw: float, otherwise: float) -> float:
    return choices[int(draw * len(choices))] if choices else otherwise
