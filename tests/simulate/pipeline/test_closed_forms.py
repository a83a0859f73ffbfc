# SPDX-License-Identifier: Apache-2.0
"""Both truths where arithmetic knows them: pipelines of one bottleneck, barriers, caches. Nothing varies by chance."""

import math
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from gpufeed.simulate.activity import Activity
from gpufeed.simulate.pipeline.counterfactual import gain, judge
from gpufeed.simulate.pipeline.loader import cached_share
from gpufeed.simulate.pipeline.node import JudgedNode
from gpufeed.simulate.pipeline.scenario import JudgedScenario
from gpufeed.simulate.pipeline.stages import Stage
from gpufeed.simulate.pipeline.workload import (
    Checkpoint,
    Collective,
    Input,
    Job,
    Offload,
    Storage,
    Training,
    Trouble,
    Work,
)

S = 1_000_000_000
STEP_S = 0.2
BATCH_BYTES = 50e6
LIFE_S = 200
COMPUTING = Activity(truth=("busy", "tensor"), graphics=1.0, sm=0.9, tensor=0.5, dram=0.4, power=0.8)
AT_ONCE = Storage(of_demand=1e6, rtt_s=1e-7, spread=0.0)
INSTANT = Input(
    storage=AT_ONCE, batch_bytes=BATCH_BYTES, spread=0.0, cpu_s=0.0, cpu_spread=0.0, workers=4, copy_bytes=0.0
)
"""Batches that are there as soon as they are asked for."""
H100_PCIE_BYTES_PER_S = 63e9 * 0.88  # sixteen lanes of the fifth generation, and what copies get of them
H100_NVLINK_BYTES_PER_S = 18 * 26.562e9  # links, as the driver tells their speed
H100_NIC_BYTES_PER_S = 50e9  # 400 Gb/s


def told(
    of: Input | None, *, work: Work | None = None, troubles: tuple[Trouble, ...] = (), **more: Any
) -> JudgedScenario:
    works = (work or Work(seconds=STEP_S, activity=COMPUTING),)
    training = replace(Training(input=of, works=works, spread=0.0), **more)
    return JudgedScenario(
        name="closed form", family="healthy", description="", jobs=(Job(workload=training),), troubles=troubles
    )


def lived(scenario: JudgedScenario, seconds: int = LIFE_S, gpus: int = 2) -> JudgedNode:
    node = JudgedNode(scenario, "h100", gpus, seed=1)
    node.advance(seconds * S)
    return node


def share(node: JudgedNode, state: str, cause: str, gpu: int = 0) -> float:
    return node.truth_ns(gpu).get((state, cause), 0) / node.age_ns


FOUR_CYCLES = 4 * STEP_S
"""Four loaders give a batch a step if each takes so long."""
EXCHANGED = Collective(nvlink_bytes=STEP_S * H100_NVLINK_BYTES_PER_S * 0.8, nvlink_reach=0.8)
SENT = Collective(fabric_bytes=STEP_S * H100_NIC_BYTES_PER_S * 0.8, fabric_reach=0.8)

BEHIND = {
    # the stage works while the GPU computes: a step takes as long as the slower of both
    "a server that gives half": (Stage.STORAGE, told(replace(INSTANT, storage=replace(AT_ONCE, of_demand=0.5))), 0.5),
    "a server that gives a quarter": (
        Stage.STORAGE, told(replace(INSTANT, storage=replace(AT_ONCE, of_demand=0.25))), 0.75,
    ),
    "a server that gives four fifths": (
        Stage.STORAGE, told(replace(INSTANT, storage=replace(AT_ONCE, of_demand=0.8))), 0.2,
    ),
    "loaders that compute twice as long as they may": (
        Stage.HOST_CPU, told(replace(INSTANT, cpu_s=2 * FOUR_CYCLES)), 0.5,
    ),
    "loaders with half the processors they need": (
        Stage.HOST_CPU, told(replace(INSTANT, cpu_s=FOUR_CYCLES, cores=2)), 0.5,
    ),
    "files of which half can be opened": (
        Stage.STORAGE,
        told(replace(INSTANT, files_per_batch=100, storage=replace(AT_ONCE, file_s=1e-7, files_per_s=2 * 250.0))), 0.5,
    ),
    "copies that fill the link": (
        Stage.PCIE, told(replace(INSTANT, copy_bytes=2 * STEP_S * H100_PCIE_BYTES_PER_S)), 0.5,
    ),
}  # fmt: skip
BETWEEN = {
    # the GPU waits while the stage works: a step takes as long as both together
    "copies that nobody makes ahead": (
        Stage.PCIE, told(replace(INSTANT, copies_ahead=False, copy_bytes=STEP_S * H100_PCIE_BYTES_PER_S)), 0.5,
    ),
    "no loader at all": (Stage.HOST_CPU, told(replace(INSTANT, workers=0, cpu_s=STEP_S / 3)), 0.25),
    "a main thread between steps": (Stage.HOST_CPU, told(None, loop_s=STEP_S), 0.5),
    "launches of half the time": (
        Stage.HOST_CPU, told(None, work=Work(seconds=STEP_S, activity=COMPUTING, launch_gap=0.5)), 0.5,
    ),
    "an optimizer on the host": (
        Stage.HOST_CPU, told(None, offload=Offload(bytes=0.0, cpu_s=8 * STEP_S, cores=8)), 0.5,
    ),
    "exchanges over full links": (
        Stage.NVLINK, told(None, work=Work(seconds=STEP_S, activity=COMPUTING, collective=EXCHANGED)), 0.5,
    ),
    "exchanges over full cards": (
        Stage.FABRIC, told(None, work=Work(seconds=STEP_S, activity=COMPUTING, collective=SENT)), 0.5,
    ),
    "checkpoints": (
        Stage.CHECKPOINT,
        # every ten steps: a second to write in ranks that share the server, half a second to copy and half to serialize
        told(None, checkpoint=Checkpoint(
            every_s=10 * STEP_S, bytes=0.5 * H100_PCIE_BYTES_PER_S,
            serialize_bytes_per_s=H100_PCIE_BYTES_PER_S,
            storage=Storage(write_bytes_per_s=H100_PCIE_BYTES_PER_S),
        )), 0.5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*BEHIND, *BETWEEN])
