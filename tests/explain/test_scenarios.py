# SPDX-License-Identifier: Apache-2.0
"""What is said of every story of the simulated node, read by people: tests/golden/explain, and the truth of each."""

from pathlib import Path

import pytest

from gpufeed.clock import read_frame_time
from gpufeed.explain.explain import explain
from gpufeed.explain.shape import Explanation
from gpufeed.history.states import StateHistory
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.scenarios import SCENARIOS
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.step import Settings, initial, step

S = 1_000_000_000
TICK_NS = S // 2
GOLDEN = Path(__file__).parents[1] / "golden" / "explain"
TRUTHS = {
    "storage_starved": ("starved", "storage"),
    "host_cpu_starved": ("starved", "host_cpu"),
    "nvlink_bound": ("starved", "nvlink"),
    "fabric_bound": ("starved", "fabric"),
    "straggler_peer": ("starved", "peer"),
    "thermal_throttle": ("throttled", "thermal"),
    "idle_held": ("idle_held", ""),
    "idle_free": ("idle_free", ""),
    "healthy": ("busy", "tensor"),
    "gpu_lost": ("fault", "lost"),
    "driver_hang": ("fault", "hung"),
    "gpu_xid": ("fault", "xid"),
}
SECONDS = 40
pytestmark = pytest.mark.slow


def told(scenario: str, root: Path) -> Explanation:
    clock = SteppedClock()
    simulated = SteppedNode(scenario, gpus=8, root=root, clock=clock)
    node, history = initial(Settings(), read_frame_time(clock)), StateHistory()
    with simulated:
        probe = InlineProbe(simulated.config(), BUILTIN, clock, simulated.is_blocked)
        for _ in range(SECONDS * S // TICK_NS):
            node = step(node, probe.tick())
            history.append(node.state)
            simulated.advance(TICK_NS)
        probe.close()
    return explain(node.state, history.slots, 300, hostname="node1", is_simulated=True, has_job_names=True)


@pytest.fixture(params=sorted(SCENARIOS))
def story(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Explanation]:
    return request.param, told(request.param, tmp_path)


def test_every_story_is_told_in_few_lines_and_names_its_truth(
    story: tuple[str, Explanation], request: pytest.FixtureRequest
) -> None:
    name, found = story
    if name in TRUTHS:
        first = found.parts[0]
        assert (first.state, first.cause) == TRUTHS[name]
    assert len(found.lines) + 1 <= 12
    assert max(map(len, found.lines)) <= 110
    text = "\n".join(found.lines) + "\n"
    golden = GOLDEN / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        golden.write_text(text, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == text
