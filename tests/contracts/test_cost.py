# SPDX-License-Identifier: Apache-2.0
"""What a second of the simulated reference node costs, in counts: a change that makes it dearer has to say so."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.units import NS_PER_MS, NS_PER_S

pytestmark = pytest.mark.timeout(300)  # forty seconds of eight GPUs, on a machine that may be busy

BASELINE = "cost.json"
TICK_NS = 250 * NS_PER_MS
SETTLE_S = 12
MEASURED_S = 30
ALLOWED_GROWTH = 1.05

Cost = dict[str, float]


@pytest.fixture(scope="module")
def cost(tmp_path_factory: pytest.TempPathFactory) -> Cost:
    """Counts per second over half a minute, after start-up; 8 GPUs, default rhythm."""
    clock = SteppedClock()
    with SteppedNode("healthy", "h100", 8, root=tmp_path_factory.mktemp("node"), clock=clock) as node:
        probe = InlineProbe(node.config(), BUILTIN, clock, node.is_blocked)
        for _ in range(SETTLE_S * NS_PER_S // TICK_NS):
            node.advance(TICK_NS)
            first = probe.tick().cost
        frame_bytes = 0
        for _ in range(MEASURED_S * NS_PER_S // TICK_NS):
            node.advance(TICK_NS)
            frame = probe.tick()
            frame_bytes += len(msgspec.msgpack.encode(frame))
        last = frame.cost
        probe.close()
    assert first is not None
    assert last is not None
    return {
        "nvml_calls_per_s": (last.nvml_calls - first.nvml_calls) / MEASURED_S,
        "field_values_per_s": (last.field_values - first.field_values) / MEASURED_S,
        "file_reads_per_s": (last.file_reads - first.file_reads) / MEASURED_S,
        "frame_bytes_per_s": frame_bytes / MEASURED_S,
    }


def test_a_second_costs_no_more_than_the_baseline(
    cost: Cost, golden: Callable[[str, str], None], request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--update-golden"):
        golden(BASELINE, json.dumps(cost, indent=2) + "\n")
    baseline: Cost = json.loads((Path(__file__).parents[1] / "golden" / BASELINE).read_text(encoding="utf-8"))
    dearer = {name: (cost[name], limit) for name, limit in baseline.items() if cost[name] > limit * ALLOWED_GROWTH}
    assert not dearer, f"now, and the baseline: {dearer}; write it anew with --update-golden if it is worth it"


def test_the_measure_itself_counts_something(cost: Cost) -> None:
    assert all(value > 0 for value in cost.values())
