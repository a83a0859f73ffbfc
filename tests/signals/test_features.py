# SPDX-License-Identifier: Apache-2.0
"""What a GPU, its ports and its job's host side did in an interval, from readings told in frames."""

from dataclasses import replace

import pytest

from gpufeed.model.fabric import IbPort
from gpufeed.model.frame import Frame
from gpufeed.model.gpu import GpuFast, GpuIdentity, GpuSlow, NvlinkTotals
from gpufeed.model.host import JobTasks, Pressure
from gpufeed.model.ids import GpuKey, GpuUuid, IbPortKey, StorageKey
from gpufeed.model.storage import StorageCounters
from gpufeed.signals.affinity import ports_of
from gpufeed.signals.baselines import Baselines, Learned
from gpufeed.signals.features import GpuFeatures, features
from gpufeed.signals.jobs import jobs_of, peers_of
from gpufeed.signals.pipeline import Pipeline, pipeline
from gpufeed.signals.settings import Capacity, Settings
from gpufeed.signals.view import View
from gpufeed.step import step
from signals.story import COMPUTING, FREE, NFS, PORT_BYTES_PER_S, WAITING, Gpu, Host, S, Story, port, uuid


def view(story: Story, settings: Settings | None = None, baselines: Baselines | None = None) -> View:
    return View(
        timelines=story.node.memory.timelines,
        samples=story.node.state.samples,
        records=story.node.state.gpus,
        baselines=baselines or story.node.memory.baselines,
        settings=settings or Settings(),
    )


def told(gpu: Gpu, host: Host | None = None, baselines: Baselines | None = None, index: int = 0) -> GpuFeatures:
    story = Story()
    story.run(5, gpu, host)
    found = features(GpuKey(uuid(index)), view(story, baselines=baselines), story.now_ns - 2 * S, story.now_ns - S)
    assert found is not None
    return found


def host_side(host: Host, settings: Settings | None = None, baselines: Baselines | None = None) -> Pipeline:
    story = Story()
    story.run(5, WAITING, host)
    return pipeline(uuid(0), view(story, settings, baselines), story.now_ns - 2 * S, story.now_ns - S)


def test_ratios_are_of_what_the_board_could_do() -> None:
    found = told(replace(COMPUTING, nvlink=0.5, fabric=0.25, pcie_receive=0.6, power=0.55))
    assert found.has_gpm
    assert (found.active, found.sm, found.tensor, found.dram) == (1.0, 0.9, 0.5, 0.4)
    assert found.nvlink == pytest.approx(0.5)
    assert found.fabric == pytest.approx(0.25)
    assert found.pcie_receive == pytest.approx(0.6, rel=0.02)
    assert found.clock_lowest == pytest.approx(0.93)
    assert found.power is None  # GPM says more
    assert (found.is_held, found.has_peers) == (True, True)


def test_without_gpm_power_counts_between_idle_and_limit() -> None:
    spin = replace(COMPUTING, has_gpm=False, power=0.55)
    assert told(spin).power == pytest.approx(0.5)  # idle: a tenth of the limit, until learned
    learned = Baselines({("power_idle", uuid(0)): Learned(70 * 5.0, 1_000.0)})
    assert told(spin, baselines=learned).power == pytest.approx((385 - 350) / 350)


def test_power_without_a_limit_says_nothing() -> None:
    story = Story()
    story.run(5, replace(COMPUTING, has_gpm=False))
    bare = GpuFast(gpu=GpuKey(uuid(0)), utilization_ratio=1.0, power_w=300.0)
    for _ in range(20):
        story.pass_time(S)
        reading = story.reading("gpu0", "nvml.fast", bare)
        story.node = step(story.node, Frame(sequence=9, time=story.time, readings=(reading,), probe_pid=7))
    found = features(GpuKey(uuid(0)), view(story), story.now_ns - 2 * S, story.now_ns - S)
    assert found is not None
    assert found.power is None


def test_nothing_is_known_without_a_reading_of_activity() -> None:
    story = Story()
    story.run(5, replace(COMPUTING, has_gpm=False, has_utilization=False))
    assert features(GpuKey(uuid(0)), view(story), story.now_ns - 2 * S, story.now_ns - S) is None


