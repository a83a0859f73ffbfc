# SPDX-License-Identifier: Apache-2.0
"""The processes that hold GPUs: which belong together, and what their threads do."""

import os
from dataclasses import dataclass, field

import pytest

from gpufeed.model.desired import CollectorOptions
from gpufeed.model.host import JobTasks
from gpufeed.model.ids import GpuUuid, LaneId
from gpufeed.sources.contract import Outcome, Reader
from gpufeed.sources.jobs import JobsSource
from gpufeed.sources.threads import MAX_PROCESSES
from gpufeed.units import NS_PER_S
from host_bench import HostBench, read, samples_of, statuses

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
TASK = "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0"
A, B = GpuUuid("GPU-a"), GpuUuid("GPU-b")


@dataclass
class Process:
    """A process as /proc shows it; threads by number: state and ticks of processor time."""

    pid: int
    threads: dict[int, tuple[str, int]] = field(default_factory=dict)
    parent: int = 1
    cgroup: str = f"0::{TASK}\n"
    start: int = 100
    cpus: str = "ff"

    def write(self, bench: HostBench) -> None:
        threads = self.threads or {self.pid: ("S", 0)}
        ticks = sum(used for _, used in threads.values())
        path = f"proc/{self.pid}"
        first = next(iter(threads.values()))
        bench.write(f"{path}/stat", self._line(self.pid, first[0], ticks, len(threads)))
        bench.write(f"{path}/cgroup", self.cgroup)
        bench.write(f"{path}/status", f"Name:\tpython\nCpus_allowed:\t{self.cpus}\n")
        for thread, (state, used) in threads.items():
            bench.write(f"{path}/task/{thread}/stat", self._line(thread, state, used, len(threads)))

    def _line(self, number: int, state: str, ticks: int, threads: int) -> str:
        return (
            f"{number} (pt main (x)) {state} {self.parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 {threads} 0 "
            f"{self.start} 0 0{' 0' * 29}\n"
        )


def hold(bench: HostBench, lane: str, uuid: GpuUuid, *pids: int) -> None:
    bench.board.gpu_pids[LaneId(lane)] = (uuid, pids)


def members(bench: HostBench, *pids: int, path: str = TASK, mounted: str = "") -> None:
    bench.write(f"sys/fs/cgroup{mounted}{path}/cgroup.procs", "".join(f"{pid}\n" for pid in pids))


def jobs(reader: Reader) -> list[JobTasks]:
    return samples_of(read(reader, "jobs.fast"), JobTasks)


def only_job(reader: Reader) -> JobTasks:
    (job,) = jobs(reader)
    return job


def slow(reader: Reader) -> Outcome:
    return read(reader, "jobs.slow")


def test_threads_of_a_cgroup_are_counted_by_what_they_wait_for(bench: HostBench) -> None:
    Process(10, {10: ("S", 300), 11: ("R", 200), 12: ("D", 0), 13: ("S", 0)}).write(bench)
    Process(20, {20: ("D", 50)}, parent=10).write(bench)
    members(bench, 10, 20)
    hold(bench, "gpu0", A, 10)
    assert only_job(bench.only_reader(JobsSource())) == JobTasks(
        cgroup=TASK,
        gpus=(A,),
        processes=2,
        threads=5,
        running=1,
        blocked=2,
        cpu_s=550 / TICKS_PER_S,
        cpus_allowed=8,
    )


def test_ranks_of_one_cgroup_are_one_entry_with_all_their_gpus(bench: HostBench) -> None:
    Process(10).write(bench)
    Process(20).write(bench)
    members(bench, 10, 20)
    hold(bench, "gpu1", B, 20, 10)
    hold(bench, "gpu0", A, 10)
    assert only_job(bench.only_reader(JobsSource())).gpus == (A, B)


def test_two_cgroups_are_two_entries(bench: HostBench) -> None:
    other = TASK.replace("task_0", "task_1")
    Process(10).write(bench)
    Process(20, cgroup=f"0::{other}\n").write(bench)
    members(bench, 10)
    members(bench, 20, path=other)
    hold(bench, "gpu0", A, 10)
    hold(bench, "gpu1", B, 20)
    assert [(job.cgroup, job.gpus) for job in jobs(bench.only_reader(JobsSource()))] == [(TASK, (A,)), (other, (B,))]


def test_the_busiest_thread_is_the_one_that_used_most_since_the_last_read(bench: HostBench) -> None:
    process = Process(10, {10: ("S", 500), 11: ("S", 900), 12: ("S", 0)})
    process.write(bench)
    members(bench, 10)
    hold(bench, "gpu0", A, 10)
    reader = bench.only_reader(JobsSource())
    assert only_job(reader).busiest_thread_cpu_s is None
    process.threads = {10: ("S", 500 + TICKS_PER_S), 11: ("S", 901), 12: ("S", 0)}
    process.write(bench)
    bench.clock.advance(2 * NS_PER_S)
    job = only_job(reader)
    assert (job.busiest_thread_cpu_s, job.busiest_thread_wall_s) == (1.0, 2.0)


