# SPDX-License-Identifier: Apache-2.0
"""All sources of the host together: over the simulated node, over this machine, and over captures of real ones."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from gpufeed.clock import SystemClock
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.fabric import IbCounters, IbErrors, IbPort
from gpufeed.model.frame import Frame
from gpufeed.model.gpu import PciGpus
from gpufeed.model.host import HostCpu, HostMemory, JobTasks, NodeInfo, Pressure
from gpufeed.model.ids import GpuUuid, LaneId
from gpufeed.model.network import NetCounters, NetEvents, NetInterface
from gpufeed.model.sample import Sample
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.units import NS_PER_S
from host_bench import HostBench

S = TypeVar("S", bound=Sample)

HOST = tuple(source for source in BUILTIN if source.name != "nvml")
GPUS = 4


def found(frame: Frame, kind: type[S]) -> list[S]:
    return [sample for reading in frame.readings for sample in reading.samples if isinstance(sample, kind)]


def storage(frame: Frame, target: str) -> StorageCounters:
    (sample,) = [one for one in found(frame, StorageCounters) if one.storage.target == target]
    return sample


@pytest.fixture
def starving(tmp_path: Path) -> Iterator[SteppedNode]:
    with SteppedNode("storage_starved", gpus=GPUS, root=tmp_path / "node", clock=SteppedClock()) as node:
        yield node


def test_every_source_reads_the_simulated_node(starving: SteppedNode) -> None:
    probe = InlineProbe(starving.config(), BUILTIN, starving.clock)
    frames = []
    for _ in range(24):
        starving.advance(NS_PER_S // 2)
        frames.append(probe.tick())
    probe.close()
    everything = {type(sample) for frame in frames for sample in found(frame, Sample)}
    assert everything >= {
        PciGpus, IbCounters, IbPort, IbErrors, NetInterface, NetCounters, NetEvents, StorageCounters, StorageInfo,
        Pressure, HostCpu, HostMemory, NodeInfo, JobTasks,
    }  # fmt: skip
    said = {status.input: status.state for frame in frames for status in frame.inputs}
    expected = dict.fromkeys(
        ("pci", "infiniband", "ethernet", "block", "nfs", "pressure", "host", "task_states"), "available"
    )
    assert said.items() >= expected.items()
    assert [failure for frame in frames for failure in frame.failures if failure.collector in expected] == []


def test_what_is_read_of_the_simulated_node_is_what_its_files_say(starving: SteppedNode, tmp_path: Path) -> None:
    probe = InlineProbe(starving.config(), HOST, starving.clock)
    starving.advance(10 * NS_PER_S)
    frame = probe.tick()
    probe.close()
    sysfs, procfs = tmp_path / "node/sys", tmp_path / "node/proc"
    for sample in found(frame, IbCounters):
        counters = sysfs / f"class/infiniband/{sample.port.device}/ports/1/counters"
        assert sample.receive_bytes == 4 * int((counters / "port_rcv_data").read_text())
        assert sample.transmit_wait_ticks == int((counters / "port_xmit_wait").read_text())
    assert len(found(frame, IbCounters)) == GPUS
    block = (procfs / "1/mountstats").read_text().split("device nas1:/export/data ")[1]
    server_read = int(next(line for line in block.splitlines() if "bytes:" in line).split()[5])
    assert storage(frame, "/data").read_bytes == server_read
    assert server_read > 0


def test_a_job_that_waits_for_storage_is_seen_in_its_threads(starving: SteppedNode) -> None:
    probe = InlineProbe(starving.config(), BUILTIN, starving.clock)
    blocked: list[int] = []
    for _ in range(40):
        starving.advance(NS_PER_S // 2)
        for sample in found(probe.tick(), JobTasks):
            assert len(sample.gpus) == 1
            assert sample.cgroup.startswith("/system.slice/slurmstepd.scope/job_")
            blocked.append(sample.blocked)
    probe.close()
    assert max(blocked) > 0


def test_a_port_that_cannot_be_read_leaves_the_others(starving: SteppedNode) -> None:
    probe = InlineProbe(starving.config(), HOST, starving.clock)
    starving.advance(NS_PER_S)
    probe.tick()
    starving.pin("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", None)
    starving.advance(NS_PER_S)
    samples = found(probe.tick(), IbCounters)
    probe.close()
    received = {sample.port.device: sample.receive_bytes for sample in samples}
    assert received.pop("mlx5_0") is None
    assert None not in received.values()


def test_one_broken_file_of_each_source_leaves_every_other_source(bench: HostBench) -> None:
    for path in ("proc/diskstats", "proc/1/mountstats", "proc/self/mountstats", "proc/pressure/io", "proc/stat"):
        bench.refuse(path)
    bench.write("proc/pressure/cpu", "some total=1\n")
    bench.write("proc/meminfo", "MemTotal: 4 kB\n")
    bench.write("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "7\n")
    bench.refuse("sys/class/infiniband/mlx5_1/ports/1/counters/port_rcv_data")
    probe = InlineProbe(bench.config, HOST, bench.clock)
    frame = probe.tick()
    probe.close()
    assert {type(sample) for sample in found(frame, Sample)} >= {Pressure, HostMemory, IbCounters, IbPort}
    assert {failure.collector for failure in frame.failures} == {"block", "nfs", "pressure", "host", "infiniband"}
    assert {failure.reason for failure in frame.failures} == {"broken"}


def real_frames(config: ProbeConfig) -> tuple[Frame, Frame]:
    """Two ticks over this machine, with this very process on the board as the holder of a GPU."""
    probe = InlineProbe(config, HOST, SystemClock())
    probe.board.gpu_pids[LaneId("gpu0")] = (GpuUuid("GPU-none"), (os.getpid(),))
    frames = probe.tick(), probe.tick()
    probe.close()
    return frames


def test_each_disk_of_this_machine_has_read_between_before_and_after(tmp_path: Path) -> None:
    def sectors_read() -> dict[str, int]:
        lines = Path("/proc/diskstats").read_text(encoding="ascii").splitlines()
        return {fields[2].replace("/", "!"): int(fields[5]) for fields in map(str.split, lines)}

    before = sectors_read()
    frame, _ = real_frames(ProbeConfig(runtime_dir=str(tmp_path)))
    after = sectors_read()
    for sample in found(frame, StorageCounters):
        if sample.storage.kind == "block":
            assert sample.read_bytes is not None
            assert before[sample.storage.target] * 512 <= sample.read_bytes <= after[sample.storage.target] * 512


def test_this_machine_says_of_every_input_whether_it_has_it(tmp_path: Path) -> None:
    frame, _ = real_frames(ProbeConfig(runtime_dir=str(tmp_path)))
    said = {status.input for status in frame.inputs}
    assert said >= {"pci", "infiniband", "block", "nfs", "pressure", "host", "task_states"}
    (cpu,) = found(frame, HostCpu)
    assert cpu.cpus == os.sysconf("SC_NPROCESSORS_ONLN")
    (memory,) = found(frame, HostMemory)
    assert memory.total_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    (node,) = found(frame, NodeInfo)
    assert node.nodename == os.uname().nodename


def test_threads_of_this_process_are_counted_on_this_machine(tmp_path: Path) -> None:
    wait = threading.Event()
    sleepers = [threading.Thread(target=wait.wait, daemon=True) for _ in range(3)]
    for sleeper in sleepers:
        sleeper.start()
    try:
        frame, _ = real_frames(ProbeConfig(runtime_dir=str(tmp_path)))
    finally:
        wait.set()
    (job,) = found(frame, JobTasks)
    assert (job.gpus, job.processes >= 1, job.threads >= 4) == ((GpuUuid("GPU-none"),), True, True)
    assert job.running >= 1  # whoever reads this runs
    assert job.cpus_allowed == len(os.sched_getaffinity(0))


def captured_roots() -> list[Path]:
    folder = os.environ.get("GPUFEED_CAPTURES")
    return sorted(path for path in Path(folder).glob("*/*") if path.is_dir()) if folder else []


@pytest.mark.skipif(not captured_roots(), reason="GPUFEED_CAPTURES names no directory with captures of real nodes")
@pytest.mark.parametrize("root", captured_roots(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_capture_of_a_real_node_is_read_without_an_unexpected_error(root: Path, tmp_path: Path) -> None:
    config = ProbeConfig(
        procfs=str(root / "proc"), sysfs=str(root / "sys"), rootfs=str(root), runtime_dir=str(tmp_path)
    )
    probe = InlineProbe(config, HOST, SteppedClock())
    frame = probe.tick()
    probe.close()
    assert [log.text for log in probe.logs() if "Traceback" in log.text] == []
    refused = {failure.detail for failure in frame.failures if "Is a directory" not in failure.detail}
    assert not refused
