# SPDX-License-Identifier: Apache-2.0
"""What jobs with GPUs wait for and use."""

import errno
import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.model.desired import CollectorOptions
from gpufeed.model.host import Pressure
from gpufeed.model.ids import GpuUuid, LaneId
from gpufeed.model.jobs import JobUsage
from gpufeed.sources.contract import Reader
from gpufeed.sources.job_usage import MAX_CGROUPS, MAX_PROCESSES, JobUsageSource
from gpufeed.sources.running_sum import RunningSum
from gpufeed.sources.switches import MAX_THREADS
from host_bench import HostBench, read, samples_of, statuses

STEP = "/system.slice/slurmstepd.scope/job_7/step_0"
TASK = f"{STEP}/user/task_0"
UID = "9493223b-520e-4a97-a45f-359dcf967006"


def process(
    bench: HostBench, pid: int, cgroup: str = TASK, *, switches: tuple[int, int] = (0, 0), reads: int = 0
) -> None:
    bench.write(f"proc/{pid}/cgroup", cgroup if ":" in cgroup else f"0::{cgroup}\n")
    bench.write(
        f"proc/{pid}/task/{pid}/status",
        f"Name:\tx\nvoluntary_ctxt_switches:\t{switches[0]}\nnonvoluntary_ctxt_switches:\t{switches[1]}\n",
    )
    bench.write(f"proc/{pid}/io", f"rchar: {reads}\nread_bytes: {reads // 2}\ncancelled_write_bytes: -4\n")


def pressure(bench: HostBench, cgroup: str, resource: str, some_us: int, full_us: int | None = None) -> None:
    full = "" if full_us is None else f"full avg10=0.00 avg60=0.00 avg300=0.00 total={full_us}\n"
    text = f"some avg10=0.00 avg60=0.00 avg300=0.00 total={some_us}\n{full}"
    bench.write(f"sys/fs/cgroup{cgroup}/{resource}.pressure", text)


def quota(bench: HostBench, cgroup: str, periods: int, throttled_us: int) -> None:
    bench.write(
        f"sys/fs/cgroup{cgroup}/cpu.stat",
        f"usage_usec 9000000\nnr_throttled {periods}\nthrottled_usec {throttled_us}\n",
    )


def hold(bench: HostBench, *pids: int) -> None:
    bench.board.gpu_pids[LaneId("gpu0")] = (GpuUuid("GPU-a"), pids)


def opened(bench: HostBench) -> Reader:
    return bench.only_reader(JobUsageSource())


def fast(reader: Reader) -> list[Pressure]:
    return samples_of(read(reader, "pressure.fast"), Pressure)


def usage(reader: Reader) -> JobUsage:
    (found,) = samples_of(read(reader, "jobs.slow"), JobUsage)
    return found


def test_pressure_of_the_cgroup_around_a_gpus_processes_is_read_fast(bench: HostBench) -> None:
    process(bench, 10)
    hold(bench, 10)
    pressure(bench, TASK, "cpu", 1_500_000, 250_000)
    pressure(bench, TASK, "io", 2_000_000, 1_000_000)
    outcome = read(opened(bench), "pressure.fast")
    assert outcome.samples == (
        Pressure(resource="cpu", cgroup=TASK, waiting_s=1.5, stalled_s=0.25),
        Pressure(resource="io", cgroup=TASK, waiting_s=2.0, stalled_s=1.0),
    )
    assert statuses(outcome)["job_pressure", ""].state == "available"


def test_a_process_that_takes_a_gpu_is_followed_at_once(bench: HostBench) -> None:
    reader = opened(bench)
    assert fast(reader) == []
    process(bench, 10)
    pressure(bench, TASK, "io", 1)
    hold(bench, 10)
    assert [sample.cgroup for sample in fast(reader)] == [TASK]
    hold(bench)
    assert fast(reader) == []
    reader.close()


def test_cgroups_are_looked_up_no_more_often_than_processes_change(bench: HostBench) -> None:
    process(bench, 10)
    pressure(bench, TASK, "io", 1)
    hold(bench, 10)
    reader = opened(bench)
    fast(reader)
    before = bench.desks[0].counts.file_reads
    fast(reader)
    assert bench.desks[0].counts.file_reads == before + 3


@pytest.mark.parametrize("path", ["/", "/../../init.scope"])
def test_the_whole_node_is_no_job(bench: HostBench, path: str) -> None:
    process(bench, 10, path)
    pressure(bench, "", "io", 1)
    hold(bench, 10)
    reader = opened(bench)
    assert fast(reader) == []
    assert read(reader, "jobs.slow").samples == ()


def test_pressure_switched_off_for_a_cgroup_is_said(bench: HostBench) -> None:
    process(bench, 10)
    hold(bench, 10)
    status = statuses(read(opened(bench), "pressure.fast"))["job_pressure", ""]
    assert (status.state, "pressure" in status.reason) == ("absent", True)