def test_a_thread_number_used_again_is_another_thread(bench: HostBench) -> None:
    process = Process(10, {10: ("S", 500)})
    process.write(bench)
    members(bench, 10)
    hold(bench, "gpu0", A, 10)
    reader = bench.only_reader(JobsSource())
    jobs(reader)
    process.start, process.threads = 999, {10: ("S", 700)}
    process.write(bench)
    bench.clock.advance(NS_PER_S)
    assert only_job(reader).busiest_thread_cpu_s is None


def test_a_thread_that_ended_and_one_that_began_are_noticed(bench: HostBench) -> None:
    process = Process(10, {10: ("S", 0), 11: ("D", 0)})
    process.write(bench)
    members(bench, 10)
    hold(bench, "gpu0", A, 10)
    reader = bench.only_reader(JobsSource())
    assert only_job(reader).blocked == 1
    (bench.root / "proc/10/task/11/stat").unlink()
    (bench.root / "proc/10/task/11").rmdir()
    process.threads = {10: ("S", 0), 12: ("R", 0)}
    process.write(bench)
    jobs(reader)  # finds the thread gone
    job = only_job(reader)
    assert (job.threads, job.running, job.blocked) == (2, 1, 0)


def test_children_stand_in_where_the_cgroup_is_the_whole_node(bench: HostBench) -> None:
    Process(10, cgroup="0::/\n").write(bench)
    Process(20, {20: ("D", 0)}, parent=10, cgroup="0::/\n").write(bench)
    Process(30, {30: ("D", 0)}, parent=20, cgroup="0::/\n").write(bench)
    Process(40, {40: ("R", 0)}, cgroup="0::/\n").write(bench)  # nobody's child
    bench.write("proc/50/stat", "garbage")
    bench.write("proc/meminfo", "")
    members(bench, 10, 20, 30, 40, path="")
    hold(bench, "gpu0", A, 10)
    reader = bench.only_reader(JobsSource())
    job = only_job(reader)
    assert (job.cgroup, job.processes, job.blocked, job.running) == ("/", 3, 2, 0)
    Process(60, {60: ("D", 0)}, parent=10, cgroup="0::/\n").write(bench)
    slow(reader)
    assert only_job(reader).processes == 4


@pytest.mark.parametrize("path", ["/../docker-0f.scope", "/gone"])
def test_children_stand_in_where_the_cgroup_cannot_be_found(bench: HostBench, path: str) -> None:
    Process(10, cgroup=f"0::{path}\n").write(bench)
    Process(20, parent=10, cgroup=f"0::{path}\n").write(bench)
    hold(bench, "gpu0", A, 10)
    assert only_job(bench.only_reader(JobsSource())).processes == 2


def test_processes_in_a_circle_are_counted_once(bench: HostBench) -> None:
    Process(10, parent=20, cgroup="0::/\n").write(bench)
    Process(20, parent=10, cgroup="0::/\n").write(bench)
    hold(bench, "gpu0", A, 10)
    assert only_job(bench.only_reader(JobsSource())).processes == 2


@pytest.mark.parametrize(
    ("lines", "mounted"),
    [
        ("4:cpu,cpuacct:{0}\n1:name=systemd:/\n", "/cpu,cpuacct"),
        ("4:cpu:/\n1:name=systemd:{0}\n", "/systemd"),
        ("1:name=systemd:/\n0::{0}\n", "/unified"),
    ],
)
def test_processes_of_older_hierarchies_are_found(bench: HostBench, lines: str, mounted: str) -> None:
    Process(10, cgroup=lines.format(TASK)).write(bench)
    Process(20, cgroup="0::/\n").write(bench)
    members(bench, 10, 20, 0, mounted=mounted)
    hold(bench, "gpu0", A, 10)
    assert only_job(bench.only_reader(JobsSource())).processes == 2


def test_a_process_that_moved_is_followed_at_the_next_slow_read(bench: HostBench) -> None:
    process = Process(10, cgroup="0::/\n")
    process.write(bench)
    hold(bench, "gpu0", A, 10)
    reader = bench.only_reader(JobsSource())
    assert only_job(reader).cgroup == "/"
    process.cgroup, process.cpus = f"0::{TASK}\n", "3"
    process.write(bench)
    members(bench, 10)
    slow(reader)
    job = only_job(reader)
    assert (job.cgroup, job.cpus_allowed) == (TASK, 2)


def test_a_status_that_cannot_be_read_costs_one_value(bench: HostBench) -> None:
    Process(10).write(bench)
    members(bench, 10)
    bench.write("proc/10/status", "Name: python\n")
    hold(bench, "gpu0", A, 10)
    assert only_job(bench.only_reader(JobsSource())).cpus_allowed is None


