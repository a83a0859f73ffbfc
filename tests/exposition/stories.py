# SPDX-License-Identifier: Apache-2.0
"""Scenarios of the simulated node, told to their end through the real sources and the real fold."""

from pathlib import Path

from gpufeed.clock import read_frame_time
from gpufeed.model.ids import StorageKey
from gpufeed.model.state import NodeState
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.layout import DEFAULT, Layout
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.step import Capacity, Settings, initial, step
from gpufeed.units import NS_PER_MS, NS_PER_S

TICK_NS = 250 * NS_PER_MS
DESCRIBED = Settings(storage_capacity={StorageKey("nfs", "/data"): Capacity(read_bytes_per_s=4e9)})


def tell(
    scenario: str, for_s: int, root: Path, *, gpus: int = 2, model: str = "h100", layout: Layout = DEFAULT
) -> NodeState:
    """The state of a node after so many seconds of a scenario."""
    clock = SteppedClock()
    node = initial(DESCRIBED, read_frame_time(clock))
    told = SteppedNode(scenario, model, gpus, root=root, clock=clock)
    told.layout = layout
    with told as simulated:
        probe = InlineProbe(simulated.config(), BUILTIN, clock, simulated.is_blocked)
        for _ in range(for_s * NS_PER_S // TICK_NS):
            simulated.advance(TICK_NS)
            node = step(node, probe.tick())
        probe.close()
    return node.state
