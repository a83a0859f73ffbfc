# SPDX-License-Identifier: Apache-2.0
"""The trees, read as a person would read them: formats of a kernel, numbers of the truth."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gpufeed.simulate.hardware import H100
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.simulate.trees.writer import TreeWriter

S = 1_000_000_000
Enter = Callable[..., SteppedNode]


@pytest.fixture
def see(enter: Enter) -> Callable[..., SteppedNode]:
    def make(scenario: str, gpus: int = 2, **options: object) -> SteppedNode:
        return enter(scenario, gpus=gpus, keeps_trees=True, **options)

    return make


def numbers(path: Path) -> dict[str, int]:
    """A pressure file's totals by the first word of their line."""
    return {line.split()[0]: int(line.rpartition("=")[2]) for line in path.read_text().splitlines()}


def stat(path: Path) -> tuple[str, str, int, int]:
    """Name, state, parent and ticks of a /proc/PID/stat line."""
    name, _, rest = path.read_text().partition("(")[2].rpartition(")")
    fields = rest.split()
    assert len(fields) == 50
    return name, fields[0], int(fields[1]), int(fields[11]) + int(fields[12])


def test_infiniband_counts_words_of_what_the_truth_moved(see: Enter, tmp_path: Path) -> None:
    node = see("fabric_bound")
    port = tmp_path / "sys/class/infiniband/mlx5_1/ports/1"
    before = int((port / "counters/port_xmit_data").read_text())
    node.advance(10 * S)
    words = int((port / "counters/port_xmit_data").read_text()) - before
    assert words * 4 == pytest.approx(10 * (0.4 * 0.06 + 0.6 * 0.93) * 50e9, abs=8)
    assert int((port / "counters/port_xmit_wait").read_text()) == pytest.approx(10 * 0.6 * 0.4 * 1e6, abs=2)


def test_an_infiniband_port_looks_like_one(see: Enter, tmp_path: Path) -> None:
    see("healthy")
    device = tmp_path / "sys/class/infiniband/mlx5_1"
    port = device / "ports/1"
    assert (port / "state").read_text() == "4: ACTIVE\n"
    assert (port / "phys_state").read_text() == "5: LinkUp\n"
    assert (port / "rate").read_text() == "400 Gb/sec (4X NDR)\n"
    assert (port / "link_layer").read_text() == "InfiniBand\n"
    assert (port / "gid_attrs/ndevs/0").read_text().strip() in os.listdir(tmp_path / "sys/class/net")  # noqa: PTH208
    assert len(list((port / "counters").iterdir())) == 21
    assert (port / "hw_counters/lifespan").read_text() == "10\n"
    assert (device / "device").resolve().name == "0000:40:00.0"
    assert (device / "device/numa_node").read_text() == "1\n"


def test_a_port_that_goes_down_is_polling(see: Enter, tmp_path: Path) -> None:
    node = see("ib_port_down")
    port = tmp_path / "sys/class/infiniband/mlx5_1/ports/1"
    downs = int((port / "counters/link_downed").read_text())
    node.advance(11 * S)
    assert (port / "state").read_text() == "1: DOWN\n"
    assert (port / "phys_state").read_text() == "2: Polling\n"
    assert int((port / "counters/link_downed").read_text()) == downs + 1
    assert (port.parents[1] / "device/net/ibp64s0/operstate").read_text() == "down\n"


def test_pci_shows_gpus_below_the_switch_of_their_card_and_other_devices_of_the_vendor(
    see: Enter, tmp_path: Path
) -> None:
    see("healthy")
    devices = tmp_path / "sys/bus/pci/devices"
    gpus = [
        path.name
        for path in devices.iterdir()
        if (path / "vendor").read_text() == "0x10de\n" and (path / "class").read_text() == "0x030200\n"
    ]
    assert sorted(gpus) == ["0000:1b:00.0", "0000:43:00.0"]
    assert (devices / "0000:1b:00.0/device").read_text() == "0x2330\n"
    assert sum((path / "vendor").read_text() == "0x10de\n" for path in devices.iterdir()) == 2 + 4
    gpu, card = ((devices / name).resolve() for name in ("0000:1b:00.0", "0000:18:00.0"))
    assert gpu.parents[1] == card.parents[1]


