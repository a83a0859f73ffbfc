# SPDX-License-Identifier: Apache-2.0
"""Ways to build a node, and what goes wrong with its files: told through the real sources and the real fold."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from exposition.reading import rows_of
from gpufeed.clock import read_frame_time
from gpufeed.model.state import NodeState
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.layout import LAYOUTS
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.step import Settings, initial, step
from gpufeed.units import NS_PER_S

GPUS = 2
CARD, OTHER = "mlx5_1", "mlx5_0"


class Told:
    """A node under a layout, looked at once a second."""

    def __init__(self, layout: str, root: Path) -> None:
        self._clock = SteppedClock()
        self._node = initial(Settings(), read_frame_time(self._clock))
        self._simulated = SteppedNode("storage_starved", gpus=GPUS, root=root, clock=self._clock)
        self._simulated.layout = LAYOUTS[layout]
        self._simulated.__enter__()
        self._probe = InlineProbe(self._simulated.config(), BUILTIN, self._clock, self._simulated.is_blocked)

    def after(self, seconds: int) -> NodeState:
        for _ in range(seconds):
            self._simulated.advance(NS_PER_S)
            self._node = step(self._node, self._probe.tick())
        return self._node.state

    def close(self) -> None:
        self._probe.close()
        self._simulated.__exit__(None, None, None)


@pytest.fixture
def told(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Told]:
    node = Told(request.param, tmp_path / "node")
    yield node
    node.close()


def by(state: NodeState, metric: str, label: str, **labels: str) -> dict[str, float]:
    return {
        found[label]: value for found, value in rows_of(state, f"gpufeed_{metric}") if labels.items() <= found.items()
    }


@pytest.mark.parametrize("told", ["flapping"], indirect=True)
def test_a_card_that_flaps_is_down_and_back_and_counted(told: Told) -> None:
    assert by(told.after(18), "ib_port_state_id", "device") == {OTHER: 4, CARD: 4}
    assert by(told.after(8), "ib_port_state_id", "device") == {OTHER: 4, CARD: 1}
    state = told.after(14)
    assert by(state, "ib_port_state_id", "device") == {OTHER: 4, CARD: 4}
    assert by(state, "ib_port_flaps_total", "device") == {OTHER: 0, CARD: 1}


@pytest.mark.parametrize("told", ["saturated"], indirect=True)
def test_counters_at_their_ends_are_named(told: Told) -> None:
    at_end = by(told.after(2), "ib_port_saturated", "counter", device=CARD)
    assert {"port_xmit_wait", "link_downed", "symbol_error"} <= at_end.keys()


@pytest.mark.parametrize("told", ["refusing"], indirect=True)
def test_files_that_refuse_take_nothing_else_along(told: Told) -> None:
    state = told.after(2)
    assert by(state, "ib_port_rate_bytes_per_second", "device").keys() == {OTHER}
    assert by(state, "ib_port_receive_bytes_total", "device").keys() == {OTHER, CARD}
    assert by(state, "pressure_available", "resource") == {"cpu": 1, "io": 1, "memory": 0}
    assert "out_of_sequence" in by(state, "ib_port_hw_events_total", "event", device=OTHER)
    assert "out_of_sequence" not in by(state, "ib_port_hw_events_total", "event", device=CARD)


@pytest.mark.parametrize("told", ["vanishing"], indirect=True)
def test_a_card_that_vanishes_is_gone_alone_and_comes_back(told: Told) -> None:
    assert by(told.after(18), "ib_port_receive_bytes_total", "device").keys() == {OTHER, CARD}
    assert by(told.after(11), "ib_port_receive_bytes_total", "device").keys() == {OTHER}
    assert by(told.after(13), "ib_port_receive_bytes_total", "device").keys() == {OTHER, CARD}


def moved(state: NodeState) -> float:
    return by(state, "storage_read_bytes_total", "target", kind="nfs")["/data"]


def sent_again(state: NodeState) -> tuple[float, float]:
    of_data = (
        by(state, f"storage_{name}_total", "target", kind="nfs")["/data"] for name in ("retransmits", "timeouts")
    )
    return (next(of_data), next(of_data))


@pytest.mark.parametrize("told", ["nfs-dead"], indirect=True)
def test_a_dead_server_moves_nothing_and_hangs_nobody(told: Told) -> None:
    alive, dead, later = moved(told.after(15)), moved(told.after(10)), moved(told.after(30))
    assert 0 < alive < dead == later


@pytest.mark.parametrize("told", ["nfs-rebooted"], indirect=True)
def test_a_server_that_reboots_goes_on_and_has_been_asked_again(told: Told) -> None:
    dead = told.after(35)
    assert sent_again(dead) == (0, 0)
    back = told.after(15)
    assert moved(back) > moved(dead)
    assert sent_again(back)[0] == sent_again(back)[1] > 0


@pytest.mark.parametrize("told", ["ceph", "fuse", "weka", "beegfs"], indirect=True)
def test_a_job_reads_the_data_set_wherever_it_lies(told: Told, request: pytest.FixtureRequest) -> None:
    kind = request.node.callspec.params["told"]
    state = told.after(12)
    assert kind in {labels["kind"] for labels, _ in rows_of(state, "gpufeed_gpu_storage_info")}
    (target,) = by(state, "storage_info", "target", kind=kind)
    assert target == ("storage1" if kind == "beegfs" else "/data")
    read = by(state, "storage_read_bytes_total", "target", kind=kind)
    assert list(read) == ([target] if kind == "ceph" else [])
    assert all(count > 0 for count in read.values())
    assert sum(by(state, "storage_read_bytes_total", "target", kind="nfs").values()) == 0
    assert ("/data" in by(state, "storage_inflight", "target", kind="fuse")) == (kind == "fuse")
