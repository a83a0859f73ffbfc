# SPDX-License-Identifier: Apache-2.0
"""What lanes of the host, of storage and of network cards see, held against the same node lived again."""

from itertools import pairwise

import pytest

from gpufeed.model.fabric import IbCounters, IbErrors, IbPort
from gpufeed.model.host import HostCpu, HostMemory, JobTasks, Pressure
from gpufeed.model.jobs import Allocations, JobFiles, JobOwner, JobUsage
from gpufeed.model.network import NetCounters
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.simulate.sensors.settings import QUIET, Sensing
from simulate.sensors.looking import SECOND_NS, Seen, Twin, look, only


def counters_of(seen: Seen, kind: str, target: str) -> list[tuple[int, StorageCounters]]:
    return [
        (age, sample)
        for age, sample in seen.all_of(StorageCounters)
        if (sample.storage.kind, sample.storage.target) == (kind, target)
    ]


def of_host(twin: Twin, age_ns: int, name: str) -> float:
    return sum(gpu.host.get(name, 0.0) for gpu in twin.at(age_ns).gpus)


def test_a_mount_counts_bytes_operations_and_whole_milliseconds() -> None:
    seen = look("storage_50", only(), 20)
    twin = Twin(seen)
    for age_ns, sample in counters_of(seen, "nfs", "/data"):
        assert sample.read_bytes == int(of_host(twin, age_ns, "nfs_read_bytes"))
        assert sample.reads == int(of_host(twin, age_ns, "nfs_reads"))
        assert sample.read_s == int(1000 * of_host(twin, age_ns, "nfs_read_rtt_s")) / 1000
    assert {info.source for info in seen.list_of(StorageInfo) if info.storage.target == "/data"} == {
        "nas1:/export/data"
    }


def test_opening_files_is_an_operation_of_its_own() -> None:
    seen = look("small_files", only(), 20)
    age_ns, last = counters_of(seen, "nfs", "/data")[-1]
    assert last.operations is not None
    assert last.operation_s is not None
    twin = Twin(seen)
    assert last.operations["OPEN"] == int(of_host(twin, age_ns, "nfs_opens")) > 0
    assert last.operation_s["OPEN"] == int(1000 * of_host(twin, age_ns, "nfs_open_rtt_s")) / 1000


def test_a_neighbours_mount_and_disk_are_its_own() -> None:
    seen = look("conflicting_neighbour", only(), 20)
    age_ns, home = counters_of(seen, "nfs", "/home")[-1]
    host = Twin(seen).at(age_ns).host
    assert home.read_bytes == int(host.neighbour_total("nfs_read_bytes")) > 0
    _, disk = counters_of(seen, "block", "nvme1n1")[-1]
    assert disk.read_bytes == int(host.neighbour_total("disk_read_bytes")) // 512 * 512 > 0
    assert counters_of(seen, "block", "nvme0n1")[-1][1].read_bytes == 0


def test_a_local_disk_is_busy_while_tasks_wait_for_it() -> None:
    seen = look("disk_slow", only(), 20)
    age_ns, disk = counters_of(seen, "block", "nvme0n1")[-1]
    twin = Twin(seen)
    assert disk.read_bytes == int(of_host(twin, age_ns, "disk_read_bytes")) // 512 * 512 > 0
    assert 0.9 * age_ns / SECOND_NS < (disk.busy_s or 0.0) <= age_ns / SECOND_NS


def test_an_object_store_is_only_traffic_of_a_network_card() -> None:
    seen = look("object_store_slow", only(), 20)
    age_ns, card = list(seen.all_of(NetCounters))[-1]
    assert card.receive_bytes == int(1.02 * of_host(Twin(seen), age_ns, "object_read_bytes")) > 0
    assert counters_of(seen, "nfs", "/data")[-1][1].read_bytes == 0


@pytest.mark.parametrize("seed", range(6))
def test_gpu_direct_storage_is_counted_where_its_driver_was_told_to(seed: int) -> None:
    seen = look("gds_slow", Sensing(noise=QUIET, seed=seed), 10)
    age_ns, counted = counters_of(seen, "gds", "node")[-1]
    read_bytes = int(of_host(Twin(seen), age_ns, "gds_read_bytes")) // (1 << 20) * (1 << 20)
    assert counted.read_bytes == (read_bytes if seen.face.scene.kit.has_gds_counts else None)


def test_pressure_is_exact_to_the_microsecond() -> None:
    seen = look("storage_50", only(), 20)
    twin = Twin(seen)
    for age_ns, sample in seen.all_of(Pressure):
        node = twin.at(age_ns)
        if sample.resource == "io":
            ranks = {f"task_{gpu.site.rank}": gpu.host for gpu in node.gpus}
            truth = ranks[sample.cgroup.rpartition("/")[2]] if sample.cgroup else node.host.waiting_s
            assert sample.waiting_s == int(1e6 * truth["io_waiting_s"]) / 1e6
            assert sample.stalled_s == int(1e6 * truth["io_stalled_s"]) / 1e6


def test_processors_are_counted_in_ticks() -> None:
    seen = look("cpu_8_workers", only(), 20)
    twin = Twin(seen)
    for age_ns, sample in seen.all_of(HostCpu):
        busy_s = twin.at(age_ns).host.busy_s
        assert sample.seconds["user"] + sample.seconds["system"] == pytest.approx(busy_s, abs=0.021)
        assert sum(sample.seconds.values()) == pytest.approx(sample.cpus * age_ns / 1e9, abs=0.05)
    assert all(memory.available_bytes for memory in seen.list_of(HostMemory))


