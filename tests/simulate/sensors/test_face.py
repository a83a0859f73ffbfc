# SPDX-License-Identifier: Apache-2.0
"""When frames come, what they lack, and that every kind of noise and every input can be switched by itself."""

from collections.abc import Mapping
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import pytest

from gpufeed.model.fabric import IbCounters, IbDevice, IbErrors, IbPort
from gpufeed.model.frame import Frame
from gpufeed.model.gpu import GpmInterval, GpuFast, NvlinkTotals
from gpufeed.model.host import JobTasks, Pressure
from gpufeed.model.jobs import Allocations, JobFiles, JobOwner, JobUsage
from gpufeed.model.sample import Sample
from gpufeed.simulate.activity import Incident
from gpufeed.simulate.pipeline.node import JudgedNode
from gpufeed.simulate.pipeline.scenarios import JUDGED
from gpufeed.simulate.sensors.face import SensorFace, frames
from gpufeed.simulate.sensors.scene import BOOT_NS
from gpufeed.simulate.sensors.settings import INPUTS, QUIET, Noise, Sensing
from simulate.sensors.looking import SECOND_NS, Seen, look, only

LOUD: Mapping[str, Any] = {
    "utilization_windows_s": (1.0,), "gpm_missing": 0.2, "gpm_failures": 0.2, "wait_ticks_per_s": (6.25e7,),
    "narrow_ports": 1.0, "stalls": 0.2, "pause_every_s": 10.0, "clock_step_every_s": 10.0, "lost": 0.2,
    "reset_every_s": 10.0, "churn_every_s": 10.0,
}  # fmt: skip
"""Where the usual amount would hardly show in a minute."""
FRAMED = {"stall_s", "clock_step_s", "pid_reuse"}
"""How much of something else; without it they mean nothing."""


@pytest.mark.parametrize("name", [field.name for field in fields(Noise) if field.name not in FRAMED])
def test_every_noise_can_be_switched_on_alone(name: str) -> None:
    # congestion has waiting of ports to count, and fills a narrow counter within a minute
    usual = getattr(Noise(), name)
    quiet = look("fabric_congested", only(), 90)
    noisy = look("fabric_congested", only(**{name: LOUD.get(name, usual)}), 90)
    assert getattr(QUIET, name) != usual
    assert [bare(frame) for frame in noisy.frames] != [bare(frame) for frame in quiet.frames]


def bare(frame: Frame) -> tuple[object, ...]:
    return (frame.time, frame.readings, frame.lanes)


def test_the_same_seed_gives_the_same_frames_and_another_others() -> None:
    one, two = (look("two_jobs", Sensing(seed=3), 30).frames for _ in range(2))
    other = look("two_jobs", Sensing(seed=4), 30).frames
    assert one == two
    assert one != other


