# SPDX-License-Identifier: Apache-2.0
"""Waiting time: causes by score, ties unknown, quiet jobs idle."""

from dataclasses import replace

import pytest

from gpufeed.signals.causes import is_quiet, waiting_cause
from gpufeed.signals.features import GpuFeatures
from gpufeed.signals.pipeline import Pipeline, Storage, Tasks
from gpufeed.signals.settings import Settings

GPU = GpuFeatures(active=0.2, has_gpm=True, is_held=True)
TASKS = Tasks(running=4.0, blocked=0.0, cores=3.0, cpus=16.0, busiest=0.5)
READING = Storage(target="nfs:/data", read_bytes_per_s=500e6, outstanding=2.0)
WORKING = Pipeline(tasks=TASKS, storage=READING, io_waiting=0.0, cpu_waiting=0.0, memory_waiting=0.0)
BLOCKED = replace(TASKS, running=1.0, blocked=4.0)


def cause(by: Pipeline, of: GpuFeatures = GPU) -> str:
    return ".".join(waiting_cause(of, by, Settings()).cause)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (WORKING, "starved.unknown"),
        (Pipeline(), "starved.unknown"),
        # storage: pressure, sleeping tasks, slow reads, a target that gives all it can
        (replace(WORKING, io_waiting=0.5), "starved.storage"),
        (replace(WORKING, tasks=BLOCKED), "starved.storage"),
        (replace(WORKING, tasks=None, io_waiting=0.5), "starved.storage"),
        (replace(WORKING, storage=None, io_waiting=0.5), "starved.storage"),
        (replace(WORKING, storage=replace(READING, latency_s=0.04, latency_usual_s=0.01)), "starved.storage"),
        (replace(WORKING, storage=replace(READING, read_saturation=0.95)), "starved.storage"),
        # … but not without reads
        (replace(WORKING, io_waiting=0.5, storage=Storage(read_bytes_per_s=1e3, outstanding=0.1)), "starved.unknown"),
        # checkpoint: writes that tasks wait for, or that follow copies from the GPU
        (
            replace(WORKING, io_waiting=0.5, storage=Storage(write_bytes_per_s=1e9, read_bytes_per_s=2e6)),
            "starved.checkpoint",
        ),
        (
            replace(WORKING, tasks=BLOCKED, storage=Storage(write_bytes_per_s=1e8, write_saturation=0.6)),
            "starved.checkpoint",
        ),
        (replace(WORKING, storage=Storage(write_bytes_per_s=1e9)), "starved.unknown"),  # nobody waits for it
        # host: all processors, pressure, one thread
        (replace(WORKING, tasks=replace(TASKS, cores=15.9)), "starved.host_cpu"),
        (replace(WORKING, cpu_waiting=0.5), "starved.host_cpu"),
        (replace(WORKING, tasks=None, cpu_waiting=0.5), "starved.host_cpu"),
        (replace(WORKING, tasks=replace(TASKS, busiest=1.0)), "starved.host_cpu"),
        # … while storage is not near its capacity
        (replace(WORKING, cpu_waiting=0.5, storage=replace(READING, read_saturation=0.5)), "starved.unknown"),
        (replace(WORKING, memory_waiting=0.3), "starved.host_memory"),
        # two that are near each other are a tie
        (replace(WORKING, io_waiting=0.5, cpu_waiting=0.5), "starved.unknown"),
        # one loader that reads, then computes
        (
            replace(WORKING, tasks=Tasks(running=0.6, blocked=0.4, cores=0.6, busiest=0.6), io_waiting=0.4),
            "starved.host_cpu",
        ),
        (
            replace(
                WORKING,
                tasks=Tasks(running=0.6, blocked=0.4, cores=0.6, busiest=0.6),
                io_waiting=0.4,
                storage=replace(READING, latency_s=0.05, latency_usual_s=0.01),
            ),
            "starved.storage",
        ),
        (
            replace(
                WORKING,
                tasks=Tasks(running=0.6, blocked=0.4, cores=0.6, busiest=0.6),
                io_waiting=0.4,
                storage=replace(READING, read_saturation=0.9),
            ),
            "starved.storage",
        ),
        (
            Pipeline(tasks=Tasks(running=0.6, blocked=0.4, cores=0.6, busiest=0.6), io_waiting=0.4),
            "starved.host_cpu",
        ),
        # a thread that never sleeps beside one that always does is not one loader
        (replace(WORKING, tasks=replace(BLOCKED, running=0.2, blocked=0.8, busiest=0.9)), "starved.storage"),
    ],
)
def test_cause(by: Pipeline, expected: str) -> None:
    assert cause(by) == expected