def test_a_step_is_the_sum_of_its_tasks_and_has_the_pressure_of_its_own_cgroup(bench: HostBench) -> None:
    other = TASK.replace("task_0", "task_1")
    process(bench, 10, switches=(5, 1), reads=100)
    process(bench, 11, other, switches=(7, 2), reads=200)
    process(bench, 12, other, switches=(1, 0), reads=50)  # a loader
    bench.write(f"sys/fs/cgroup{other}/cgroup.procs", "11\n12\n")
    hold(bench, 10, 11)
    pressure(bench, STEP, "memory", 3_000_000, 1_000_000)
    quota(bench, TASK, 2, 500_000)
    quota(bench, STEP, 1, 250_000)
    bench.write(f"sys/fs/cgroup{other}/cpu.stat", "usage_usec 5\n")
    assert usage(opened(bench)) == JobUsage(
        scheduler="slurm",
        job_id="7",
        step="0",
        waiting_s={"memory": 3.0},
        stalled_s={"memory": 1.0},
        cpu_s=9.0,
        throttled_s=0.75,
        throttled_periods=3,
        read_call_bytes=350,
        block_read_bytes=175,
        voluntary_switches=13,
        involuntary_switches=3,
    )


def test_what_an_ended_process_had_counted_stays(bench: HostBench) -> None:
    process(bench, 10, reads=100)
    process(bench, 11, reads=40)
    bench.write(f"sys/fs/cgroup{TASK}/cgroup.procs", "10\n11\n")
    hold(bench, 10)
    reader = opened(bench)
    assert usage(reader).read_call_bytes == 140
    bench.write(f"sys/fs/cgroup{TASK}/cgroup.procs", "10\n")
    process(bench, 10, reads=160)
    assert usage(reader).read_call_bytes == 200


def test_a_job_that_lets_go_of_its_gpus_is_gone(bench: HostBench) -> None:
    process(bench, 10, reads=100)
    hold(bench, 10)
    reader = opened(bench)
    usage(reader)
    hold(bench)
    assert read(reader, "jobs.slow").samples == ()
    hold(bench, 10)
    assert usage(reader).read_call_bytes == 100


def test_version_one_counts_throttling_in_a_hierarchy_of_its_own(bench: HostBench) -> None:
    own = "/slurm/uid_1/job_7/step_0"
    process(bench, 10, f"9:devices:{own}/task_0\n4:cpu,cpuacct:{own}\n1:name=systemd:/\n")
    hold(bench, 10)
    bench.write(f"sys/fs/cgroup/cpu,cpuacct{own}/cpu.stat", "nr_throttled 4\nthrottled_time 1500000000\n")
    found = usage(opened(bench))
    assert (found.job_id, found.throttled_s, found.throttled_periods) == ("7", 1.5, 4)
    assert (found.waiting_s, found.stalled_s) == ({}, {})


def test_a_pod_is_one_entry_whatever_containers_it_has(bench: HostBench) -> None:
    for pid, digit in ((10, "a"), (11, "b")):
        process(bench, pid, f"/kubepods/pod{UID}/{digit * 64}", reads=100)
    hold(bench, 10, 11)
    pressure(bench, f"/kubepods/pod{UID}", "cpu", 1_000_000)
    found = usage(opened(bench))
    assert (found.scheduler, found.job_id, found.pod_uid) == ("kubernetes", UID, UID)
    assert (found.waiting_s, found.read_call_bytes) == ({"cpu": 1.0}, 200)


def test_processes_that_work_for_no_job_and_slurms_own_have_no_entry(bench: HostBench) -> None:
    process(bench, 10, "/user.slice/session-1.scope")
    process(bench, 11, f"{STEP}/slurm")
    hold(bench, 10, 11)
    assert read(opened(bench), "jobs.slow").samples == ()