def test_a_board_nobody_knows_has_no_ratios_but_its_own() -> None:
    story = Story()
    story.run(5)
    nameless = replace(view(story), records={})
    found = features(GpuKey(uuid(0)), nameless, story.now_ns - 2 * S, story.now_ns - S)
    assert found is not None
    assert (found.nvlink, found.clock_lowest) == (None, None)
    assert found.has_nvlink


def test_a_link_that_is_down_is_seen_and_a_bridge_that_is_absent_is_not() -> None:
    assert told(replace(COMPUTING, links_up=17)).is_nvlink_degraded
    assert not told(replace(COMPUTING, links_up=0)).is_nvlink_degraded
    assert not told(replace(COMPUTING, links=0, links_up=0)).has_nvlink


def test_links_come_from_the_identity_where_the_totals_do_not_say() -> None:
    story = Story()
    story.run(5)
    totals = NvlinkTotals(gpu=GpuKey(uuid(0)), receive_bytes=1, transmit_bytes=1)
    reading = story.reading("gpu0", "nvlink.fast", totals)
    story.node = step(story.node, Frame(sequence=9, time=story.time, readings=(reading,), probe_pid=7))
    found = features(GpuKey(uuid(0)), view(story), story.now_ns - 2 * S, story.now_ns - S)
    assert found is not None
    assert found.has_nvlink


def test_a_copy_is_measured_by_the_link_as_it_is_now() -> None:
    story = Story()
    story.run(5, replace(COMPUTING, pcie_receive=0.2))
    slow = GpuSlow(gpu=GpuKey(uuid(0)), pcie_generation=5, pcie_width=4)
    reading = story.reading("gpu0", "nvml.slow", slow, period_ns=10 * S)
    story.node = step(story.node, Frame(sequence=9, time=story.time, readings=(reading,), probe_pid=7))
    found = features(GpuKey(uuid(0)), view(story), story.now_ns - 2 * S, story.now_ns - S)
    assert found is not None
    assert found.pcie_receive == pytest.approx(0.8, rel=0.02)


def test_congestion_is_three_times_the_usual_wait_for_a_byte() -> None:
    usual = Baselines({("wait_per_byte", "mlx5_0/1"): Learned(0.001, 1_000.0)})
    waiting = replace(COMPUTING, fabric=0.5, fabric_wait=0.004 * 0.5 * PORT_BYTES_PER_S)
    assert told(waiting, baselines=usual).is_fabric_congested
    assert not told(replace(waiting, fabric_wait=1e6), baselines=usual).is_fabric_congested
    assert not told(waiting).is_fabric_congested


def test_a_board_is_free_or_held() -> None:
    assert told(FREE, Host(tasks=False)).is_held is False
    assert told(replace(FREE, processes=1), Host(tasks=False)).is_held is True
    assert told(replace(FREE, processes=None, memory=None), Host(tasks=False)).is_held is None


def test_pipes_that_work_without_a_kernel_contradict_it() -> None:
    assert told(replace(COMPUTING, active=0.1)).is_contradictory
    assert not told(COMPUTING).is_contradictory
    assert replace(told(COMPUTING), active=0.0).per_active(0.5) == 0.0


def test_a_peer_at_full_work_is_seen_by_one_that_is_not() -> None:
    story = Story()
    story.run(5, replace(COMPUTING, sm=0.3, tensor=0.1), others=COMPUTING)
    now = view(story)
    waiting, computing = (features(GpuKey(uuid(i)), now, story.now_ns - 2 * S, story.now_ns - S) for i in (0, 1))
    assert waiting is not None
    assert computing is not None
    assert waiting.peer_sm == pytest.approx(0.9)
    assert computing.peer_sm is None
    story.run(5, replace(COMPUTING, sm=0.3), others=WAITING)
    alone = features(GpuKey(uuid(0)), view(story), story.now_ns - 2 * S, story.now_ns - S)
    assert alone is not None
    assert alone.peer_sm is None


# ports and peers


def test_ports_are_wired_one_to_one_where_there_are_as_many_as_gpus() -> None:
    story = Story()
    story.run(2)
    assert [limit.port for limit in ports_of(uuid(1), view(story))] == [port(1)]


def ib(story: Story, *ports: IbPort) -> View:
    reading = story.reading("ib", "infiniband.fast", *ports, collector="infiniband")
    story.node = step(story.node, Frame(sequence=9, time=story.time, readings=(reading,), probe_pid=7))
    return view(story)


