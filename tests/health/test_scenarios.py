# SPDX-License-Identifier: Apache-2.0
"""Health of simulated nodes: what befell them is said of the right GPU, and of no other."""

from pathlib import Path

import pytest

from gpufeed.clock import read_frame_time
from gpufeed.model.ids import GpuKey
from gpufeed.model.state import NodeState
from gpufeed.probe.inline import InlineProbe
from gpufeed.signals.settings import Settings
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.step import acknowledge, initial, step
from gpufeed.units import NS_PER_S

STEP_NS = NS_PER_S // 2


def after(
    scenario: str, root: Path, seconds: int, give_xid: int | None = None, ack_at_s: int | None = None
) -> NodeState:
    """The node some time into a scenario; with `give_xid`, its first GPU reports that halfway."""
    clock = SteppedClock()
    with SteppedNode(scenario, gpus=2, root=root, clock=clock) as simulated:
        probe = InlineProbe(simulated.config(), BUILTIN, clock, simulated.is_blocked)
        node = initial(Settings(), read_frame_time(clock))
        for number in range(seconds * 2):
            if ack_at_s is not None and number == ack_at_s * 2:
                for uuid in node.state.gpus:
                    node = acknowledge(node, uuid)
            node = step(node, probe.tick())
            if give_xid is not None and number == seconds:
                simulated.give_xid(0, give_xid)
            simulated.advance(STEP_NS)
        return node.state


def bad(state: NodeState) -> dict[tuple[int, str], int]:
    """Levels over 0 of GPUs, by index and check."""
    return {
        (state.gpus[subject.uuid].index, check): verdict.level
        for (subject, check), verdict in state.verdicts.items()
        if isinstance(subject, GpuKey) and verdict.level > 0
    }


@pytest.mark.parametrize("scenario", ["healthy", "storage_starved", "idle_free", "idle_held", "straggler_peer"])
def test_a_node_that_is_well_is_well(scenario: str, tmp_path: Path) -> None:
    state = after(scenario, tmp_path, 40)
    assert bad(state) == {}
    checks = {check for subject, check in state.verdicts if isinstance(subject, GpuKey)}
    assert {"lost", "hung", "xid", "driver_error", "hw_thermal", "pcie_width"} <= checks
    assert {verdict.level for verdict in state.verdicts.values()} == {0}


def test_a_lost_gpu_is_lost_and_its_neighbour_is_not(tmp_path: Path) -> None:
    assert {check: level for (_, check), level in bad(after("gpu_lost", tmp_path, 60)).items()} == {"lost": 2}


def test_a_hung_gpu_is_hung_and_its_neighbour_is_not(tmp_path: Path) -> None:
    assert {check: level for (_, check), level in bad(after("driver_hang", tmp_path, 60)).items()} == {"hung": 2}


def test_a_gpu_that_asks_for_a_reset_after_an_xid_is_failed_twice(tmp_path: Path) -> None:
    found = {check: level for (_, check), level in bad(after("gpu_xid", tmp_path, 60)).items()}
    assert found == {"xid": 2, "recovery_action": 2}


def test_a_fatal_xid_is_latched_while_the_gpu_works_on_until_somebody_acknowledges_it(tmp_path: Path) -> None:
    assert bad(after("healthy", tmp_path / "a", 40, give_xid=119)) == {(0, "xid"): 2}
    assert bad(after("healthy", tmp_path / "b", 40, give_xid=119, ack_at_s=35)) == {}


def test_heat_is_seen_while_it_slows_the_gpu_down(tmp_path: Path) -> None:
    assert {check for _, check in bad(after("thermal_throttle", tmp_path, 60))} == {"hw_thermal"}


def test_a_driver_that_comes_late_is_missed_until_it_comes(tmp_path: Path) -> None:
    assert after("driver_absent_then_present", tmp_path / "a", 20).verdicts["host", "driver"].level == 2
    assert after("driver_absent_then_present", tmp_path / "b", 120).verdicts["host", "driver"].level == 0