def test_reads_that_are_not_for_us_are_absent_and_denied_with_the_fix(
    bench: HostBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    process(bench, 10, switches=(5, 1), reads=100)
    hold(bench, 10)
    really = os.open

    def refuse(path: str, *arguments: int) -> int:
        if path.endswith("/io"):
            raise PermissionError(errno.EACCES, "")
        return really(path, *arguments)

    reader = opened(bench)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        outcome = read(reader, "jobs.slow")
    (found,) = samples_of(outcome, JobUsage)
    assert (found.read_call_bytes, found.voluntary_switches) == (None, 5)
    status = statuses(outcome)["job_reads", ""]
    assert (status.state, "CAP_SYS_PTRACE" in status.fix, outcome.failures) == ("denied", True, ())
    assert statuses(read(reader, "jobs.slow"))["job_reads", ""].state == "available"


def test_a_file_that_makes_no_sense_is_named_and_the_rest_stands(bench: HostBench) -> None:
    process(bench, 10, switches=(5, 1))
    bench.write("proc/10/io", "garbage")
    bench.write("proc/11/cgroup", "garbage")
    bench.write(f"sys/fs/cgroup{TASK}/cpu.stat", "garbage")
    hold(bench, 10, 11)
    outcome = read(opened(bench), "jobs.slow")
    (found,) = samples_of(outcome, JobUsage)
    assert (found.voluntary_switches, found.throttled_s) == (5, None)
    assert [(failure.device, failure.reason) for failure in outcome.failures] == [("10/io", "parse")]


def test_an_io_file_that_is_broken_says_so(bench: HostBench) -> None:
    process(bench, 10)
    bench.write("proc/11/cgroup", f"0::{TASK}\n")  # without a thread: it ended
    (bench.root / "proc/10/io").unlink()
    bench.refuse("proc/10/io")
    hold(bench, 10, 11)
    status = statuses(read(opened(bench), "jobs.slow"))["job_reads", ""]
    assert (status.state, status.fix) == ("broken", "")


def thread(bench: HostBench, pid: int, number: int, voluntary: int) -> None:
    text = f"Name:\tx\nvoluntary_ctxt_switches:\t{voluntary}\nnonvoluntary_ctxt_switches:\t1\n"
    bench.write(f"proc/{pid}/task/{number}/status", text)


def test_switches_are_those_of_all_threads_and_stay_when_one_ends(bench: HostBench) -> None:
    process(bench, 10, switches=(5, 1))
    thread(bench, 10, 15, 70)
    thread(bench, 10, 16, 900)
    hold(bench, 10)
    reader = opened(bench)
    assert usage(reader).voluntary_switches == 975
    shutil.rmtree(bench.root / "proc/10/task/16")
    thread(bench, 10, 15, 71)
    found = usage(reader)
    assert (found.voluntary_switches, found.involuntary_switches) == (976, 3)


def test_more_threads_than_are_worth_the_time_take_turns_and_nothing_is_said_before_each_had_one(
    bench: HostBench,
) -> None:
    process(bench, 10, switches=(1, 0))
    for number in range(1000, 1000 + MAX_THREADS):
        thread(bench, 10, number, 10)
    hold(bench, 10)
    reader = opened(bench)
    assert usage(reader).voluntary_switches is None
    assert usage(reader).voluntary_switches == 1 + 10 * MAX_THREADS
    for number in range(1000, 1000 + MAX_THREADS):
        thread(bench, 10, number, 11)
    first = usage(reader).voluntary_switches
    assert first is not None
    assert 1 + 10 * MAX_THREADS < first < 1 + 11 * MAX_THREADS + 1
    assert usage(reader).voluntary_switches == 1 + 11 * MAX_THREADS


def test_a_thread_that_cannot_be_read_is_waited_for_no_longer_than_its_turn(bench: HostBench) -> None:
    process(bench, 10, switches=(5, 1))
    bench.write("proc/10/task/11/status", "garbage")
    hold(bench, 10)
    assert usage(opened(bench)).voluntary_switches == 5


def test_counts_that_add_up_to_more_than_fits_stay_at_what_fits(bench: HostBench) -> None:
    for pid in (10, 11):
        process(bench, pid, reads=2**64 - 1)
    hold(bench, 10, 11)
    assert usage(opened(bench)).read_call_bytes == 2**64 - 1


def test_more_than_can_be_looked_at_is_cut_and_it_is_said(bench: HostBench) -> None:
    pids = range(100, 105 + MAX_PROCESSES)
    for pid in pids:
        process(bench, pid, reads=1)
    hold(bench, *pids)
    outcome = read(opened(bench), "jobs.slow")
    assert [(failure.device, failure.reason) for failure in outcome.failures] == [("processes", "limit")]
    assert samples_of(outcome, JobUsage)[0].read_call_bytes == MAX_PROCESSES


def test_more_cgroups_than_can_be_looked_at_are_cut(bench: HostBench) -> None:
    pids = range(100, 105 + MAX_CGROUPS)
    for pid in pids:
        process(bench, pid, TASK.replace("job_7", f"job_{pid}"))
    hold(bench, *pids)
    assert len(read(opened(bench), "jobs.slow").samples) == MAX_CGROUPS


def test_groups_follow_their_collectors(bench: HostBench) -> None:
    (plan,) = JobUsageSource().plan(bench.config)
    assert [(group.name, group.collector) for group in plan.groups] == [
        ("jobs.slow", "jobs"),
        ("pressure.fast", "pressure"),
    ]
    bench.options["pressure"] = CollectorOptions(enabled=False)
    assert [group.name for group in JobUsageSource().plan(bench.config)[0].groups] == ["jobs.slow"]
    bench.options["jobs"] = CollectorOptions(enabled=False)
    assert JobUsageSource().plan(bench.config) == ()


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 100), st.sets(st.sampled_from("abc"))), max_size=30))
def test_a_running_sum_never_falls(steps: list[tuple[str, int, set[str]]]) -> None:
    counted, before = RunningSum(), 0.0
    for key, value, kept in steps:
        counted.see(key, value)
        counted.keep(kept)
        assert counted.total >= before
        before = counted.total
    counted.see("d", None)
    assert counted.total == before
