# SPDX-License-Identifier: Apache-2.0
"""Each scenario is what its name says, in truth and in the readings that should show it."""

import pytest

from gpufeed.simulate.activity import Cause
from gpufeed.simulate.block import INTEGRALS
from gpufeed.simulate.hardware import A100, H100, GpuModel
from gpufeed.simulate.node import make_truth
from gpufeed.simulate.scenarios import SCENARIOS
from gpufeed.simulate.truth import NodeTruth

S = 1_000_000_000
STATES = {"busy", "communicating", "starved", "throttled", "idle_held", "idle_free", "fault", "unknown"}
CAUSES = {
    "busy": {"tensor", "memory", "other"},
    "communicating": {"nvlink", "fabric", "pcie_p2p"},
    "starved": {
        "storage", "checkpoint", "host_cpu", "host_memory", "pcie", "nvlink", "fabric", "peer", "unknown",
    },
    "throttled": {"thermal", "power_brake", "power_cap"},
    "idle_held": {""},
    "idle_free": {""},
    "fault": {"lost", "xid", "ecc", "fabric_state", "recovery_pending", "hung"},
    "unknown": {"no_data", "stale", "conflict", "unsupported"},
}  # fmt: skip

MODELS = pytest.mark.parametrize("model", [H100, A100], ids=["h100", "a100"])


def told(name: str, model: GpuModel = H100, gpus: int = 8, seconds: int = 42) -> NodeTruth:
    truth = make_truth(SCENARIOS[name], model, gpus)
    truth.advance(seconds * S)
    return truth


def mean(truth: NodeTruth, gpu: int, name: str) -> float:
    return truth.gpus[gpu].integrals[INTEGRALS.index(name)] / (truth.age_ns / S)


def during(truth: NodeTruth, gpu: int, cause: Cause, name: str) -> float:
    """The level of an integral while a (state, cause) is true, by walking through a cycle."""
    for _ in range(100_000):
        if truth.gpus[gpu].truth == cause:
            return truth.gpus[gpu].levels.gpu[INTEGRALS.index(name)]
        truth.advance(10_000_000)
    raise AssertionError(cause)


@MODELS
@pytest.mark.parametrize(
    ("name", "cause", "least"),
    [
        ("healthy", ("communicating", "nvlink"), 0.05),
        ("storage_starved", ("starved", "storage"), 0.6),
        ("host_cpu_starved", ("starved", "host_cpu"), 0.6),
        ("nvlink_bound", ("starved", "nvlink"), 0.5),
        ("fabric_bound", ("starved", "fabric"), 0.5),
        ("straggler_peer", ("starved", "peer"), 0.5),
        ("thermal_throttle", ("throttled", "thermal"), 0.5),
        ("idle_held", ("idle_held", ""), 1.0),
        ("idle_free", ("idle_free", ""), 1.0),
        ("gpu_lost", ("fault", "lost"), 0.7),
        ("gpu_xid", ("fault", "xid"), 0.7),
        ("driver_hang", ("fault", "hung"), 0.7),
        ("driver_absent_then_present", ("unknown", "no_data"), 0.3),
    ],
)
def test_what_stands_out_beside_being_busy_is_the_name(model: GpuModel, name: str, cause: Cause, least: float) -> None:
    gpu = told(name, model).gpus[3]
    others = {key: ns for key, ns in gpu.truth_ns.items() if key[0] != "busy"}
    assert max(others, key=lambda key: others[key]) == cause
    assert others[cause] >= least * 42 * S


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_every_truth_is_a_state_and_cause_there_is(name: str) -> None:
    for gpu in told(name).gpus:
        for state, cause in gpu.truth_ns:
            assert cause in CAUSES[state]
    assert set(CAUSES) == STATES


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_a_scenario_says_what_it_is_in_one_line(name: str) -> None:
    scenario = SCENARIOS[name]
    assert scenario.name == name
    assert scenario.description.endswith(".")
    assert "\n" not in scenario.description
    assert sum(phase.duration_ns for phase in scenario.phases) <= 2 * S


def test_a_starving_gpu_runs_no_kernel_while_its_loaders_sleep_in_the_kernel() -> None:
    truth = told("storage_starved")
    assert during(truth, 0, ("starved", "storage"), "graphics_s") == 0
    assert truth.host.blocked_tasks == 8 * 4
    assert truth.host.waiting_s["io_waiting_s"] > 0.9 * 42


