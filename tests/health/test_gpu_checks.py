# SPDX-License-Identifier: Apache-2.0
"""Checks of a GPU, one by one, from states written by hand."""

from typing import Any

import pytest

from gpufeed.health.gpu import GPU_CHECKS
from gpufeed.model.frame import InputStatus, LaneStatus
from gpufeed.model.gpu import GpmInterval, NvlinkTotals
from gpufeed.model.ids import GpuKey, GpuUuid, LaneId
from gpufeed.model.state import NodeState
from health.states import ONE, START, TWO, fast, found, level, node, record, slow, xids

GPU = GpuKey(ONE)


def nvlinks(uuid: GpuUuid, up: int | None, links: int | None = 18) -> NvlinkTotals:
    return NvlinkTotals(gpu=GpuKey(uuid), links=links, links_up=up)


def with_one(condition: str, **changes: Any) -> dict[GpuUuid, Any]:
    return {ONE: record(ONE, condition, **changes), TWO: record(TWO)}


def gpm(sm_ratio: float | None) -> GpmInterval:
    return GpmInterval(gpu=GPU, began_ns=0, ended_ns=1, sm_ratio=sm_ratio)


@pytest.mark.parametrize(
    ("check", "state", "expected"),
    [
        pytest.param("lost", node(), 0, id="answers"),
        pytest.param("lost", node(gpus=with_one("lost")), 2, id="lost"),
        pytest.param("lost", node(gpus=with_one("missing")), 2, id="missing"),
        pytest.param("lost", node(gpus=with_one("hung")), None, id="hung says nothing of lost"),
        pytest.param("lost", node(gpus=with_one("released")), None, id="released says nothing of lost"),
        pytest.param("lost", node(samples={}), None, id="nothing fresh"),
        pytest.param("hung", node(), 0, id="not hung"),
        pytest.param("hung", node(gpus=with_one("hung")), 2, id="hung"),
        pytest.param("hung", node(gpus=with_one("lost")), None, id="lost says nothing of hung"),
        pytest.param("driver_error", node(), 0, id="no error"),
        pytest.param("driver_error", node(gpus=with_one("error")), 1, id="error"),
        pytest.param("driver_error", node(gpus=with_one("denied")), None, id="denied"),
        pytest.param("recovery_action", node(), None, id="old driver: no such field"),
        pytest.param("recovery_action", node(slow(recovery_action=None)), None, id="unsupported"),
        pytest.param("recovery_action", node(slow(recovery_action=0)), 0, id="none"),
        pytest.param("recovery_action", node(slow(recovery_action=1)), 2, id="reset"),
        pytest.param("recovery_action", node(slow(recovery_action=3)), 1, id="drain first"),
        pytest.param("recovery_action", node(slow(recovery_action=99)), 2, id="one nobody has heard of"),
        pytest.param("recovery_action", node(gpus=with_one("reset_required")), 2, id="reset required"),
        pytest.param("xid", node(), 0, id="events come and none did"),
        pytest.param("xid", node(inputs={}), None, id="events do not come"),
        pytest.param(
            "xid", node(inputs={("xid", ONE): InputStatus("xid", ONE, "denied")}), None, id="events are denied"
        ),
        pytest.param("xid", node(gpus=with_one("error")), None, id="nobody can look"),
        pytest.param("xid", node(xids=xids(ONE, x79=1)), 2, id="fatal"),
        pytest.param("xid", node(xids=xids(ONE, x94=1)), 1, id="contained"),
        pytest.param("xid", node(xids=xids(ONE, x31=1)), 0, id="the application's fault"),
        pytest.param("hw_thermal", node(), None, id="no reading"),
        pytest.param("hw_thermal", node(fast(clock_events=None)), None, id="no mask"),
        pytest.param("hw_thermal", node(fast(clock_events=0x4)), 0, id="power cap is not heat"),
        pytest.param("hw_thermal", node(fast(clock_events=0x48)), 1, id="heat"),
        pytest.param("power_brake", node(fast(clock_events=0x88)), 1, id="brake"),
        pytest.param("pcie_width", node(), None, id="no width"),
        pytest.param("pcie_width", node(slow(pcie_width=16)), 0, id="full width"),
        pytest.param("pcie_width", node(slow(pcie_width=8), slow(TWO, pcie_width=16)), 1, id="half, neighbour full"),
        pytest.param("pcie_width", node(slow(pcie_width=8), slow(TWO, pcie_width=8)), 0, id="all wired so"),
        pytest.param(
            "pcie_width", node(slow(pcie_width=8), gpus={ONE: record(ONE)}), 1, id="half, and nothing to compare"
        ),
        pytest.param(
            "pcie_width", node(slow(pcie_width=8), gpus={ONE: record(ONE, identity=None)}), None, id="no maximum"
        ),
        pytest.param("pcie_generation", node(slow(pcie_generation=1)), None, id="idle links rest"),
        pytest.param("pcie_generation", node(fast(utilization_ratio=1.0)), None, id="busy, no generation"),
        pytest.param(
            "pcie_generation", node(slow(pcie_generation=1), fast(utilization_ratio=0.9)), 1, id="slow while busy"
        ),
        pytest.param("pcie_generation", node(slow(pcie_generation=5), gpm(0.9)), 0, id="full speed"),
        pytest.param("pcie_generation", node(slow(pcie_generation=1), gpm(None)), None, id="not known whether busy"),
        pytest.param(
            "pcie_generation",
            node(slow(pcie_generation=1), gpm(0.9), gpus={ONE: record(ONE, identity=None)}),
            None,
            id="no maximum generation",
        ),
        pytest.param("nvlink", node(), None, id="no links"),
        pytest.param("nvlink", node(nvlinks(ONE, None)), None, id="not known which are up"),
        pytest.param("nvlink", node(nvlinks(ONE, 18)), 0, id="all up"),
        pytest.param("nvlink", node(nvlinks(ONE, 17)), 1, id="one down"),
        pytest.param("nvlink", node(nvlinks(ONE, 0), nvlinks(TWO, 18)), 2, id="all down, neighbour's up"),
        pytest.param("nvlink", node(nvlinks(ONE, 0), nvlinks(TWO, 0)), None, id="no bridge"),
    ],
)
def test_a_check_says_what_the_state_shows_and_nothing_else(check: str, state: NodeState, expected: int | None) -> None:
    assert level(state, GPU, check) == expected


def test_a_hung_gpu_names_the_call_that_hangs() -> None:
    lane = LaneStatus(LaneId("gpu0"), "nvml", START, 2, 8, call="nvmlDeviceGetTemperature")
    verdict = found(node(gpus=with_one("hung"), lanes={lane.lane: lane}), GPU, "hung")
    assert verdict is not None
    assert "nvmlDeviceGetTemperature on GPU 0" in verdict.reason
    assert verdict.action == "node_reboot"


def test_a_lost_gpu_says_what_the_driver_said() -> None:
    verdict = found(node(gpus=with_one("lost", detail="GPU is lost")), GPU, "lost")
    assert verdict is not None
    assert verdict.reason == "GPU 0 is lost: GPU is lost"
    assert verdict.is_latched


def test_one_gpu_s_fault_leaves_its_neighbour_well() -> None:
    state = node(gpus=with_one("lost"))
    assert {check: level(state, GpuKey(TWO), check) for check in ("lost", "hung", "xid")} == {
        "lost": 0,
        "hung": 0,
        "xid": 0,
    }


def test_every_check_can_be_absent() -> None:
    empty = node(gpus={ONE: record(ONE, "denied")}, samples={}, inputs={})
    assert [check for check in GPU_CHECKS if level(empty, GPU, check) is not None] == []