def test_writes_after_copies_from_the_gpu_are_a_checkpoint() -> None:
    by = replace(WORKING, storage=Storage(write_bytes_per_s=1e9))
    assert cause(by, replace(GPU, pcie_transmit=0.3)) == "starved.checkpoint"


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (replace(GPU, pcie_receive=0.9), "starved.pcie"),
        (replace(GPU, pcie_receive=0.55), "starved.unknown"),
        (replace(GPU, pcie_receive=0.9, has_gpm=False), "starved.pcie"),
    ],
)
def test_a_full_link(of: GpuFeatures, expected: str) -> None:
    assert cause(WORKING, of) == expected


def test_without_gpm_a_full_link_never_counts_for_much() -> None:
    found = waiting_cause(replace(GPU, pcie_receive=1.0, has_gpm=False), WORKING, Settings())
    assert found.confidence == pytest.approx(0.6)


def test_the_numbers_that_decided_are_kept_with_the_runner_up() -> None:
    by = replace(WORKING, io_waiting=0.5, cpu_waiting=0.2)
    found = waiting_cause(GPU, by, Settings())
    assert found.cause == ("starved", "storage")
    assert found.runner_up == ("starved", "host_cpu")
    assert found.confidence == pytest.approx(1 - 1 / 3)
    pressure = next(item for item in found.evidence if item.input == "io pressure")
    assert (pressure.value, pressure.unit, pressure.score) == (0.5, "ratio", 1.0)


IDLE = replace(GPU, active=0.0)
ASLEEP = Tasks(running=0.0, blocked=0.0, cores=0.0)


@pytest.mark.parametrize(
    ("of", "by", "quiet"),
    [
        (IDLE, Pipeline(tasks=ASLEEP), True),
        (IDLE, Pipeline(tasks=ASLEEP, storage=READING), True),  # somebody else reads
        (replace(IDLE, pcie_bytes_per_s=50e6), Pipeline(tasks=ASLEEP), False),
        (IDLE, Pipeline(tasks=replace(ASLEEP, cores=0.5)), False),
        (IDLE, Pipeline(tasks=replace(ASLEEP, blocked=1.0)), False),
        # without the job's tasks the node as a whole has to be quiet
        (IDLE, Pipeline(host_cores=0.5, host_cpus=64, storage=Storage()), True),
        (IDLE, Pipeline(host_cores=5.0, host_cpus=64, storage=Storage()), False),
        (IDLE, Pipeline(host_cores=0.5, host_cpus=64, storage=READING), False),
        (IDLE, Pipeline(host_cores=0.5, host_cpus=64, storage=Storage(outstanding=1.0)), False),
        (IDLE, Pipeline(host_cores=0.5, host_cpus=64), False),
        (IDLE, Pipeline(storage=Storage()), False),
        (IDLE, Pipeline(tasks=replace(ASLEEP, cores=None), host_cores=0.5, host_cpus=64, storage=Storage()), True),
    ],
)
def test_a_quiet_job_is_idle_at_once_and_only_if_it_is_known_to_be_quiet(
    of: GpuFeatures, by: Pipeline, quiet: bool
) -> None:
    assert is_quiet(of, by) is quiet
    assert (cause(by, of) == "idle_held.") is quiet


def test_shares_of_tasks_are_of_those_that_are_awake() -> None:
    assert BLOCKED.blocked_ratio == 0.8
    assert ASLEEP.blocked_ratio == 0.0
    assert replace(TASKS, cpus=None).cpu_ratio is None


@pytest.mark.parametrize(
    ("of", "by", "idle"),
    [
        # between requests: nothing is prepared beside the kernels that run
        (replace(IDLE, active=0.1), Pipeline(tasks=ASLEEP), True),
        (replace(IDLE, active=0.4, active_around=0.4), Pipeline(tasks=replace(ASLEEP, cores=0.4)), True),
        (replace(IDLE, active=0.4, active_around=0.4), Pipeline(tasks=replace(ASLEEP, cores=0.9)), False),
        (replace(IDLE, active=0.4, peer_active=0.9), Pipeline(tasks=ASLEEP), False),  # … but a peer works on
        (replace(IDLE, active=0.4), Pipeline(tasks=replace(ASLEEP, blocked=1.0)), False),
        (replace(IDLE, active=0.4), Pipeline(tasks=ASLEEP, io_waiting=0.3), False),
        (replace(IDLE, active=0.4, pcie_bytes_per_s=50e6), Pipeline(tasks=ASLEEP), False),
        (replace(IDLE, active=0.99), Pipeline(tasks=ASLEEP), False),
    ],
)
def test_between_requests_a_gpu_is_idle_and_not_starved(of: GpuFeatures, by: Pipeline, idle: bool) -> None:
    assert (cause(by, of) == "idle_held.") is idle


def test_a_wait_for_memory_is_no_wait_for_storage() -> None:
    # a task that waits for a page to be found waits for its input too: both pressures rise together
    swapping = replace(WORKING, tasks=BLOCKED, io_waiting=0.4, memory_waiting=0.4)
    assert cause(swapping) == "starved.host_memory"
    assert cause(replace(swapping, memory_waiting=0.02)) == "starved.storage"