def test_slow_storage_answers_twenty_times_later() -> None:
    def rtt(name: str) -> float:
        gpu = told(name).gpus[0]
        return gpu.host_total("nfs_read_rtt_s") / gpu.host_total("nfs_reads")

    assert rtt("storage_starved") == pytest.approx(20 * rtt("healthy"))


def test_slow_loaders_fill_the_processors_and_none_blocks() -> None:
    truth = told("host_cpu_starved")
    assert truth.host.busy_s > 0.97 * truth.host.cpus * 42
    assert truth.host.iowait_s == 0
    assert truth.host.blocked_tasks == 0


def test_bound_by_nvlink_is_near_its_capacity_with_few_multiprocessors() -> None:
    truth = told("nvlink_bound")
    cause = ("starved", "nvlink")
    assert during(truth, 0, cause, "nvlink_transmit_bytes") > 0.85 * H100.nvlink_bytes_per_s
    assert during(truth, 0, cause, "graphics_s") == 1.0
    assert during(truth, 0, cause, "sm_s") < 0.3
    assert during(truth, 0, cause, "tensor_s") == 0


def test_bound_by_the_fabric_is_near_its_rate_and_held_back() -> None:
    truth = told("fabric_bound")
    gpu = truth.gpus[0]
    share = gpu.truth_ns[("starved", "fabric")] / S
    other = gpu.truth_ns[("busy", "tensor")] / S
    moved = gpu.host_total("ib_transmit_bytes") - other * 0.06 * H100.nic_bytes_per_s
    assert moved / share > 0.85 * H100.nic_bytes_per_s
    assert gpu.host_total("ib_waiting_s") > 0.3 * share


def test_who_waits_for_a_peer_spins_and_moves_nothing() -> None:
    truth = told("straggler_peer")
    cause = ("starved", "peer")
    assert during(truth, 1, cause, "graphics_s") == 1.0
    assert during(truth, 1, cause, "sm_s") == pytest.approx(0.15)
    assert during(truth, 1, cause, "dram_s") < 0.01
    for nothing in ("tensor_s", "nvlink_receive_bytes", "nvlink_transmit_bytes"):
        assert during(truth, 1, cause, nothing) == 0
    assert truth.gpus[0].truth_ns[("busy", "tensor")] > 0.9 * 42 * S, "and the late one computes"


def test_a_hot_gpu_counts_it_most_of_the_time_and_slows_down() -> None:
    truth = told("thermal_throttle", seconds=40)
    assert mean(truth, 0, "hw_thermal_s") == pytest.approx(0.8)
    slow = make_truth(SCENARIOS["thermal_throttle"], H100, 1).gpus[0]
    assert slow.levels.sm_clock_mhz < 0.4 * H100.sm_clock_max_mhz
    assert truth.driver_version == "580.95.05"


def test_a_healthy_node_has_no_thermal_slowdown_and_no_pressure() -> None:
    truth = told("healthy")
    assert mean(truth, 0, "hw_thermal_s") == 0
    assert truth.host.waiting_s["io_waiting_s"] == 0
    assert mean(truth, 0, "graphics_s") == pytest.approx(1.0)


@pytest.mark.parametrize(("name", "held"), [("idle_held", True), ("idle_free", False)])
def test_idle_gpus_differ_in_who_holds_them(name: str, held: bool) -> None:
    truth = told(name)
    assert (truth.gpus[0].activity.occupant == "held") is held
    assert mean(truth, 0, "graphics_s") == 0
    assert truth.gpus[0].host_total("nfs_read_bytes") == 0


def test_only_the_victim_of_an_incident_suffers() -> None:
    for name in ("gpu_lost", "gpu_xid", "driver_hang"):
        states = [gpu.truth[0] for gpu in told(name).gpus]
        assert [index for index, state in enumerate(states) if state == "fault"] == [3], name


def test_an_xid_asks_for_a_reset_and_is_told_once() -> None:
    gpu = told("gpu_xid").gpus[3]
    assert (gpu.xids, gpu.recovery_action) == ([95], 1)


def test_a_port_that_is_down_moves_nothing() -> None:
    truth = told("ib_port_down", seconds=10)
    before = truth.gpus[3].host_total("ib_receive_bytes")
    truth.advance(10 * S)
    assert truth.gpus[3].host_total("ib_receive_bytes") == before
    assert truth.gpus[2].host_total("ib_receive_bytes") > before
    assert (truth.gpus[3].port_downs, truth.gpus[2].port_downs) == (1, 0)