def test_two_faces_of_one_node_see_what_each_would_see_alone() -> None:
    ways = (Sensing(period_ns=SECOND_NS // 5), Sensing(inputs=INPUTS["no_gpm"], seed=2))
    alone = [look("llm_overlap", way, 20).frames for way in ways]
    node = JudgedNode("llm_overlap", gpus=2, seed=1)
    together: list[list[Frame]] = [[], []]
    for number, frame in frames(node, [SensorFace(node, way) for way in ways], 20 * SECOND_NS):
        together[number].append(frame)
    assert [len(found) for found in together] == [len(found) for found in alone]
    for found, expected in zip(together, alone, strict=True):
        for frame, same in zip(found, expected, strict=True):
            assert frame.time == same.time
            assert [reading.group for reading in frame.readings] == [reading.group for reading in same.readings]


@pytest.mark.parametrize("period_ns", [SECOND_NS // 5, SECOND_NS // 2, SECOND_NS, 2 * SECOND_NS])
def test_fast_groups_are_read_once_a_period(period_ns: int) -> None:
    seen = look("memory_bound", Sensing(period_ns=period_ns, noise=QUIET), 20)
    ages = [age for age, sample in seen.all_of(GpuFast) if sample.gpu.uuid == seen.node.gpus[0].board.uuid]
    assert {after - before for before, after in pairwise(ages)} == {period_ns}
    ports = [age for age, sample in seen.all_of(IbCounters) if sample.port.device == "mlx5_0"]
    assert min(after - before for before, after in pairwise(ports)) >= SECOND_NS // 2
    assert len(seen.frames) == pytest.approx(20 * SECOND_NS / period_ns, abs=1)


@pytest.mark.parametrize("period_ns", [SECOND_NS // 10, 3 * SECOND_NS])
def test_a_period_that_no_probe_has_is_refused(period_ns: int) -> None:
    with pytest.raises(ValueError, match="200 ms to 2 s"):
        Sensing(period_ns=period_ns)


def test_nothing_in_a_frame_is_younger_than_the_frame() -> None:
    seen = look("exposed_exchange", Sensing(), 120)
    for frame in seen.frames:
        for reading in frame.readings:
            assert reading.began_ns <= reading.ended_ns <= frame.time.monotonic_ns
            for sample in reading.samples:
                if isinstance(sample, GpmInterval):
                    assert sample.began_ns < sample.ended_ns <= frame.time.monotonic_ns
    times = [frame.time.monotonic_ns for frame in seen.frames]
    assert times == sorted(times)


def test_a_call_that_is_held_up_shows_as_busy_and_is_late() -> None:
    seen = look("memory_bound", only(stalls=0.05), 120)
    late = [reading.ended_ns - reading.began_ns for reading in seen.readings if reading.group == "nvml.fast"]
    held = [length for length in late if length > 0]
    assert 0.02 < len(held) / len(late) < 0.1
    assert all(0.2 * SECOND_NS <= length <= 2.001 * SECOND_NS for length in held)
    busy = [lane for frame in seen.frames for lane in frame.lanes if lane.busy_since_ns is not None]
    assert {lane.lane for lane in busy} == {"gpu0", "gpu1"}


def test_a_probe_without_processor_sends_nothing_for_a_while() -> None:
    seen = look("memory_bound", only(pause_every_s=20.0), 200)
    gaps = [b.time.monotonic_ns - a.time.monotonic_ns for a, b in pairwise(seen.frames)]
    assert max(gaps) > SECOND_NS
    assert max(gaps) < 3 * SECOND_NS


def test_lanes_wake_a_few_milliseconds_off_and_never_drift() -> None:
    seen = look("memory_bound", only(jitter_s=0.005), 120)
    ages = [age for age, sample in seen.all_of(GpuFast) if sample.gpu.uuid == seen.node.gpus[0].board.uuid]
    off = [(age + SECOND_NS // 4) % (SECOND_NS // 2) - SECOND_NS // 4 for age in ages[1:]]
    assert 3e6 < (sum(x * x for x in off) / len(off)) ** 0.5 < 7e6


def test_a_stepped_clock_moves_wall_time_only() -> None:
    seen = look("memory_bound", only(clock_step_every_s=30.0), 200)
    offsets = {frame.time.wall_ns - frame.time.monotonic_ns for frame in seen.frames}
    assert len(offsets) > 2
    assert len({frame.time.boottime_ns - frame.time.monotonic_ns for frame in seen.frames}) == 1


def test_readings_are_lost_at_the_rate_asked_for() -> None:
    everything, seen = look("memory_bound", only(), 120), look("memory_bound", only(lost=0.1), 120)
    assert len(seen.readings) / len(everything.readings) == pytest.approx(0.9, abs=0.02)


def test_counters_that_are_reset_begin_anew() -> None:
    seen = look("exposed_exchange", only(reset_every_s=20.0), 200)
    first = [sample for sample in seen.list_of(NvlinkTotals) if sample.gpu.uuid == seen.node.gpus[0].board.uuid]
    falls = sum((after.receive_bytes or 0) < (before.receive_bytes or 0) for before, after in pairwise(first))
    assert 3 <= falls <= 20


def test_loaders_that_begin_anew_take_their_time_with_them_and_numbers_are_given_twice() -> None:
    seen = look("cpu_4_workers", only(churn_every_s=20.0, pid_reuse=0.5), 200)
    first = [sample for sample in seen.list_of(JobTasks) if sample.cgroup.endswith("task_0")]
    assert any(after.cpu_s < before.cpu_s for before, after in pairwise(first))
    strayed = [sample for sample in seen.list_of(JobTasks) if len(sample.gpus) == 2]
    assert 0 < len(strayed) < len(seen.list_of(JobTasks)) / 2


LACKING: Mapping[str, set[type[Sample]]] = {
    "all": set(),
    "no_gpm": {GpmInterval},
    "no_pressure": {Pressure},
    "no_cgroups": {JobOwner, JobUsage, Allocations},
    "no_processes": {JobTasks, JobOwner, JobUsage, JobFiles, Allocations},
    "no_nfs": set(),
    "no_fabric": {IbCounters, IbDevice, IbErrors, IbPort},
}


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_an_input_that_is_missing_takes_only_its_own_samples_with_it(name: str) -> None:
    whole = kinds(look("two_jobs", Sensing(noise=QUIET), 15))
    seen = look("two_jobs", Sensing(noise=QUIET, inputs=INPUTS[name]), 15)
    assert whole - kinds(seen) == LACKING[name]
    said = {(status.input, status.scope): status for status in seen.frames[0].inputs}
    assert all(status.reason for status in said.values() if status.state != "available")
    assert any(status.state != "available" for status in said.values()) == (name != "all")


def kinds(seen: Seen) -> set[type[Sample]]:
    return {type(sample) for reading in seen.readings for sample in reading.samples}


def test_without_nfs_statistics_no_mount_is_seen() -> None:
    seen = look("storage_50", Sensing(noise=QUIET, inputs=INPUTS["no_nfs"]), 10)
    assert not [reading for reading in seen.readings if reading.collector == "nfs"]


def test_without_cgroups_all_tasks_are_in_one_session_whose_pressure_nobody_knows() -> None:
    seen = look("two_jobs", Sensing(noise=QUIET, inputs=INPUTS["no_cgroups"]), 10, gpus=4)
    assert {len(tasks.gpus) for tasks in seen.list_of(JobTasks)} == {4}
    assert {pressure.cgroup for pressure in seen.list_of(Pressure)} == {""}


def test_a_driver_that_comes_later_has_no_lanes_before() -> None:
    late = replace(JUDGED["held_idle"], incidents=(Incident(kind="driver_absent", from_ns=0, until_ns=20 * SECOND_NS),))
    node = JudgedNode(late, gpus=2, seed=1)
    lanes = [
        ({lane.lane for lane in frame.lanes} & {"gpu0", "gpu1"}, frame.time.monotonic_ns - BOOT_NS)
        for _, frame in frames(node, [SensorFace(node, only())], 40 * SECOND_NS)
    ]
    assert all(bool(found) == (age_ns >= 20 * SECOND_NS) for found, age_ns in lanes)


def test_a_call_that_hangs_stays_outstanding() -> None:
    hung = replace(JUDGED["held_idle"], incidents=(Incident(kind="hang", gpu=1, from_ns=20 * SECOND_NS),))
    node = JudgedNode(hung, gpus=2, seed=1)
    *_, (_, last) = frames(node, [SensorFace(node, only())], 40 * SECOND_NS)
    busy = {lane.lane: lane.busy_since_ns for lane in last.lanes if lane.busy_since_ns is not None}
    assert busy == {"gpu1": pytest.approx(BOOT_NS + 20 * SECOND_NS, abs=SECOND_NS)}
