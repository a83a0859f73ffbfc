# SPDX-License-Identifier: Apache-2.0
"""The NVML source in a whole probe, on nodes where something goes wrong."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpufeed.model.frame import Frame
from gpufeed.model.gpu import DriverInfo, GpmInterval, GpuCondition, GpuFast
from gpufeed.model.sample import Sample
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.nvml.source import NVML
from gpufeed.units import NS_PER_S
from nvml_bench import TICK_NS, enter

VICTIM = 3


class Run:
    """A stepped node and the probe that reads it."""

    def __init__(self, node: SteppedNode) -> None:
        self.node = node
        self.probe = InlineProbe(node.config(), (NVML,), node.clock, node.is_blocked)

    def frames(self, seconds: float) -> list[Frame]:
        frames = []
        for _ in range(round(seconds * NS_PER_S / TICK_NS)):
            frames.append(self.probe.tick())
            self.node.advance(TICK_NS)
        return frames


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[[str, int], Run]]:
    entered: list[Run] = []

    def start(scenario: str, gpus: int) -> Run:
        node = enter(tmp_path, scenario, gpus=gpus)
        node.__enter__()
        entered.append(Run(node))
        return entered[-1]

    yield start
    for each in entered:
        each.probe.close()
        each.node.__exit__(None, None, None)


def of_lane(frames: list[Frame], lane: str, kind: type[Sample]) -> list[Sample]:
    return [
        sample
        for frame in frames
        for reading in frame.readings
        if reading.lane == lane
        for sample in reading.samples
        if isinstance(sample, kind)
    ]


def conditions(frames: list[Frame], lane: str) -> list[str]:
    return [sample.condition for sample in of_lane(frames, lane, GpuCondition) if isinstance(sample, GpuCondition)]


def test_a_healthy_node_gives_every_gpu_at_every_tick(run: Callable[[str, int], Run]) -> None:
    frames = run("healthy", 8).frames(6)

    for index in range(8):
        assert conditions(frames, f"gpu{index}") == ["ok"] * 12
        assert len(of_lane(frames, f"gpu{index}", GpmInterval)) == 11  # the first tick seeds
    assert not [failure for frame in frames for failure in frame.failures]


def test_a_lost_gpu_takes_nothing_of_the_others_with_it(run: Callable[[str, int], Run]) -> None:
    frames = run("gpu_lost", 4).frames(20)

    said = conditions(frames, f"gpu{VICTIM}")
    assert said == ["ok"] * 20 + ["lost"] * 20
    assert len(of_lane(frames[20:], f"gpu{VICTIM}", GpuFast)) == 0
    for index in range(VICTIM):
        assert conditions(frames, f"gpu{index}") == ["ok"] * 40
        assert len(of_lane(frames, f"gpu{index}", GpuFast)) == 40
    assert {failure.lane for frame in frames for failure in frame.failures} == {f"gpu{VICTIM}"}


def test_a_hanging_gpu_is_named_with_its_call_and_holds_up_no_other(run: Callable[[str, int], Run]) -> None:
    frames = run("driver_hang", 4).frames(25)

    (victim,) = (lane for lane in frames[-1].lanes if lane.lane == f"gpu{VICTIM}")
    assert victim.busy_since_ns is not None
    assert frames[-1].time.monotonic_ns - victim.busy_since_ns > victim.stuck_after_ns
    assert victim.call.startswith("nvml")
    assert (victim.gpu, victim.uuid is not None) == (VICTIM, True)
    for index in range(VICTIM):
        assert conditions(frames, f"gpu{index}") == ["ok"] * 50
    init = [lane for lane in frames[-1].lanes if lane.lane == "nvml-init"]
    assert [lane.busy_since_ns for lane in init] == [None]


def test_a_driver_that_comes_later_needs_no_restart(run: Callable[[str, int], Run]) -> None:
    frames = run("driver_absent_then_present", 2).frames(45)

    said = [status.state for frame in frames for status in frame.inputs if status.input == "nvml"]
    assert said == ["absent", "available"]
    assert of_lane(frames[:30], "nvml-init", DriverInfo) == []
    assert conditions(frames, "gpu1")[-1] == "ok"


def test_release_closes_nvml_within_two_ticks_and_resume_opens_it_again(run: Callable[[str, int], Run]) -> None:
    running = run("healthy", 2)
    running.frames(3)
    running.probe.board.released = True
    released = running.frames(1)
    is_open = running.node.face.initialized
    running.probe.board.released = False
    resumed = running.frames(12)

    assert is_open == 0
    assert conditions(released, "gpu0")[-1] == "released"
    assert conditions(resumed, "gpu0")[-1] == "ok"
    assert running.node.face.initialized == 3  # the init lane and two GPUs, each its own share


def test_the_probe_gives_everything_back_when_it_ends(run: Callable[[str, int], Run]) -> None:
    running = run("healthy", 2)
    running.frames(3)
    running.probe.close()

    assert running.node.face.initialized == 0
    assert not running.node.face.gpm._taken
    assert not running.node.face.events._sets
