# SPDX-License-Identifier: Apache-2.0
"""Which lanes look at a node, and how often: those that a probe of ours would run, as far as anything is there."""

from collections.abc import Sequence
from typing import Final

from gpufeed.model.frame import AnySample
from gpufeed.model.gpu import DriverInfo, PciGpus
from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.sensors.board import BoardSensors
from gpufeed.simulate.sensors.churn import Churn
from gpufeed.simulate.sensors.gpm import GpmSensor
from gpufeed.simulate.sensors.host import HostSensors
from gpufeed.simulate.sensors.jobs import JobSensors
from gpufeed.simulate.sensors.lane import SECOND_NS, SLOW_NS, Group, Lane, Read
from gpufeed.simulate.sensors.port import PortSensors
from gpufeed.simulate.sensors.power import SLICED, PowerSensor, Slices
from gpufeed.simulate.sensors.rhythm import Happening, Rhythm
from gpufeed.simulate.sensors.scene import Scene
from gpufeed.simulate.sensors.storage import DiskSensors, GdsSensors, NfsSensors
from gpufeed.simulate.sensors.tasks import TaskSensors

_RARE_NS: Final = 60 * SECOND_NS
_PROCESSES_NS: Final = 2 * SECOND_NS
_PORT_NS: Final = SECOND_NS // 2
"""Each file of a port is a command to its firmware: never more often than this."""


