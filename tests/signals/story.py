# SPDX-License-Identifier: Apache-2.0
"""A node told in levels: frames as a probe would send them, every counter advanced by hand, two readings a second."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpufeed.model.fabric import IbCounters, IbDevice, IbPort
from gpufeed.model.frame import AnySample, Event, Failure, Frame, FrameTime, InputStatus, LaneStatus, Reading
from gpufeed.model.gpu import (
    ClockEventReason,
    DriverInfo,
    GpmInterval,
    GpuCondition,
    GpuConditionWord,
    GpuFast,
    GpuIdentity,
    GpuProcess,
    GpuProcesses,
    GpuSlow,
    NvlinkTotals,
)
from gpufeed.model.host import HostCpu, JobTasks, NodeInfo, Pressure, PressureResource
from gpufeed.model.ids import CollectorName, GpuKey, GpuUuid, GroupName, IbPortKey, LaneId, StorageKey
from gpufeed.model.state import Attribution, StateCause
from gpufeed.model.storage import StorageCounters
from gpufeed.step import Node, Settings, initial, step

S = 1_000_000_000
HALF = S // 2
START_NS = 1_000 * S
WALL_NS = 1_700_000_000 * S
BOOT = "boot-1"

NVLINK_BYTES_PER_S = 450e9  # 18 links of 25 GB/s
PORT_BYTES_PER_S = 50e9
PCIE_BYTES_PER_S = 55e9
CLOCK_HZ = 1.98e9
H100_SXM = 0x2330
MEMORY_BYTES = 80 * 1024**3
PCI_SLOTS = ("0000:18:00.0", "0000:2a:00.0", "0000:3b:00.0", "0000:5d:00.0")


def uuid(index: int) -> GpuUuid:
    return GpuUuid(f"GPU-{index}")


def port(index: int) -> IbPortKey:
    return IbPortKey(f"mlx5_{index}", 1)


NFS = StorageKey("nfs", "/data")


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """What one GPU does. Ratios of what it could."""

    active: float | None = 0.0
    sm: float | None = 0.0
    tensor: float | None = 0.0
    dram: float | None = 0.0
    has_gpm: bool = True
    utilization: float | None = None  # None: as `active`
    has_utilization: bool = True
    memory_utilization: float = 0.0
    memory: float | None = 0.5  # share of the board's
    processes: int | None = 1  # None: cannot be listed
    power: float = 0.5  # of the limit of 700 W
    clock: float = 1.0
    nvlink: float = 0.0
    links: int = 18
    links_up: int = 18
    fabric: float = 0.0
    fabric_wait: float = 0.0  # ticks a second
    pcie_receive: float = 0.0
    pcie_transmit: float = 0.0
    reasons: Mapping[ClockEventReason, float] = field(default_factory=dict)
    condition: GpuConditionWord = "ok"
    recovery_action: int | None = 0
    fabric_state: int | None = None
    fabric_status: int | None = None


@dataclass(frozen=True, kw_only=True)
class Host:
    """What the job's host side does; rates per second, shares of time."""

    tasks: bool = True
    running: int = 1
    blocked: int = 0
    cores: float = 0.5
    cpus: int | None = 16
    busiest: float | None = 0.3
    io: float | None = 0.0
    cpu: float | None = 0.0
    memory: float | None = 0.0
    storage: bool = True
    read: float = 0.0
    write: float = 0.0
    reads: float = 0.0
    outstanding: float = 0.0
    host_cores: float | None = 1.0


COMPUTING = Gpu(active=1.0, sm=0.9, tensor=0.5, dram=0.4, power=0.9, clock=0.93)
WAITING = Gpu(active=0.0, power=0.15)
FREE = Gpu(active=0.0, memory=0.0, processes=0, power=0.1)