def test_otherwise_all_ports_or_those_of_the_same_numa_node() -> None:
    story = Story()
    story.run(2)
    extra = [IbPort(port=port(i), state_id=4, rate_bytes_per_s=PORT_BYTES_PER_S) for i in range(2)]
    third = IbPort(port=IbPortKey("mlx5_9", 1), state_id=4, rate_bytes_per_s=PORT_BYTES_PER_S)
    now = ib(story, *extra, third)
    assert {limit.port for limit in ports_of(uuid(0), now)} == {port(0), port(1), third.port}
    assert ports_of(GpuUuid("GPU-?"), now) == ports_of(uuid(0), now)
    assert ports_of(uuid(0), replace(now, samples={}, _known={})) == ()


def test_ports_of_the_same_numa_node_come_before_all() -> None:
    story = Story(gpus=4)
    story.run(2)
    now = view(story)
    far = {
        key: replace(record, identity=GpuIdentity(gpu=GpuKey(key), index=0, numa_node=0))
        for key, record in now.records.items()
    }
    assert len(ports_of(uuid(0), replace(now, records=far))) == 4  # no addresses to order by: all of node 0
    farther = {key: replace(record, identity=GpuIdentity(gpu=GpuKey(key), index=0)) for key, record in far.items()}
    assert len(ports_of(uuid(0), replace(now, records=farther, _known={}))) == 4


def test_a_port_that_is_down_or_slower_than_its_neighbours_is_degraded() -> None:
    story = Story()
    story.run(2)
    down = IbPort(port=port(0), state_id=1, rate_bytes_per_s=PORT_BYTES_PER_S)
    slow = IbPort(port=port(1), state_id=4, rate_bytes_per_s=PORT_BYTES_PER_S / 4)
    now = ib(story, down, slow, IbPort(port=IbPortKey("mgmt", 1), is_fabric=False))
    assert [limit.is_degraded for limit in (*ports_of(uuid(0), now), *ports_of(uuid(1), now))] == [True, True]
    alone = Story()
    alone.run(2)
    same = [IbPort(port=port(i), state_id=4, rate_bytes_per_s=PORT_BYTES_PER_S / 4) for i in range(2)]
    assert not ports_of(uuid(0), ib(alone, *same))[0].is_degraded
    expecting = replace(view(alone, Settings(ib_expected_bytes_per_s=PORT_BYTES_PER_S)), _known={})
    assert ports_of(uuid(0), expecting)[0].is_degraded
    unknown = ib(alone, *(IbPort(port=port(i), rate_bytes_per_s=float("nan")) for i in range(2)))
    assert ports_of(uuid(0), unknown)[0].bytes_per_s is None


def tasks(story: Story, *jobs: tuple[str, int]) -> View:
    samples = [
        JobTasks(cgroup=cgroup, gpus=(uuid(gpu),), processes=1, threads=2, running=1, blocked=0, cpu_s=1.0)
        for cgroup, gpu in jobs
    ]
    reading = story.reading("jobs", "jobs.fast", *samples, collector="jobs")
    story.node = step(story.node, Frame(sequence=9, time=story.time, readings=(reading,), probe_pid=7))
    return view(story)


def test_peers_are_of_the_same_job_even_where_every_task_has_its_own_control_group() -> None:
    story = Story(gpus=3)
    story.run(2)
    now = tasks(story, ("/slurm/job_7/step_0/task_0", 0), ("/slurm/job_7/step_0/task_1", 1), ("/slurm/job_8/step_0", 2))
    assert peers_of(uuid(0), now) == (uuid(1),)
    assert peers_of(uuid(2), now) == ()
    assert [job.cgroup for job in jobs_of(uuid(2), now)] == ["/slurm/job_8/step_0"]


def test_where_no_job_is_seen_all_held_gpus_are_peers() -> None:
    story = Story(gpus=3)
    story.run(2, COMPUTING, Host(tasks=False), others=FREE)
    assert peers_of(uuid(1), view(story)) == (uuid(0),)


# the host side


