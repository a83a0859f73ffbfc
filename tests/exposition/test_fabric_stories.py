# SPDX-License-Identifier: Apache-2.0
"""The fabric of the simulated node, from its files to the page, under every driver it knows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from exposition.reading import rows_of
from exposition.stories import TICK_NS, tell
from gpufeed.clock import read_frame_time
from gpufeed.model.state import NodeState
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.hardware import boards
from gpufeed.simulate.layout import LAYOUTS
from gpufeed.simulate.models import MODELS
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.step import Node, Settings, initial, step
from gpufeed.units import NS_PER_S

GPUS = 2
NIC_BYTES_PER_S = boards(MODELS["h100"], 1)[0].model.nic_bytes_per_s
FABRIC_SHARE = (0.4 * 0.06 + 0.6 * 0.93) / 1.0
"""Of a step of fabric_bound: 400 ms of computing with some traffic behind it, 600 ms of exchange."""

FAMILIES = {
    "slurm": ("mlx5_0", "InfiniBand"),
    "omnipath": ("hfi1_0", "InfiniBand"),
    "roce": ("mlx5_0", "Ethernet"),
    "roce-bnxt": ("bnxt_re0", "Ethernet"),
    "roce-irdma": ("irdma0", "Ethernet"),
    "efa": ("efa_0", "Unknown"),
}


def value(node: NodeState, name: str, **labels: str) -> float:
    [found] = [number for row, number in rows_of(node, name) if row.items() >= labels.items()]
    return found


@pytest.mark.parametrize("layout", FAMILIES)
def test_bytes_of_every_driver_family_are_those_that_were_moved(layout: str, tmp_path: Path) -> None:
    device, link_layer = FAMILIES[layout]
    state = tell("fabric_bound", 21, tmp_path, gpus=GPUS, layout=LAYOUTS[layout])
    [info] = [row for row, _ in rows_of(state, "gpufeed_ib_port_info") if row["device"] == device]
    assert info["link_layer"] == link_layer
    moved = value(state, "gpufeed_ib_port_receive_bytes_total", device=device)
    before = 4 * 2_300_000_000_000 if layout in {"slurm", "omnipath", "roce"} else 0
    assert moved - before == pytest.approx(21 * FABRIC_SHARE * NIC_BYTES_PER_S, rel=0.06)
    assert value(state, "gpufeed_ib_port_state_id", device=device) == 4
    assert value(state, "gpufeed_gpu_nic_info", gpu="0", device=device, path="same_switch") == 1


def test_a_network_that_holds_us_back_counts_ticks_on_infiniband_and_pauses_on_ethernet(tmp_path: Path) -> None:
    waited_s = 0.4 * 0.6  # of each second
    waiting = tell("fabric_bound", 21, tmp_path / "ib", gpus=GPUS, layout=LAYOUTS["slurm"])
    ticks = value(waiting, "gpufeed_ib_port_transmit_wait_ticks_total", device="mlx5_0")
    assert ticks == pytest.approx(21 * waited_s * 1e6, rel=0.06)
    assert not [row for row, _ in rows_of(waiting, "gpufeed_net_pause_seconds_total") if row["device"].startswith("ib")]
    paused = tell("fabric_bound", 21, tmp_path / "roce", gpus=GPUS, layout=LAYOUTS["roce"])
    assert value(paused, "gpufeed_ib_port_transmit_wait_ticks_total", device="mlx5_0") == 0
    assert value(paused, "gpufeed_ib_port_hw_events_total", device="mlx5_0", event="rp_cnp_handled") > 0
    seconds = value(paused, "gpufeed_net_pause_seconds_total", device="enp24s0", direction="receive")
    assert seconds == pytest.approx(20.25 * waited_s, rel=0.06)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[SteppedNode, InlineProbe, list[Node]]]:
    clock = SteppedClock()
    node = [initial(Settings(), read_frame_time(clock))]
    with SteppedNode("healthy", gpus=GPUS, root=tmp_path, clock=clock) as simulated:
        probe = InlineProbe(simulated.config(), BUILTIN, clock, simulated.is_blocked)
        yield simulated, probe, node
        probe.close()


def run(watched: tuple[SteppedNode, InlineProbe, list[Node]], for_s: int) -> NodeState:
    simulated, probe, node = watched
    for _ in range(for_s * NS_PER_S // TICK_NS):
        simulated.advance(TICK_NS)
        node[0] = step(node[0], probe.tick())
    return node[0].state


def received(state: NodeState) -> set[str]:
    return {row["device"] for row, _ in rows_of(state, "gpufeed_ib_port_receive_bytes_total")}


def test_a_card_that_is_pulled_out_takes_nothing_with_it_and_comes_back(
    watched: tuple[SteppedNode, InlineProbe, list[Node]],
) -> None:
    assert received(run(watched, 12)) == {"mlx5_0", "mlx5_1"}
    watched[0].hide("sys/class/infiniband/mlx5_1")
    state = run(watched, 12)
    assert received(state) == {"mlx5_0"}
    assert len(rows_of(state, "gpufeed_gpu_up")) == GPUS
    watched[0].show("sys/class/infiniband/mlx5_1")
    assert received(run(watched, 12)) == {"mlx5_0", "mlx5_1"}


def test_an_interface_that_vanishes_while_it_is_read_takes_nothing_with_it(
    watched: tuple[SteppedNode, InlineProbe, list[Node]],
) -> None:
    run(watched, 11)
    watched[0].hide("sys/class/net/ibp24s0")
    state = run(watched, 2)  # before the next look at which there are
    assert {row["device"] for row, _ in rows_of(state, "gpufeed_net_receive_bytes_total")} == {"enp13s0np0", "ibp64s0"}
    assert state.collectors["ethernet"].errors == {}
    watched[0].show("sys/class/net/ibp24s0")
    assert len(rows_of(run(watched, 11), "gpufeed_net_receive_bytes_total")) == GPUS + 1


def test_a_process_that_vanishes_between_two_looks_is_no_error_and_its_job_stays_with_the_others(
    watched: tuple[SteppedNode, InlineProbe, list[Node]],
) -> None:
    run(watched, 12)
    watched[0].hide("proc/4000")
    state = run(watched, 4)
    assert [row["gpu"] for row, _ in rows_of(state, "gpufeed_gpu_job_info")] == ["1"]
    assert state.collectors["jobs"].errors == {}