class Story:
    """Frames in order. `run` tells some seconds, two frames a second; what it leaves out is as it was."""

    def __init__(self, settings: Settings | None = None, gpus: int = 2) -> None:
        self.count = gpus
        self.now_ns = START_NS
        self.sequence = 0
        self.node: Node = initial(settings or Settings(), self.time)
        self.gpus: Sequence[Gpu] = [COMPUTING] * gpus
        self.host = Host()
        self.totals: dict[tuple[str, object], float] = {}
        self.silent: frozenset[str] = frozenset()  # lanes that read nothing
        self.busy_since_ns: dict[str, int] = {}
        self.since_slow = 0

    @property
    def time(self) -> FrameTime:
        passed = self.now_ns - START_NS
        return FrameTime(self.now_ns, self.now_ns, WALL_NS + passed)

    def run(
        self,
        seconds: float,
        gpu: Gpu | None = None,
        host: Host | None = None,
        *,
        others: Gpu | None = None,
        events: tuple[Event, ...] = (),
        inputs: tuple[InputStatus, ...] = (),
    ) -> Node:
        """`gpu`: what GPU 0 does; `others`: what the rest does, if not the same."""
        if gpu is not None:
            self.gpus = [gpu] + [others or gpu] * (self.count - 1)
        self.host = host or self.host
        for _ in range(round(seconds * 2)):
            self.pass_time(HALF)
            self.node = step(self.node, self.frame(events=events, inputs=inputs))
            events, inputs = (), ()
        return self.node

    def gap(self, seconds: float) -> Node:
        """The probe says nothing: frames made by the server."""
        for _ in range(round(seconds * 2)):
            self.now_ns += HALF
            self.sequence += 1
            self.node = step(self.node, Frame(sequence=self.sequence, time=self.time, gap="no frame"))
        return self.node

    def attribution(self, index: int = 0) -> Attribution:
        return self.node.state.attributions[GpuKey(uuid(index))]

    def seconds(self, index: int = 0) -> dict[StateCause, float]:
        return {cause: ns / S for cause, ns in self.attribution(index).state_ns.items()}

    def gained(self, before: Attribution, index: int = 0) -> dict[StateCause, float]:
        now = self.attribution(index).state_ns
        gains = {cause: (ns - before.state_ns.get(cause, 0)) / S for cause, ns in now.items()}
        return {cause: gain for cause, gain in gains.items() if gain > 0}

    def pass_time(self, length_ns: int) -> None:
        self.now_ns += length_ns
        self.sequence += 1
        seconds = length_ns / S
        for index, gpu in enumerate(self.gpus):
            for name, rate in self._gpu_rates(gpu).items():
                self._add((name, index), rate * seconds)
        for name, rate in self._host_rates().items():
            self._add((name, "host"), rate * seconds)

    def frame(self, *, events: tuple[Event, ...] = (), inputs: tuple[InputStatus, ...] = ()) -> Frame:
        slow = self.since_slow == 0
        self.since_slow = (self.since_slow + 1) % 20
        readings: list[Reading] = []
        for index, gpu in enumerate(self.gpus):
            if f"gpu{index}" not in self.silent:
                readings.extend(self._gpu_readings(index, gpu, slow=slow))
        readings.extend(self._host_readings(slow=slow))
        return Frame(
            sequence=self.sequence,
            time=self.time,
            lanes=tuple(self._lane(name) for name in ("nvml-init", "host", *(f"gpu{i}" for i in range(self.count)))),
            readings=tuple(reading for reading in readings if str(reading.lane) not in self.silent),
            events=events,
            inputs=inputs,
            probe_pid=7,
        )

    def reading(
        self, lane: str, group: str, *samples: AnySample, collector: CollectorName = "nvml", period_ns: int = HALF
    ) -> Reading:
        return Reading(
            lane=LaneId(lane),
            group=GroupName(group),
            collector=collector,
            began_ns=self.now_ns - 1_000_000,
            ended_ns=self.now_ns,
            period_ns=period_ns,
            samples=samples,
        )

    def _lane(self, name: str) -> LaneStatus:
        index = int(name.removeprefix("gpu")) if name.startswith("gpu") else None
        return LaneStatus(
            lane=LaneId(name),
            collector="nvml",
            busy_since_ns=self.busy_since_ns.get(name),
            late_after_ns=2 * S,
            stuck_after_ns=8 * S,
            gpu=index,
            uuid=None if index is None else uuid(index),
        )

    def _gpu_readings(self, index: int, gpu: Gpu, *, slow: bool) -> list[Reading]:
        lane, key = f"gpu{index}", GpuKey(uuid(index))
        condition = GpuCondition(index=index, uuid=uuid(index), condition=gpu.condition)
        if gpu.condition != "ok":
            return [self.reading(lane, "nvml.fast", condition)]
        readings = [
            self.reading(lane, "nvml.fast", condition, self._fast(key, index, gpu)),
            self.reading(
                lane,
                "nvlink.fast",
                NvlinkTotals(
                    gpu=key,
                    receive_bytes=self._counter("nvlink", index),
                    transmit_bytes=self._counter("nvlink", index),
                    links=gpu.links,
                    links_up=gpu.links_up,
                ),
            ),
        ]
        if gpu.has_gpm and gpu.active is not None:
            readings.append(self.reading(lane, "gpm.fast", self._gpm(key, gpu)))
        if slow:
            identity = self.identity(index)
            readings.append(self.reading(lane, "nvml.rare", identity, period_ns=60 * S))
            readings.append(
                self.reading(
                    lane,
                    "nvml.slow",
                    GpuSlow(
                        gpu=key,
                        pcie_generation=5,
                        pcie_width=16,
                        recovery_action=gpu.recovery_action,
                        fabric_state=gpu.fabric_state,
                        fabric_status=gpu.fabric_status,
                    ),
                    period_ns=10 * S,
                )
            )
        if gpu.processes is not None:
            held = tuple(GpuProcess(4000 + index) for _ in range(gpu.processes))
            readings.append(self.reading(lane, "nvml.processes", GpuProcesses(gpu=key, processes=held)))
        return readings

    def identity(self, index: int) -> GpuIdentity:
        return GpuIdentity(
            gpu=GpuKey(uuid(index)),
            index=index,
            pci_bus_id=PCI_SLOTS[index],
            pci_device_id=H100_SXM << 16 | 0x10DE,
            numa_node=0,
            sm_clock_max_hz=CLOCK_HZ,
            pcie_generation_max=5,
            pcie_width_max=16,
            nvlink_links=18,
            nvlink_speed_bytes_per_s=25e9,
            has_gpm=True,
        )

    def _fast(self, key: GpuKey, index: int, gpu: Gpu) -> GpuFast:
        utilization = gpu.active if gpu.utilization is None else gpu.utilization
        return GpuFast(
            gpu=key,
            utilization_ratio=utilization if gpu.has_utilization else None,
            memory_utilization_ratio=gpu.memory_utilization,
            memory_total_bytes=MEMORY_BYTES,
            memory_used_bytes=None if gpu.memory is None else round(gpu.memory * MEMORY_BYTES),
            power_w=gpu.power * 700,
            power_limit_enforced_w=700,
            sm_clock_hz=gpu.clock * CLOCK_HZ,
            clock_event_ns={
                reason: self._counter(reason, index)
                for reason in ("sw_power_cap", "sw_thermal", "hw_thermal", "hw_power_brake")
            },
            clock_events=0,
        )

    def _gpm(self, key: GpuKey, gpu: Gpu) -> GpmInterval:
        return GpmInterval(
            gpu=key,
            began_ns=self.now_ns - HALF,
            ended_ns=self.now_ns,
            graphics_ratio=gpu.active,
            sm_ratio=gpu.sm,
            tensor_ratio=gpu.tensor,
            dram_ratio=gpu.dram,
            pcie_receive_bytes_per_s=gpu.pcie_receive * PCIE_BYTES_PER_S,
            pcie_transmit_bytes_per_s=gpu.pcie_transmit * PCIE_BYTES_PER_S,
        )

    def _host_readings(self, *, slow: bool) -> list[Reading]:
        host = self.host
        readings = [
            self.reading("ib", "infiniband.fast", *self._ports(), collector="infiniband"),
            self.reading("pressure", "pressure.fast", *self._pressures(), collector="pressure"),
        ]
        if slow:
            readings.append(self.reading("host", "host.slow", NodeInfo(nodename="n", boot_id=BOOT), period_ns=10 * S))
            driver = DriverInfo(driver_version="580.95", device_count=self.count)
            readings.append(self.reading("nvml-init", "nvml.slow", driver, period_ns=10 * S))
        if host.storage:
            readings.append(self.reading("nfs", "nfs.fast", self._storage(), collector="nfs"))
        if host.tasks:
            readings.append(self.reading("jobs", "jobs.fast", self._tasks(), collector="jobs"))
        if host.host_cores is not None:
            cpu = HostCpu(seconds={"user": self._total("host_cores"), "system": 0.0, "idle": 0.0}, cpus=64)
            readings.append(self.reading("host", "host.fast", cpu, collector="host"))
        return readings

    def _ports(self) -> list[AnySample]:
        samples: list[AnySample] = []
        for index in range(self.count):
            moved = self._counter("fabric", index)
            samples.append(IbDevice(device=port(index).device, pci_bus_id=PCI_SLOTS[index], numa_node=0))
            samples.append(IbPort(port=port(index), state_id=4, physical_state_id=5, rate_bytes_per_s=PORT_BYTES_PER_S))
            samples.append(
                IbCounters(
                    port=port(index),
                    receive_bytes=moved,
                    transmit_bytes=moved,
                    transmit_wait_ticks=self._counter("fabric_wait", index),
                )
            )
        return samples

    def _pressures(self) -> list[AnySample]:
        shares: dict[PressureResource, float | None] = {
            "io": self.host.io,
            "cpu": self.host.cpu,
            "memory": self.host.memory,
        }
        return [
            Pressure(resource=resource, waiting_s=self._total(resource))
            for resource, share in shares.items()
            if share is not None
        ]

    def _storage(self) -> StorageCounters:
        return StorageCounters(
            storage=NFS,
            read_bytes=round(self._total("read")),
            write_bytes=round(self._total("write")),
            reads=round(self._total("reads")),
            read_s=self._total("outstanding"),
        )

    def _tasks(self) -> JobTasks:
        host = self.host
        return JobTasks(
            cgroup="/job",
            gpus=tuple(uuid(index) for index in range(self.count)),
            processes=self.count,
            threads=20,
            running=host.running,
            blocked=host.blocked,
            cpu_s=self._total("cores"),
            busiest_thread_cpu_s=None if host.busiest is None else host.busiest * 0.5,
            busiest_thread_wall_s=0.5,
            cpus_allowed=host.cpus,
        )

    def _gpu_rates(self, gpu: Gpu) -> dict[str, float]:
        return {
            "nvlink": gpu.nvlink * NVLINK_BYTES_PER_S,
            "fabric": gpu.fabric * PORT_BYTES_PER_S,
            "fabric_wait": gpu.fabric_wait,
            **{reason: share * S for reason, share in gpu.reasons.items()},
        }

    def _host_rates(self) -> dict[str, float]:
        host = self.host
        return {
            "io": host.io or 0.0,
            "cpu": host.cpu or 0.0,
            "memory": host.memory or 0.0,
            "read": host.read,
            "write": host.write,
            "reads": host.reads,
            "outstanding": host.outstanding,
            "cores": host.cores,
            "host_cores": host.host_cores or 0.0,
        }

    def _add(self, key: tuple[str, object], amount: float) -> None:
        self.totals[key] = self.totals.get(key, 0.0) + amount

    def _total(self, name: str) -> float:
        return self.totals.get((name, "host"), 0.0)

    def _counter(self, name: str, index: int) -> int:
        return round(self.totals.get((name, index), 0.0))


def failure(story: Story, lane: str, group: str, reason: str, collector: CollectorName = "nvml") -> Failure:
    return Failure(lane=LaneId(lane), group=GroupName(group), collector=collector, at_ns=story.now_ns, reason=reason)