def test_a_process_that_ended_leaves_and_its_time_with_it(bench: HostBench) -> None:
    Process(10, {10: ("S", 100)}).write(bench)
    Process(20, {20: ("S", 50)}).write(bench)
    members(bench, 10, 20)
    hold(bench, "gpu0", A, 10)
    reader = bench.only_reader(JobsSource())
    assert only_job(reader).cpu_s == 150 / TICKS_PER_S
    (bench.root / "proc/20").rename(bench.root / "ended")
    job = only_job(reader)
    assert (job.processes, job.cpu_s) == (1, 100 / TICKS_PER_S)


def test_no_process_no_entry_and_the_input_is_there(bench: HostBench) -> None:
    reader = bench.only_reader(JobsSource())
    assert jobs(reader) == []
    assert statuses(slow(reader))["task_states", ""].state == "available"
    reader.close()


def test_processes_of_another_namespace_are_denied_with_the_fix(bench: HostBench) -> None:
    hold(bench, "gpu0", A, 4711)
    reader = bench.only_reader(JobsSource())
    status = statuses(slow(reader))["task_states", ""]
    assert (status.state, "hostPID" in status.fix) == ("denied", True)
    assert jobs(reader) == []
    Process(4711).write(bench)
    assert statuses(slow(reader))["task_states", ""].state == "available"


def test_a_process_that_ends_between_two_files_has_no_entry(bench: HostBench) -> None:
    bench.write("proc/10/cgroup", f"0::{TASK}\n")
    hold(bench, "gpu0", A, 10)
    assert jobs(bench.only_reader(JobsSource())) == []


def test_a_process_without_a_list_of_threads_still_counts(bench: HostBench) -> None:
    Process(10, {10: ("D", 0), 11: ("S", 0)}).write(bench)
    (bench.root / "proc/10/task").rename(bench.root / "hidden")
    members(bench, 10)
    hold(bench, "gpu0", A, 10)
    job = only_job(bench.only_reader(JobsSource()))
    assert (job.processes, job.threads, job.blocked) == (1, 1, 1)


def test_many_sleepers_are_read_in_turn_and_stand_for_all(bench: HostBench) -> None:
    threads = {10: ("R", 0), **dict.fromkeys(range(1000, 1999), ("S", 0))}
    Process(10, threads).write(bench)
    members(bench, 10)
    hold(bench, "gpu0", A, 10)
    reader = bench.only_reader(JobsSource())
    for _ in range(6):
        before = bench.desks[0].counts.file_reads
        job = only_job(reader)
        assert bench.desks[0].counts.file_reads - before < 520
        assert job.threads == 1000
    assert (job.running, job.blocked) == (1, 0)


def test_a_sleeper_that_wakes_is_found_within_a_few_reads_and_then_always_read(bench: HostBench) -> None:
    process = Process(10, {10: ("S", 0), **dict.fromkeys(range(1000, 1999), ("S", 0))})
    process.write(bench)
    members(bench, 10)
    hold(bench, "gpu0", A, 10)
    reader = bench.only_reader(JobsSource())
    for _ in range(8):
        jobs(reader)
    for number in range(1500, 1600):
        process.threads[number] = ("D", 0)
    process.write(bench)
    for _ in range(8):
        jobs(reader)
    assert only_job(reader).blocked == pytest.approx(100, abs=10)


def test_many_processes_are_read_in_turn_and_stand_for_all(bench: HostBench) -> None:
    pids = range(100, 300)
    for pid in pids:
        Process(pid, {pid: ("D" if pid % 2 else "S", 1)}).write(bench)
    members(bench, *pids)
    hold(bench, "gpu0", A, 100)
    reader = bench.only_reader(JobsSource())
    job = only_job(reader)
    assert (job.processes, job.threads) == (200, 200)
    assert job.blocked == pytest.approx(100, abs=10)
    for _ in range(200 // (MAX_PROCESSES // 2)):
        job = only_job(reader)
    assert job.cpu_s == 200 / TICKS_PER_S


def test_more_cgroups_than_can_be_looked_at_are_cut(bench: HostBench) -> None:
    for pid in range(100, 200):
        Process(pid, cgroup=f"0::/kubepods/pod{pid}\n").write(bench)
    hold(bench, "gpu0", A, *range(100, 200))
    assert len(jobs(bench.only_reader(JobsSource()))) == 64


def test_a_node_whose_processes_cannot_be_listed_has_no_children(bench: HostBench) -> None:
    Process(10, cgroup="0::/\n").write(bench)
    hold(bench, "gpu0", A, 10)
    (bench.root / "proc").chmod(0o111)
    try:
        assert only_job(bench.only_reader(JobsSource())).processes == 1
    finally:
        (bench.root / "proc").chmod(0o755)


def test_a_collector_switched_off_has_no_lane(bench: HostBench) -> None:
    bench.options["jobs"] = CollectorOptions(enabled=False)
    assert JobsSource().plan(bench.config) == ()