def test_no_link_leads_nowhere(see: Enter, tmp_path: Path) -> None:
    see("healthy", gpus=16)
    links = [path for path in tmp_path.rglob("*") if path.is_symlink() and path.parent.name not in {"fd", "ns"}]
    assert len(links) > 16 * 4
    assert [path for path in links if not path.exists()] == []


def test_nfs_counts_reads_and_their_time(see: Enter, tmp_path: Path) -> None:
    node = see("storage_starved")
    node.advance(80 * S)
    text = (tmp_path / "proc/self/mountstats").read_text()
    assert text == (tmp_path / "proc/1/mountstats").read_text()
    [block] = [part for part in text.split("device ") if part.startswith("nas1:/export/data mounted on /data ")]
    assert "with fstype nfs4 statvers=1.1\n" in block
    assert "RPC iostats version: 1.1  p/v: 100003/4 (nfs)" in block
    server_read = int(re.search(r"bytes:\t(.*)", block)[1].split()[4])  # type: ignore[index]  # the line is there
    ops, _, timeouts, _, received, queue_ms, rtt_ms, execute_ms, errors = (
        int(value)
        for value in re.search(r" READ: (.*)", block)[1].split()  # type: ignore[index]
    )
    assert server_read == pytest.approx(80 * 2 * 150e6)
    assert ops == int(80 * 2 * 150e6 / 1024**2)
    assert rtt_ms / ops == pytest.approx(16.0, rel=1e-3)
    assert queue_ms / ops == pytest.approx(4.0, rel=1e-3)
    assert execute_ms == queue_ms + rtt_ms
    assert received > server_read
    assert (timeouts, errors) == (0, 0)
    assert len(re.findall(r"xprt:\ttcp", block)) == 4


def test_one_superblock_is_mounted_twice_and_counts_the_same(see: Enter, tmp_path: Path) -> None:
    node = see("healthy")
    node.advance(10 * S)
    blocks = (tmp_path / "proc/self/mountstats").read_text().split("device ")
    once, again, home = [part.partition("\n")[2] for part in blocks if "fstype nfs4 " in part]
    assert once == again != home
    mounts = [line.split() for line in (tmp_path / "proc/self/mountinfo").read_text().splitlines() if " nfs4 " in line]
    assert [fields[2] for fields in mounts] == ["0:51", "0:51", "0:52"]
    assert mounts[1][4] == "/srv/jobs/data\\040set"


def test_pressure_totals_are_microseconds_of_waiting(see: Enter, tmp_path: Path) -> None:
    node = see("storage_starved")
    node.advance(8 * S)
    assert numbers(tmp_path / "proc/pressure/io") == {
        "some": pytest.approx(8 * 0.95e6, abs=2),
        "full": pytest.approx(3 * 0.1e6 + 5 * 0.6e6, abs=2),
    }
    assert numbers(tmp_path / "proc/pressure/cpu")["full"] == 0
    rank = tmp_path / "sys/fs/cgroup/system.slice/slurmstepd.scope/job_4242/step_0/user/task_1"
    assert numbers(rank / "io.pressure")["some"] == numbers(tmp_path / "proc/pressure/io")["some"]