class Plan:
    """Lanes, and what else happens to a node that is looked at."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        noise, period_ns = scene.noise, scene.sensing.period_ns
        self._fast_ns = period_ns
        self._calls = Rhythm(scene.random("calls"), period_ns, noise, is_held_up=True)
        self._files = Rhythm(scene.random("files"), period_ns, noise, is_held_up=False)
        self._tasks = TaskSensors(scene)
        is_sliced = noise.power_is_sliced and scene.node.model.key in SLICED
        self._slices = Slices(scene.node.gpus) if is_sliced else None
        churn = Churn(scene, self._tasks)
        self.happenings: Sequence[Happening] = (churn,) if self._slices is None else (churn, self._slices)
        self.lanes = [*self._driver(), *self._boards(), *self._storage(), *self._host(), *self._jobs(), *self._ports()]
        self.rank = {id(each): at for at, each in enumerate((*self.happenings, *self.lanes))}
        """In which order things happen that are due at one instant."""

    def _driver(self) -> list[Lane]:
        node = self._scene.node

        def driver(_age_ns: int) -> tuple[AnySample, ...]:
            version = node.model.driver_version
            return (DriverInfo(driver_version=version, device_count=len(node.gpus)),) if node.has_driver else ()

        def slots(_age_ns: int) -> tuple[AnySample, ...]:
            return (PciGpus(bus_ids=tuple(gpu.board.pci_bus_id for gpu in node.gpus)),)

        return [
            self._lane("nvml-init", Group(name="nvml.slow", collector="nvml", period_ns=SLOW_NS, read=driver)),
            self._lane("pci", Group(name="host.rare", collector="host", period_ns=_RARE_NS, read=slots)),
        ]

    def _boards(self) -> list[Lane]:
        return [self._board(gpu) for gpu in self._scene.node.gpus]

    def _board(self, gpu: JudgedGpu) -> Lane:
        scene, fast_ns = self._scene, self._fast_ns
        of = BoardSensors(scene, gpu, PowerSensor(scene, gpu, self._slices))
        groups = [
            Group(name="nvml.rare", collector="nvml", period_ns=_RARE_NS, read=of.identity),
            Group(name="nvml.slow", collector="nvml", period_ns=SLOW_NS, read=of.slow),
            Group(name="nvml.processes", collector="nvml", period_ns=_PROCESSES_NS, read=of.processes),
            Group(name="nvml.fast", collector="nvml", period_ns=fast_ns, read=of.fast),
            Group(name="nvlink.fast", collector="nvlink", period_ns=fast_ns, read=of.links),
        ]
        if scene.node.model.has_gpm and scene.sensing.inputs.gpm:
            gpm = GpmSensor(scene, gpu)
            groups.append(Group(name="gpm.fast", collector="gpm", period_ns=fast_ns, read=gpm.read))
        lane = Lane(scene, f"gpu{gpu.board.index}", self._calls, groups, gpu)
        lane.delay_s = scene.noise.counter_delay_s
        return lane

    def _storage(self) -> list[Lane]:
        scene, fast_ns = self._scene, self._fast_ns
        disks = DiskSensors(scene)
        lanes = [
            self._lane(
                "block",
                Group(name="block.slow", collector="block", period_ns=SLOW_NS, read=disks.info),
                Group(name="block.fast", collector="block", period_ns=fast_ns, read=disks.counters),
            ),
            self._lane(
                "gds:node", Group(name="gds.fast", collector="gds", period_ns=fast_ns, read=GdsSensors(scene).counters)
            ),
        ]
        if scene.sensing.inputs.nfs:
            nfs = NfsSensors(scene)
            slow = Group(name="nfs.slow", collector="nfs", period_ns=SLOW_NS, read=nfs.info)
            lanes.append(
                self._lane("nfs", slow, Group(name="nfs.fast", collector="nfs", period_ns=fast_ns, read=nfs.counters))
            )
        return lanes

    def _host(self) -> list[Lane]:
        host, fast_ns = HostSensors(self._scene), self._fast_ns
        lanes = [
            self._lane(
                "host",
                Group(name="host.slow", collector="host", period_ns=SLOW_NS, read=host.node),
                Group(name="host.fast", collector="host", period_ns=fast_ns, read=host.processors),
            ),
            self._lane(
                "net",
                Group(name="ethernet.slow", collector="ethernet", period_ns=SLOW_NS, read=host.interface),
                Group(name="ethernet.fast", collector="ethernet", period_ns=SECOND_NS, read=host.traffic),
            ),
        ]
        if self._scene.sensing.inputs.pressure:
            lanes.append(self._fast("pressure", "pressure.fast", host.pressure))
        return lanes

    def _jobs(self) -> list[Lane]:
        inputs, jobs = self._scene.sensing.inputs, JobSensors(self._scene)
        if not inputs.processes:
            return []
        lanes = [
            self._lane(
                "jobs", Group(name="jobs.fast", collector="jobs", period_ns=self._fast_ns, read=self._tasks.read)
            ),
            self._lane("job-files", Group(name="jobs.slow", collector="jobs", period_ns=SLOW_NS, read=jobs.files)),
        ]
        if inputs.cgroups:
            usage = Group(name="jobs.slow", collector="pressure", period_ns=SLOW_NS, read=jobs.usage)
            waiting = Group(name="pressure.fast", collector="pressure", period_ns=self._fast_ns, read=jobs.pressure)
            owners = Group(name="jobs.owners", collector="jobs", period_ns=_PROCESSES_NS, read=jobs.owners)
            given = Group(name="jobs.slow", collector="jobs", period_ns=SLOW_NS, read=jobs.allocations)
            lanes += [
                self._lane("job-usage", usage, *((waiting,) if inputs.pressure else ())),
                self._lane("owners", owners),
                self._lane("schedulers", given),
            ]
        return lanes

    def _ports(self) -> list[Lane]:
        if not self._scene.sensing.inputs.fabric:
            return []
        return [self._port(gpu) for gpu in self._scene.node.gpus]

    def _port(self, gpu: JudgedGpu) -> Lane:
        of, fast_ns = PortSensors(self._scene, gpu), max(self._fast_ns, _PORT_NS)
        lane = self._lane(
            f"ib:{gpu.board.nic}",
            Group(name="infiniband.slow", collector="infiniband", period_ns=SLOW_NS, read=of.state),
            Group(name="infiniband.fast", collector="infiniband", period_ns=fast_ns, read=of.counters),
        )
        lane.delay_s = self._scene.noise.counter_delay_s
        return lane

    def _fast(self, name: str, group: str, read: Read) -> Lane:
        return self._lane(name, Group(name=group, collector="pressure", period_ns=self._fast_ns, read=read))

    def _lane(self, name: str, *groups: Group) -> Lane:
        return Lane(self._scene, name, self._files, groups)
