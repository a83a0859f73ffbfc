# SPDX-License-Identifier: Apache-2.0
"""XIDs by both ways, through lives of the probe and of the daemon: each counted once, latched once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufeed.clock import read_frame_time
from gpufeed.model.state import NodeState
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.step import Node, Settings, initial, restore, save, step
from gpufeed.units import NS_PER_S

S = NS_PER_S
UNCONTAINED = 95


class Life:
    """A daemon and its probe over a node that outlives them."""

    def __init__(self, simulated: SteppedNode, saved: bytes | None = None) -> None:
        self.simulated = simulated
        self.node: Node = restore(initial(Settings(), read_frame_time(simulated.clock)), saved)
        self.begin_probe()

    def begin_probe(self) -> None:
        self.probe = InlineProbe(self.simulated.config(), BUILTIN, self.simulated.clock, self.simulated.is_blocked)

    def run(self, seconds: int) -> NodeState:
        for _ in range(seconds):
            self.node = step(self.node, self.probe.tick())
            self.simulated.advance(S)
        return self.node.state

    def end(self) -> bytes:
        self.probe.close()
        return save(self.node)


@pytest.fixture
def simulated(tmp_path: Path) -> Iterator[SteppedNode]:
    with SteppedNode("healthy", "h100", 2, root=tmp_path, clock=SteppedClock()) as node:
        yield node


def counted(state: NodeState, index: int = 0) -> dict[int, int]:
    (uuid,) = (uuid for uuid, gpu in state.gpus.items() if gpu.index == index)
    return dict(state.xids[uuid].by_xid)


def state_of(state: NodeState, index: int = 0) -> str:
    (uuid,) = (uuid for uuid, gpu in state.gpus.items() if gpu.index == index)
    return next(found.current.state for key, found in state.attributions.items() if key.uuid == uuid)


def test_xid_twins_from_event_and_log_are_counted_once(simulated: SteppedNode) -> None:
    life = Life(simulated)
    life.run(4)
    simulated.give_xid(0, UNCONTAINED)
    state = life.run(4)
    life.end()
    assert counted(state) == {UNCONTAINED: 1}
    assert counted(state, 1) == {}
    assert state_of(state) == "fault"


def test_a_probe_that_dies_reads_the_log_again_and_counts_nothing_again(simulated: SteppedNode) -> None:
    life = Life(simulated)
    life.run(4)
    simulated.give_xid(0, UNCONTAINED)
    life.run(10)
    life.probe.close()
    simulated.advance(2 * S)
    life.begin_probe()
    state = life.run(10)
    life.end()
    assert counted(state) == {UNCONTAINED: 1}


def test_what_happened_before_the_first_start_is_history_and_pages_nobody(simulated: SteppedNode) -> None:
    simulated.give_xid(0, UNCONTAINED)
    simulated.advance(60 * S)
    life = Life(simulated)
    state = life.run(6)
    life.end()
    assert counted(state) == {}
    (uuid,) = (uuid for uuid, gpu in state.gpus.items() if gpu.index == 0)
    assert set(state.xids[uuid].last_wall_s) == {UNCONTAINED}
    assert state_of(state) == "busy"


def test_kernel_log_replay_after_a_daemon_restart_counts_nothing_again(simulated: SteppedNode) -> None:
    first = Life(simulated)
    first.run(4)
    simulated.give_xid(0, 31)
    first.run(6)
    saved = first.end()
    simulated.advance(2 * S)
    second = Life(simulated, saved)
    state = second.run(8)
    second.end()
    assert counted(state) == {31: 1}
    assert state_of(state) == "busy"


def test_an_xid_during_a_restart_of_two_seconds_is_counted_and_latched_once(simulated: SteppedNode) -> None:
    first = Life(simulated)
    first.run(6)
    saved = first.end()
    simulated.advance(S)
    simulated.give_xid(0, UNCONTAINED)
    simulated.advance(S)
    second = Life(simulated, saved)
    state = second.run(8)
    assert counted(state) == {UNCONTAINED: 1}
    assert state_of(state) == "fault"
    third = Life(simulated, second.end())
    state = third.run(8)
    third.end()
    assert counted(state) == {UNCONTAINED: 1}
    assert state_of(state) == "fault"