def test_a_pipeline_with_one_bottleneck_waits_for_that_for_as_long_as_arithmetic_says(name: str) -> None:
    stage, scenario, waiting = (BEHIND | BETWEEN)[name]
    node = lived(scenario)
    for gpu in range(2):
        assert share(node, "starved", stage.value, gpu) == pytest.approx(waiting, abs=0.01)
        starved_ns = sum(ns for (state, _), ns in node.truth_ns(gpu).items() if state == "starved")
        assert share(node, "starved", stage.value, gpu) * node.age_ns == pytest.approx(starved_ns, rel=0.02)


@pytest.mark.parametrize("name", [*BEHIND, *BETWEEN])
def test_a_bottleneck_that_takes_no_time_gives_all_waiting_back_and_is_the_only_cause(name: str) -> None:
    stage, scenario, waiting = (BEHIND | BETWEEN)[name]
    for verdict in judge(scenario, 1, LIFE_S * S, gpus=2):
        assert verdict.sufficient == {stage}
        assert verdict.gained_s[stage] == pytest.approx(waiting * LIFE_S, abs=0.015 * LIFE_S)


@pytest.mark.parametrize("name", BEHIND)
def test_twice_the_speed_of_a_stage_behind_computing_gives_half_the_time_or_all_waiting(name: str) -> None:
    stage, scenario, _ = BEHIND[name]
    node = lived(scenario)
    twice, all_of_it = gain(node, stage, 2.0, 1), gain(node, stage, math.inf, 1)
    for gained_s, most_s in zip(twice, all_of_it, strict=True):
        assert gained_s == pytest.approx(min(LIFE_S / 2, most_s), abs=0.015 * LIFE_S)


@pytest.mark.parametrize("name", BETWEEN)
def test_twice_the_speed_of_a_stage_between_steps_gives_half_its_waiting(name: str) -> None:
    stage, scenario, _ = BETWEEN[name]
    node = lived(scenario)
    twice, all_of_it = gain(node, stage, 2.0, 1), gain(node, stage, math.inf, 1)
    for gained_s, most_s in zip(twice, all_of_it, strict=True):
        assert gained_s == pytest.approx(most_s / 2, abs=0.015 * LIFE_S)


def test_a_stage_that_nobody_waits_for_gives_nothing_however_fast_it_is() -> None:
    node = lived(told(replace(INSTANT, storage=replace(AT_ONCE, of_demand=0.5))))
    for stage in (Stage.HOST_CPU, Stage.PCIE, Stage.NVLINK, Stage.FABRIC, Stage.PEER, Stage.CHECKPOINT):
        assert gain(node, stage, math.inf, 1) == pytest.approx([0.0, 0.0], abs=0.5)


def test_stages_that_each_hold_it_up_as_much_are_no_cause_alone() -> None:
    half = replace(INSTANT, storage=replace(AT_ONCE, of_demand=0.5), cpu_s=2 * FOUR_CYCLES, workers=12, cores=4)
    node = lived(told(half))
    # all loaders ask at once in the beginning, and share the server: nobody has a batch for some seconds
    assert sum(share(node, "starved", of) for of in ("storage", "host_cpu")) == pytest.approx(0.5, abs=0.06)
    for stage in (Stage.STORAGE, Stage.HOST_CPU):
        assert gain(node, stage, math.inf, 1) == pytest.approx([0.0, 0.0], abs=0.05 * LIFE_S)


BARRIER = Work(seconds=STEP_S, activity=COMPUTING, collective=Collective(nvlink_bytes=1.0))