def test_tasks_processors_and_pressure_of_the_job() -> None:
    found = host_side(Host(running=3, blocked=2, cores=4.0, cpus=16, busiest=0.7, io=0.4, cpu=0.2, memory=0.1))
    assert found.tasks is not None
    assert (found.tasks.running, found.tasks.blocked, found.tasks.gpus) == (3, 2, 2)
    assert found.tasks.cores == pytest.approx(4)
    assert found.tasks.cpus == 16
    assert found.tasks.busiest == pytest.approx(0.7)
    assert found.io_waiting == pytest.approx(0.4)
    assert found.cpu_waiting == pytest.approx(0.2)
    assert found.memory_waiting == pytest.approx(0.1)
    assert found.host_cores == pytest.approx(1)
    assert found.has_evidence


def test_what_is_not_read_is_not_known() -> None:
    found = host_side(
        Host(tasks=False, storage=False, io=None, cpu=None, memory=None, host_cores=None, busiest=None, cpus=None)
    )
    assert found == Pipeline()
    assert not found.has_evidence


def test_tasks_may_lack_processors_and_busiest_thread() -> None:
    found = host_side(Host(busiest=None, cpus=None))
    assert found.tasks is not None
    assert (found.tasks.cpus, found.tasks.busiest) == (None, None)


def test_tasks_that_were_never_read_twice_use_an_unknown_share_of_processors() -> None:
    story = Story()
    story.run(2, WAITING, Host(tasks=False))
    now = tasks(story, ("/a", 0))
    found = pipeline(uuid(0), now, story.now_ns - S // 4, story.now_ns)
    assert found.tasks is not None
    assert found.tasks.cores is None
    later = pipeline(uuid(0), now, story.now_ns - 60 * S, story.now_ns - 50 * S)
    assert later.tasks is None


def test_pressure_of_the_jobs_own_group_comes_before_the_nodes() -> None:
    story = Story()
    for waiting_s in (0.0, 0.25, 0.5):
        story.run(0.5, WAITING, Host(io=0.1))
        own = Pressure(resource="io", cgroup="/job", waiting_s=waiting_s)
        reading = story.reading("jobs", "pressure.jobs", own, collector="pressure")
        story.node = step(story.node, Frame(sequence=9, time=story.time, readings=(reading,), probe_pid=7))
    found = pipeline(uuid(0), view(story), story.now_ns - S, story.now_ns - S // 2)
    assert found.io_waiting == pytest.approx(0.5)


def test_storage_says_rates_outstanding_reads_and_latency_beside_the_usual_one() -> None:
    usual = Baselines({("read_latency", "nfs:/data"): Learned(0.002, 1_000.0)})
    found = host_side(Host(read=400e6, write=50e6, reads=400, outstanding=4.0), baselines=usual).storage
    assert found is not None
    assert found.target == "nfs:/data"
    assert found.read_bytes_per_s == pytest.approx(400e6)
    assert found.write_bytes_per_s == pytest.approx(50e6)
    assert found.outstanding == pytest.approx(4)
    assert found.latency_s == pytest.approx(0.01)
    assert found.slowdown == pytest.approx(5)
    assert (found.read_saturation, found.write_saturation) == (None, None)
    unlearned = host_side(Host(read=400e6, reads=400, outstanding=4.0)).storage
    assert unlearned is not None
    assert unlearned.slowdown is None


def test_saturation_is_of_what_the_site_says_a_target_can_do() -> None:
    settings = Settings(storage_capacity={NFS: Capacity(read_bytes_per_s=500e6)})
    found = host_side(Host(read=400e6, write=50e6), settings).storage
    assert found is not None
    assert found.read_saturation == pytest.approx(0.8)
    assert found.write_saturation is None


def test_a_capacity_of_something_else_says_nothing_of_this_target() -> None:
    other = Settings(storage_capacity={StorageKey("nfs", "/scratch"): Capacity(read_bytes_per_s=1.0)})
    found = host_side(Host(read=400e6), other).storage
    assert found is not None
    assert found.read_saturation is None


def test_a_target_that_counts_no_reads_is_no_evidence() -> None:
    story = Story()
    for _ in range(3):
        story.run(0.5, WAITING, Host(storage=False))
        only = StorageCounters(storage=NFS, timeouts=0, write_bytes=int(story.now_ns // S))
        reading = story.reading("nfs", "nfs.fast", only, collector="nfs")
        story.node = step(story.node, Frame(sequence=9, time=story.time, readings=(reading,), probe_pid=7))
    assert pipeline(uuid(0), view(story), story.now_ns - S, story.now_ns).storage is None
