# SPDX-License-Identifier: Apache-2.0
"""A judged node through the simulated driver and the files, read by the real sources, against the node itself."""

from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import pytest

from gpufeed.model.fabric import IbCounters
from gpufeed.model.frame import Frame
from gpufeed.model.gpu import GpmInterval, GpuFast, GpuProcesses, GpuSlow, NvlinkTotals, PcieBytes
from gpufeed.model.host import HostCpu, JobTasks, Pressure
from gpufeed.model.sample import Sample
from gpufeed.model.storage import StorageCounters
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.pipeline.node import JudgedNode
from gpufeed.simulate.pipeline.scenarios import JUDGED
from gpufeed.simulate.pipeline.track import POSITION
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN

S = 1_000_000_000
TICK_NS = S // 2
GPUS = 2


class Sums(NamedTuple):
    """What was true of the first GPU and the host at an age."""

    gpu: list[float]
    hosts: list[dict[str, float]]  # by GPU
    node: JudgedNode

    def of(self, name: str) -> float:
        return self.gpu[POSITION[name]]

    def all_ranks(self, name: str) -> float:
        return sum(host.get(name, 0.0) for host in self.hosts)


def lived(scenario: str, root: Path, seconds: int) -> Iterator[tuple[Frame, Sums, Sums]]:
    """Frames of a whole probe, with what was true at the tick before and at theirs."""
    clock = SteppedClock()
    twin = JudgedNode(scenario, "h100", GPUS, seed=0)
    before = truth(twin)
    with SteppedNode(scenario, "h100", GPUS, root=root, clock=clock) as shown:
        probe = InlineProbe(shown.config(), BUILTIN, clock, shown.is_blocked)
        for _ in range(2 * seconds):
            now = truth(twin)
            yield probe.tick(), before, now
            before = now
            shown.advance(TICK_NS)
            twin.advance(TICK_NS)
        probe.close()


def truth(node: JudgedNode) -> Sums:
    return Sums(node.gpus[0].integrals, [gpu.host for gpu in node.gpus], node)


def of_first(frame: Frame, kind: type[Sample], uuid: str) -> Iterator[Sample]:
    for reading in frame.readings:
        for sample in reading.samples:
            if isinstance(sample, kind) and getattr(getattr(sample, "gpu", None), "uuid", uuid) == uuid:
                yield sample


Said = Callable[[Sample], float | None]
True_ = Callable[[Sums, Sums], float]


class Sensor(NamedTuple):
    """Where a sensor has something to show, what is read of it, and what was true."""

    scenario: str
    kind: type[Sample]
    said: Said
    true: True_
    off: float  # at most, of its unit: what it rounds to
    is_whole: Callable[[Sample], bool] = lambda _sample: True
    is_since_boot: bool = False  # what it had counted before the node began to live is left out


def field(name: str) -> Said:
    return attrgetter(name)


def total(name: str) -> True_:
    return lambda _before, now: now.of(name)


def mean(name: str) -> True_:
    return lambda before, now: (now.of(name) - before.of(name)) * S / TICK_NS


def ranks(name: str) -> True_:
    return lambda _before, now: now.all_ranks(name)


def is_of(kind: str, target: str) -> Callable[[Sample], bool]:
    return lambda sample: (
        isinstance(sample, StorageCounters) and (sample.storage.kind == kind and sample.storage.target.endswith(target))
    )


def is_of_node(resource: str) -> Callable[[Sample], bool]:
    return lambda sample: isinstance(sample, Pressure) and (sample.resource, sample.cgroup) == (resource, "")


def is_first_port(sample: Sample) -> bool:
    return isinstance(sample, IbCounters) and sample.port.device == "mlx5_0"


def is_first_task(sample: Sample) -> bool:
    return isinstance(sample, JobTasks) and sample.cgroup.endswith("task_0")


def busy_s(sample: Sample) -> float:
    assert isinstance(sample, HostCpu)
    return sample.seconds["user"] + sample.seconds["system"]