@pytest.mark.parametrize("slow", [2, 0])
def test_a_barrier_with_one_slow_rank_makes_all_others_wait_for_it(slow: int) -> None:
    scenario = told(None, work=BARRIER, troubles=(Trouble(kind="rank_slow", factor=0.5, gpu=slow),))
    node = lived(scenario, gpus=4)
    for gpu in range(4):
        assert share(node, "starved", "peer", gpu) == pytest.approx(0.0 if gpu == slow else 0.5, abs=0.01)
        assert share(node, "busy", "tensor", gpu) == pytest.approx(1.0 if gpu == slow else 0.5, abs=0.01)
    others = [verdict for at, verdict in enumerate(judge(scenario, 1, LIFE_S * S, gpus=4)) if at != slow]
    for verdict in others:
        assert verdict.gained_s[Stage.PEER] == pytest.approx(LIFE_S / 2, abs=0.015 * LIFE_S)
        assert verdict.sufficient == {Stage.PEER}


def test_why_the_slow_rank_is_slow_is_kept_as_the_root_of_the_others_waiting() -> None:
    late = replace(INSTANT, storage=replace(AT_ONCE, of_demand=4.0))
    # its fetches take sixteen times the time the server needs for one at a full rate of four times what is asked for
    trouble = Trouble(kind="late_input", factor=1 / 64, gpu=1)
    node = lived(told(late, work=BARRIER, troubles=(trouble,)), gpus=4)
    assert share(node, "starved", "storage", 1) > 0.5
    for gpu in (0, 2, 3):
        waited_ns = node.truth_ns(gpu)["starved", "peer"]
        assert waited_ns == pytest.approx(node.truth_ns(1)["starved", "storage"], rel=0.03)
        assert node.gpus[gpu].roots_ns["starved", "storage"] == pytest.approx(waited_ns, rel=0.03)


@pytest.mark.parametrize(
    ("reason", "factor", "cause"),
    [
        ("hw_thermal", 0.5, ("throttled", "thermal")),
        ("hw_power_brake", 0.5, ("throttled", "power_brake")),
        ("sw_power_cap", 0.5, ("throttled", "power_cap")),
        ("sw_power_cap", 0.8, ("busy", "tensor")),
    ],
)
def test_a_clock_that_is_held_down_costs_what_it_is_held_down_by(
    reason: str, factor: float, cause: tuple[str, str]
) -> None:
    node = lived(told(None, troubles=(Trouble(kind="clock", factor=factor, reason=reason),)))
    assert share(node, *cause) == pytest.approx(1.0, abs=0.001)
    assert gain(node, Stage.CLOCK, math.inf, 1) == pytest.approx([(1 - factor) * LIFE_S] * 2, abs=1.0)


def test_a_cache_that_fits_ends_the_waiting_with_the_first_epoch() -> None:
    epoch = 200  # steps
    slow = replace(AT_ONCE, of_demand=0.5)
    fits = replace(INSTANT, storage=slow, dataset_bytes=epoch * BATCH_BYTES, cache_bytes=epoch * BATCH_BYTES)
    node = lived(told(fits), 300)
    first_s = epoch * STEP_S / 0.5
    # loaders are ahead by as many batches as they may be when the first epoch ends
    assert node.truth_ns(0)["starved", "storage"] / S == pytest.approx(first_s / 2, abs=2.0)
    before = dict(node.truth_ns(0))
    node.advance(100 * S)
    assert node.truth_ns(0)["starved", "storage"] == before["starved", "storage"]
    (gained_s, _) = gain(node, Stage.STORAGE, math.inf, 1)
    assert gained_s == pytest.approx(first_s / 2, abs=2.0)


def test_a_cache_that_fits_half_leaves_most_of_the_waiting() -> None:
    half = replace(
        INSTANT, storage=replace(AT_ONCE, of_demand=0.5), dataset_bytes=50 * BATCH_BYTES, cache_bytes=25 * BATCH_BYTES
    )
    missing = 1 - (0.5 + 0.5 * math.log(0.5))
    node = lived(told(half), 1000)
    assert share(node, "starved", "storage") == pytest.approx(1 - 0.5 / missing, abs=0.02)


@pytest.mark.parametrize("fits", [0.1, 0.5, 0.8])
def test_a_cache_keeps_of_random_epochs_what_one_does_that_is_played_through(fits: float) -> None:
    records, random = 3000, Random(5)  # noqa: S311  # nothing is kept secret with it
    kept: dict[int, None] = {}
    found = 0
    for epoch in range(4):
        for record in _shuffled(records, random):
            if record in kept:
                del kept[record]
                found += epoch > 0
            elif len(kept) >= fits * records:
                del kept[next(iter(kept))]
            kept[record] = None
    assert cached_share(fits) == pytest.approx(found / (3 * records), abs=0.02)


def test_a_cache_keeps_all_or_nothing_at_its_ends() -> None:
    assert cached_share(0.0) == 0.0
    assert cached_share(1.0) == cached_share(2.0) == 1.0


def _shuffled(count: int, random: Random) -> Iterator[int]:
    order = list(range(count))
    random.shuffle(order)
    return iter(order)
