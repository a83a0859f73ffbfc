# SPDX-License-Identifier: Apache-2.0
"""The truth: exact whatever the steps, conserved, and cut where something changes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.simulate.activity import Activity, HostShare, Incident, Phase, Scenario
from gpufeed.simulate.block import FLOATS, INTEGRALS, POSITION
from gpufeed.simulate.hardware import A100, H100, boards
from gpufeed.simulate.node import make_truth
from gpufeed.simulate.scenarios import GPU_LOST, HEALTHY, SCENARIOS, STORAGE_STARVED
from gpufeed.simulate.truth import NodeTruth

MS = 1_000_000
S = 1_000_000_000


def integral(truth: NodeTruth, gpu: int, name: str) -> float:
    return truth.gpus[gpu].integrals[INTEGRALS.index(name)]


def gauge(truth: NodeTruth, gpu: int, name: str) -> float:
    return truth.gpus[gpu].record()[POSITION[name]]


def blinking(on_ms: int, off_ms: int) -> Scenario:
    work = Activity(truth=("busy", "other"), graphics=1.0, power=1.0, host=HostShare(trainer_cpu=1.0))
    rest = Activity(truth=("idle_held", ""), power=0.0)
    return Scenario(
        name="blinking",
        description="",
        phases=(
            Phase(duration_ns=on_ms * MS, activity=work),
            Phase(duration_ns=off_ms * MS, activity=rest),
        ),
    )


@given(
    steps=st.lists(st.integers(min_value=0, max_value=3 * S), max_size=12),
    on_ms=st.integers(min_value=1, max_value=700),
    off_ms=st.integers(min_value=1, max_value=700),
)
def test_integrals_do_not_depend_on_how_time_is_cut(steps: list[int], on_ms: int, off_ms: int) -> None:
    scenario = blinking(on_ms, off_ms)
    at_once, in_steps = make_truth(scenario, H100, 1), make_truth(scenario, H100, 1)
    at_once.advance(sum(steps))
    for step in steps:
        in_steps.advance(step)
    assert in_steps.gpus[0].integrals == pytest.approx(at_once.gpus[0].integrals, rel=1e-9, abs=1e-9)
    assert in_steps.gpus[0].truth_ns == at_once.gpus[0].truth_ns
    assert in_steps.gpus[0].truth == at_once.gpus[0].truth
    assert gauge(in_steps, 0, "power_w") == pytest.approx(gauge(at_once, 0, "power_w"), rel=1e-6)


@given(
    scenario=st.sampled_from(sorted(SCENARIOS)),
    steps=st.lists(st.integers(min_value=0, max_value=8 * S), max_size=8),
    gpus=st.integers(min_value=1, max_value=4),
)
def test_truth_seconds_sum_to_the_time_that_passed(scenario: str, steps: list[int], gpus: int) -> None:
    truth = make_truth(SCENARIOS[scenario], H100, gpus)
    before = [list(gpu.integrals) for gpu in truth.gpus]
    for step in steps:
        truth.advance(step)
        now = [list(gpu.integrals) for gpu in truth.gpus]
        assert all(b >= a for old, new in zip(before, now, strict=True) for a, b in zip(old, new, strict=True))
        before = now
    assert all(sum(gpu.truth_ns.values()) == sum(steps) for gpu in truth.gpus)
    assert truth.age_ns == sum(steps)


def test_a_phase_has_exactly_its_share() -> None:
    truth = make_truth(STORAGE_STARVED, H100, 2)
    truth.advance(8 * S)
    assert truth.gpus[1].truth_ns == {("busy", "tensor"): 3 * S, ("starved", "storage"): 5 * S}
    assert integral(truth, 1, "graphics_s") == pytest.approx(3.0)
    assert integral(truth, 1, "tensor_s") == pytest.approx(3.0 * 0.55)


def test_power_is_a_mean_on_hopper_and_the_moment_on_ga100() -> None:
    scenario = blinking(10_000, 1_000)
    hopper, ampere = make_truth(scenario, H100, 1), make_truth(scenario, A100, 1)
    for truth in (hopper, ampere):
        truth.advance(10_100 * MS)
    assert 70 < gauge(hopper, 0, "power_w") < 700
    assert gauge(hopper, 0, "power_instant_w") == 70
    assert gauge(ampere, 0, "power_w") == gauge(ampere, 0, "power_instant_w") == 52


def test_temperature_follows_slowly() -> None:
    hot = Activity(truth=("busy", "other"), temperature_c=80.0)
    cold = Activity(truth=("idle_held", ""), temperature_c=30.0)
    phases = (Phase(duration_ns=1 * S, activity=cold), Phase(duration_ns=600 * S, activity=hot))
    truth = make_truth(Scenario(name="warming", description="", phases=phases), H100, 1)
    truth.advance(2 * S)
    assert 30 < gauge(truth, 0, "temperature_c") < 40
    truth.advance(300 * S)
    assert gauge(truth, 0, "temperature_c") == pytest.approx(80, abs=0.1)


def test_an_incident_begins_and_ends_on_the_nanosecond() -> None:
    incident = Incident(kind="lost", gpu=0, from_ns=7 * MS + 1, until_ns=9 * MS)
    truth = make_truth(replace(HEALTHY, incidents=(incident,)), H100, 1)
    truth.advance(1 * S)
    assert truth.gpus[0].truth_ns[("fault", "lost")] == 2 * MS - 1
    assert not truth.gpus[0].is_lost


def test_a_lost_gpu_counts_nothing_but_its_idle_power() -> None:
    truth = make_truth(GPU_LOST, H100, 4)
    truth.advance(10 * S)
    before = integral(truth, 3, "graphics_s")
    truth.advance(10 * S)
    assert integral(truth, 3, "graphics_s") == before
    assert integral(truth, 2, "graphics_s") == pytest.approx(20.0)


def test_a_smaller_node_suffers_the_incident_at_its_last_gpu() -> None:
    truth = make_truth(GPU_LOST, H100, 2)
    truth.advance(11 * S)
    assert [gpu.truth[0] for gpu in truth.gpus] == ["busy", "fault"]


def test_the_host_waits_with_the_worst_and_stalls_with_the_best() -> None:
    def phase(waiting: float, stalled: float) -> tuple[Phase, ...]:
        share = HostShare(io_waiting=waiting, io_stalled=stalled, loaders_blocked=1, trainer_cpu=0.5)
        return (Phase(duration_ns=1 * S, activity=Activity(truth=("starved", "storage"), host=share)),)

    scenario = Scenario(name="two", description="", phases=phase(0.9, 0.5), others={1: phase(0.4, 0.2)})
    truth = make_truth(scenario, H100, 2)
    truth.advance(10 * S)
    assert truth.host.waiting_s["io_waiting_s"] == pytest.approx(9.0)
    assert truth.host.waiting_s["io_stalled_s"] == pytest.approx(2.0)
    assert truth.host.iowait_s == pytest.approx(20.0)
    assert truth.host.busy_s == pytest.approx(10 * (0.5 + 0.5 + 0.3))
    assert truth.host.cpus == 8


def test_busy_idle_and_waiting_processors_are_all_there_are() -> None:
    for scenario in SCENARIOS.values():
        truth = make_truth(scenario, H100, 3)
        truth.advance(30 * S)
        assert 0 <= truth.host.busy_s + truth.host.iowait_s <= truth.host.cpus * 30.0 * (1 + 1e-9)


@pytest.mark.parametrize("gpus", [0, 17])
def test_a_node_has_one_to_sixteen_gpus(gpus: int) -> None:
    with pytest.raises(ValueError, match="1 to 16"):
        make_truth(HEALTHY, H100, gpus)


def test_a_scenario_may_be_for_some_models_only() -> None:
    with pytest.raises(ValueError, match="for a100"):
        make_truth(replace(HEALTHY, models=("a100",)), H100, 1)


def test_boards_are_told_apart_and_the_same_everywhere() -> None:
    node = boards(H100, 16)
    for distinct in (
        {board.uuid for board in node},
        {board.serial for board in node},
        {board.pci_bus_id for board in node},
        {board.nic_pci_bus_id for board in node},
    ):
        assert len(distinct) == 16
    assert not {board.pci_bus_id for board in node} & {board.nic_pci_bus_id for board in node}
    assert boards(H100, 16)[5].uuid == boards(H100, 8)[5].uuid
    assert [board.numa_node for board in boards(H100, 8)] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert boards(H100, 1)[0].numa_node == 0


def test_a_record_has_a_place_for_every_name() -> None:
    truth = make_truth(HEALTHY, H100, 1)
    assert len(truth.gpus[0].record()) == len(POSITION)
    assert list(POSITION)[: len(FLOATS)] == list(FLOATS)