@pytest.mark.parametrize("scenario", ["healthy", "storage_starved", "host_cpu_starved", "idle_free"])
def test_processor_ticks_add_up_to_the_time_that_passed(see: Enter, tmp_path: Path, scenario: str) -> None:
    node = see(scenario)

    def ticks() -> tuple[int, list[int]]:
        lines = (tmp_path / "proc/stat").read_text().splitlines()
        cpus = [line.split() for line in lines if re.match(r"cpu\d", line)]
        return len(cpus), [int(value) for value in lines[0].split()[1:]]

    cpus, before = ticks()
    node.advance(60 * S)
    _, after = ticks()
    assert cpus == 8
    assert sum(after) - sum(before) == pytest.approx(60 * 100 * cpus, abs=5)
    assert all(b >= a for a, b in zip(before, after, strict=True))
    idle = (after[3] - before[3]) / (60 * 100 * cpus)
    assert idle < 0.05 if scenario in ("storage_starved", "host_cpu_starved") else idle > 0.4


def test_disks_count_sectors_and_partitions_repeat_their_disk(see: Enter, tmp_path: Path) -> None:
    node = see("healthy")
    node.advance(100 * S)
    lines = {fields[2]: fields[3:] for fields in map(str.split, (tmp_path / "proc/diskstats").read_text().splitlines())}
    assert {len(fields) for fields in lines.values()} == {17}
    assert int(lines["nvme0n1"][2]) * 512 == pytest.approx(100 * 2 * 2e6, abs=512)
    assert int(lines["nvme0n1"][6]) * 512 == pytest.approx(100 * 2 * 5e6, abs=512)
    assert lines["nvme0n1"] == lines["nvme0n1p1"] == lines["dm-0"]
    assert set(lines["nvme1n1"]) == {"0"}
    block = tmp_path / "sys/block"
    assert (block / "nvme0n1/stat").read_text().split() == lines["nvme0n1"]
    assert [path.name for path in (block / "dm-0/slaves").iterdir()] == ["nvme0n1"]
    assert not (block / "nvme0n1p1").exists()


def test_the_storage_network_carries_what_nfs_reads(see: Enter, tmp_path: Path) -> None:
    node = see("healthy")
    node.advance(10 * S)
    received = int((tmp_path / "sys/class/net/enp13s0np0/statistics/rx_bytes").read_text())
    assert received == pytest.approx(10 * 2 * 400e6 * 1.02)
    assert (tmp_path / "sys/class/net/lo/type").read_text() == "772\n"
    assert (tmp_path / "sys/class/net/enp13s0np0/speed").read_text() == "200000\n"


def test_loaders_are_children_of_the_trainer_and_sleep_in_the_kernel(see: Enter, tmp_path: Path) -> None:
    node = see("storage_starved")
    node.advance(int(2.0 * S))  # 0.4 s into a cycle: waiting
    proc = tmp_path / "proc"
    loaders = (proc / "4010/task/4010/children").read_text().split()
    assert [stat(proc / f"{loader}/stat")[:3] for loader in loaders] == [("pt_data_worker", "D", 4010)] * 4
    assert stat(proc / "4010/stat")[1] == "S"
    assert (proc / "4010/status").read_text().count("Threads:\t3\n") == 1
    assert sorted(path.name for path in (proc / "4010/task").iterdir()) == ["4010", "4015", "4016"]
    assert "Cpus_allowed_list:\t4-7\n" in (proc / "4010/status").read_text()
    assert "Cpus_allowed:\tf0\n" in (proc / "4010/status").read_text()
    assert (proc / "4011/cgroup").read_text().endswith("/job_4242/step_0/user/task_1\n")
    node.advance(int(0.45 * S))  # 0.05 s into the next: computing
    assert stat(proc / "4010/stat")[1] == "R"


def test_a_process_uses_the_processor_time_of_its_threads(see: Enter, tmp_path: Path) -> None:
    node = see("host_cpu_starved")
    node.advance(80 * S)
    assert stat(tmp_path / "proc/4001/stat")[3] == int(80 * 0.97 * 100)
    assert stat(tmp_path / "proc/4000/stat")[3] == stat(tmp_path / "proc/4000/task/4000/stat")[3]