def test_states_of_tasks_are_those_of_the_moment() -> None:
    seen = look("storage_50", only(), 20)
    twin = Twin(seen)
    for age_ns, sample in seen.all_of(JobTasks):
        gpu = next(g for g in twin.at(age_ns).gpus if (g.board.uuid,) == sample.gpus)
        host = gpu.activity.host
        assert sample.blocked == host.loaders_blocked
        assert sample.running - host.loaders_running in (int(host.trainer_cpu), int(host.trainer_cpu) + 1)
        assert (sample.processes, sample.threads, sample.cpus_allowed) == (5, 7, 4)


def test_processor_time_of_tasks_is_counted_in_ticks_of_each() -> None:
    seen = look("cpu_4_workers", only(), 20)
    twin = Twin(seen)
    found = [(age, sample) for age, sample in seen.all_of(JobTasks) if sample.cgroup.endswith("task_0")]
    for age_ns, sample in found:
        assert sample.cpu_s == pytest.approx(
            twin.at(age_ns).gpus[0].host["trainer_cpu_s"] + twin.node.gpus[0].host["loader_cpu_s"], abs=0.021
        )
    # four loaders fill four processors: none of them ever rests
    shares = [(s.busiest_thread_cpu_s or 0.0) / s.busiest_thread_wall_s for _, s in found if s.busiest_thread_wall_s]
    assert sum(shares) / len(shares) == pytest.approx(1.0, abs=0.05)


def test_a_scan_misses_its_share_of_threads() -> None:
    exact, seen = look("cpu_16_workers", only(), 200), look("cpu_16_workers", only(missed_tasks=0.05), 200)
    true = sum(sample.running + sample.blocked for sample in exact.list_of(JobTasks))
    found = sum(sample.running + sample.blocked for sample in seen.list_of(JobTasks))
    assert found / true == pytest.approx(0.95, abs=0.01)
    assert all(a.cpu_s == b.cpu_s for a, b in zip(exact.list_of(JobTasks), seen.list_of(JobTasks), strict=True))


def test_ports_count_words_and_wait_in_ticks_of_their_own() -> None:
    seen = look("fabric_congested", only(wait_ticks_per_s=(2.5e8,)), 70)
    twin = Twin(seen)
    for age_ns, sample in seen.all_of(IbCounters):
        if sample.port.device == "mlx5_0":
            assert sample.receive_bytes == int(twin.total(age_ns, "ib_receive_bytes")) // 4 * 4
            assert sample.transmit_wait_ticks == int(twin.total(age_ns, "ib_waiting_s") * 2.5e8)


def test_narrow_counters_of_waiting_stop_at_their_end() -> None:
    seen = look("fabric_congested", only(narrow_ports=1.0), 90)
    last = seen.list_of(IbCounters)[-1]
    assert last.transmit_wait_ticks == (1 << 32) - 1


def test_narrow_counters_of_errors_stop_at_their_end_and_say_so() -> None:
    narrow, wide = (look("roce_loss", only(narrow_ports=share), 300).list_of(IbErrors)[-1] for share in (1.0, 0.0))
    assert narrow.errors["port_xmit_discards"] == 65_535
    assert narrow.saturated == ("port_xmit_discards",)
    assert wide.errors["port_xmit_discards"] == wide.hw_events["out_of_sequence"] > 65_535
    assert wide.saturated == ()


def test_a_port_that_came_up_slower_and_lost_packets_show() -> None:
    slow = look("fabric_half_rate", only(), 75, gpus=4)
    assert {port.rate_bytes_per_s for port in slow.list_of(IbPort) if port.port.device == "mlx5_2"} == {50e9, 25e9}
    lossy = look("roce_loss", only(), 90)
    assert lossy.list_of(IbErrors)[-1].hw_events["out_of_sequence"] > 1000


def test_jobs_have_owners_usage_files_and_gpus_of_their_own() -> None:
    seen = look("two_jobs", only(), 15, gpus=4)
    assert {owner.job_id for owner in seen.list_of(JobOwner)} == {"4242", "4243"}
    assert len({owner.cgroup for owner in seen.list_of(JobOwner)}) == 4
    assert {usage.job_id for usage in seen.list_of(JobUsage)} == {"4242", "4243"}
    mounts = {files.cgroup.split("/")[3]: files.mounts[0][1] for files in seen.list_of(JobFiles)}
    assert mounts == {"job_4242": "nas1:/export/data", "job_4243": "nas2:/export/data"}
    given = seen.list_of(Allocations)[-1]
    assert [len(allocation.uuids) for allocation in given.jobs] == [2, 2]


def test_pressure_of_a_job_in_one_cgroup_holds_while_any_rank_waits() -> None:
    seen = look("storage_50", Sensing(noise=QUIET, placement="job"), 20)
    assert {len(tasks.gpus) for tasks in seen.list_of(JobTasks)} == {2}
    twin = Twin(seen)
    for age_ns, sample in seen.all_of(Pressure):
        if sample.cgroup and sample.resource == "io":
            each = [gpu.host["io_waiting_s"] for gpu in twin.at(age_ns).gpus]
            assert max(each) - 1e-6 <= (sample.waiting_s or 0.0) <= sum(each)


def test_counters_never_fall_without_resets() -> None:
    seen = look("storage_bursts", only(), 60)
    for (_, before), (_, after) in pairwise(counters_of(seen, "nfs", "/data")):
        assert (before.read_bytes or 0) <= (after.read_bytes or 0)
        assert (before.read_s or 0.0) <= (after.read_s or 0.0)