SENSORS = {
    **{
        f"GPM {name}": Sensor("exposed_exchange", GpmInterval, field(f"{name}_ratio"), mean(f"{name}_s"), 1e-6)
        for name in ("graphics", "sm", "occupancy", "tensor", "dram")
    },
    "utilization": Sensor("storage_50", GpuFast, field("utilization_ratio"), mean("graphics_s"), 0.0051),
    "energy": Sensor("storage_50", GpuFast, field("energy_j"), total("energy_j"), 0.0011),
    "power of the moment": Sensor(
        "storage_50", GpuFast, field("power_instant_w"), lambda _, now: now.node.gpus[0].levels.power_w, 0.001
    ),
    "clock": Sensor(
        "thermal_slowdown", GpuFast, field("sm_clock_hz"), lambda _, now: now.node.gpus[0].levels.sm_clock_mhz * 1e6,
        1.0,
    ),
    "memory used": Sensor(
        "storage_50", GpuFast, field("memory_used_bytes"),
        lambda _, now: now.node.gpus[0].levels.memory_used_bytes, 4096.0,
    ),
    "holders": Sensor(
        "storage_50", GpuProcesses, lambda sample: len(getattr(sample, "processes", ())), lambda _before, _now: 1.0, 0.0
    ),
    "lanes": Sensor("pcie_x8", GpuSlow, field("pcie_width"), lambda _before, _now: 8.0, 0.0),
    "NVLink": Sensor(
        "exposed_exchange", NvlinkTotals, field("receive_bytes"), total("nvlink_receive_bytes"), 18 * 1024.0
    ),
    "PCIe": Sensor(
        "storage_50", PcieBytes, field("receive_bytes"),
        lambda _, now: int(now.of("pcie_receive_bytes")) % (1 << 32), 1024.0,
    ),
    "fabric bytes": Sensor(
        "exposed_exchange", IbCounters, field("receive_bytes"), total("ib_receive_bytes"), 8.0, is_first_port, True,
    ),
    "mount": Sensor(
        "storage_50", StorageCounters, field("read_bytes"), ranks("nfs_read_bytes"), 1.0, is_of("nfs", "data")
    ),
    "round trips": Sensor(
        "storage_50", StorageCounters, field("read_s"), ranks("nfs_read_rtt_s"), 0.0011, is_of("nfs", "data")
    ),
    "disk": Sensor(
        "disk_slow", StorageCounters, field("read_bytes"), ranks("disk_read_bytes"), 512.0, is_of("block", "nvme0n1")
    ),
    "pressure on input": Sensor(
        "storage_50", Pressure, field("waiting_s"), lambda _, now: now.node.host.waiting_s["io_waiting_s"], 1.1e-6,
        is_of_node("io"),
    ),
    "pressure on processors": Sensor(
        "cpu_8_workers", Pressure, field("waiting_s"), lambda _, now: now.node.host.waiting_s["cpu_waiting_s"], 1.1e-6,
        is_of_node("cpu"),
    ),
    "processors": Sensor(
        "cpu_8_workers", HostCpu, busy_s, lambda _, now: now.node.host.busy_s, 0.021,
    ),
    "blocked loaders": Sensor(
        "storage_50", JobTasks, field("blocked"), lambda _, now: now.node.gpus[0].activity.host.loaders_blocked, 0.0,
        is_first_task,
    ),
    "loaders": Sensor("cpu_8_workers", JobTasks, field("processes"), lambda _before, _now: 9.0, 0.0, is_first_task),
}  # fmt: skip


@pytest.mark.parametrize("name", SENSORS)
def test_what_the_real_sources_read_is_what_was_true(name: str, tmp_path: Path) -> None:
    sensor = SENSORS[name]
    found: list[tuple[float, float]] = []
    for frame, before, now in lived(sensor.scenario, tmp_path, 75 if sensor.scenario == "thermal_slowdown" else 12):
        for sample in of_first(frame, sensor.kind, now.node.gpus[0].board.uuid):
            said = sensor.said(sample) if sensor.is_whole(sample) else None
            if said is not None:
                found.append((said, sensor.true(before, now)))
    assert found
    if sensor.is_since_boot:
        found = [(said - found[0][0], true - found[0][1]) for said, true in found]
    assert [said for said, _ in found] == pytest.approx([true for _, true in found], rel=1e-6, abs=sensor.off)
    assert any(true for _, true in found)


@pytest.mark.parametrize("name", sorted(JUDGED))
def test_every_judged_scenario_shows_through_both_faces(name: str, tmp_path: Path) -> None:
    last: Frame | None = None
    for frame, _, now in lived(name, tmp_path, 1):
        last, age_ns = frame, now.node.age_ns
    assert last is not None
    kinds = {type(sample) for reading in last.readings for sample in reading.samples}
    assert {GpuFast, GpmInterval, NvlinkTotals, IbCounters, HostCpu, Pressure} <= kinds
    assert age_ns == TICK_NS