def test_processors_beyond_32_are_further_words(see: Enter, tmp_path: Path) -> None:
    see("healthy", gpus=16)
    assert "Cpus_allowed:\t00f00000,00000000\n" in (tmp_path / "proc/4130/status").read_text()


def test_a_rank_whose_gpu_is_lost_is_gone(see: Enter, tmp_path: Path) -> None:
    node = see("gpu_lost")
    assert (tmp_path / "proc/4011/stat").exists()
    node.advance(11 * S)
    assert not (tmp_path / "proc/4010").exists()
    assert not (tmp_path / "proc/4011").exists()
    step = tmp_path / "sys/fs/cgroup/system.slice/slurmstepd.scope/job_4242/step_0/user"
    assert [path.name for path in step.iterdir()] == ["task_0"]
    assert (step / "task_0/cgroup.procs").read_text().split() == ["4000", "4001", "4002", "4003", "4004"]


def test_nobody_is_there_on_a_free_node(see: Enter, tmp_path: Path) -> None:
    see("idle_free")
    assert sorted(path.name for path in (tmp_path / "proc").iterdir() if path.name.isdigit()) == ["1"]


def test_the_node_has_a_name_and_a_driver_once_it_is_loaded(see: Enter, tmp_path: Path) -> None:
    node = see("driver_absent_then_present")
    assert (tmp_path / "proc/sys/kernel/hostname").read_text() == "simulated-node\n"
    assert len((tmp_path / "etc/machine-id").read_text()) == 33
    assert (tmp_path / "sys/class/dmi/id/product_name").read_text() == f"{H100.host_product}\n"
    assert not (tmp_path / "proc/driver/nvidia/version").exists()
    node.advance(15 * S)
    assert "570.124.06" in (tmp_path / "proc/driver/nvidia/version").read_text()


def test_memory_is_less_where_a_job_runs(see: Enter, tmp_path: Path) -> None:
    see("healthy")
    values = dict(
        line.rstrip(" kB").split(":") for line in (tmp_path / "proc/meminfo").read_text().splitlines() if "kB" in line
    )
    assert int(values["MemTotal"]) - int(values["MemAvailable"]) == 40_000_000 + 2 * 30_000_000


def test_files_keep_their_inode_and_only_what_changed_is_written(see: Enter, tmp_path: Path) -> None:
    node = see("healthy")
    counter, quiet = (
        tmp_path / "sys/class/infiniband/mlx5_0/ports/1/counters" / name for name in ("port_rcv_data", "symbol_error")
    )
    before = counter.stat().st_ino, quiet.stat()
    node.advance(1 * S)
    assert counter.stat().st_ino == before[0]
    assert quiet.stat() == before[1]


def test_a_pinned_file_holds_what_it_was_told_until_it_is_let_go(see: Enter, tmp_path: Path) -> None:
    node = see("healthy")
    for name in ("state", "rate", "counters/port_rcv_data"):
        path = f"sys/class/infiniband/mlx5_0/ports/1/{name}"
        before = (tmp_path / path).read_text()
        node.pin(path, "x\n")
        node.advance(1 * S)
        assert (tmp_path / path).read_text() == "x\n"
        node.unpin(path)
        assert (tmp_path / path).read_text()[:3] == before[:3]
        node.pin(path, None)
        node.advance(1 * S)
        with pytest.raises(IsADirectoryError):
            (tmp_path / path).read_text()
        node.unpin(path)
        assert (tmp_path / path).read_text()[:3] == before[:3]


def test_a_file_that_was_not_there_is_gone_when_it_is_let_go(tmp_path: Path) -> None:
    tree = TreeWriter(tmp_path)
    tree.pin("sys/new", None)
    assert (tmp_path / "sys/new").is_dir()
    tree.unpin("sys/new")
    assert not (tmp_path / "sys/new").exists()
    tree.write("sys/new", "longer\n")
    tree.write("sys/new", "short\n")
    assert (tmp_path / "sys/new").read_text() == "short\n"
