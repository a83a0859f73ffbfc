# SPDX-License-Identifier: Apache-2.0
"""Checks that compare a GPU or a port with its neighbours, with a maker's limit, or with what there was before."""

from typing import Any

import pytest

from gpufeed.model.fabric import IbDevice, IbPort
from gpufeed.model.frame import LaneStatus
from gpufeed.model.gpu import GpuIdentity
from gpufeed.model.gpu_errors import GpuErrors
from gpufeed.model.ids import GpuKey, GpuUuid, IbPortKey, LaneId
from gpufeed.model.sample import Sample
from gpufeed.model.state import GpuRecord, NodeState, ProbeRecord
from health.states import ONE, PORT, SECOND, START, TWO, fast, found, level, levels, node, port, record, slow

GPU = GpuKey(ONE)
OTHER_PORT = IbPortKey("mlx5_1", 1)
GBIT = 125_000_000.0


def errors(**values: Any) -> GpuErrors:
    return GpuErrors(gpu=GPU, **values)


@pytest.mark.parametrize(
    ("check", "state", "expected"),
    [
        pytest.param("fabric", node(), None, id="no reading"),
        pytest.param("fabric", node(slow()), None, id="old driver"),
        pytest.param("fabric", node(slow(fabric_state=0)), None, id="not supported"),
        pytest.param("fabric", node(slow(fabric_state=3)), 0, id="joined, no health mask"),
        pytest.param(
            "fabric", node(slow(fabric_state=3, fabric_status=0, fabric_trouble={"degraded_bandwidth": False})), 0,
            id="joined and well",
        ),
        pytest.param("fabric", node(slow(fabric_state=2)), 2, id="still joining"),
        pytest.param("fabric", node(slow(fabric_state=3, fabric_status=999)), 2, id="joined with an error"),
        pytest.param(
            "fabric", node(slow(fabric_state=3, fabric_trouble={"route_unhealthy": True, "x": False})), 1,
            id="a route is not healthy",
        ),
        pytest.param("memory_wear", node(), None, id="no counts"),
        pytest.param("memory_wear", node(errors()), None, id="a board that counts neither"),
        pytest.param("memory_wear", node(errors(remapped_rows={"uncorrectable": 511})), 0, id="rows left"),
        pytest.param("memory_wear", node(errors(remapped_rows={"uncorrectable": 512})), 1, id="512 rows"),
        pytest.param(
            "memory_wear", node(errors(remapped_rows={"correctable": 600, "uncorrectable": 1})), 0,
            id="rows replaced as a precaution",
        ),
        pytest.param(
            "memory_wear", node(errors(retired_pages={"correctable": 47, "uncorrectable": 15})), 0, id="62 pages"
        ),
        pytest.param(
            "memory_wear", node(errors(retired_pages={"correctable": 48, "uncorrectable": 15})), 1, id="63 pages"
        ),
        pytest.param("memory_wear", node(errors(retired_pages={"uncorrectable": 16})), 1, id="16 with hard errors"),
    ],
)  # fmt: skip
def test_a_check_says_what_the_state_shows_and_nothing_else(check: str, state: NodeState, expected: int | None) -> None:
    assert level(state, GPU, check) == expected


def named(*names: str | None) -> dict[GpuUuid, GpuRecord]:
    """Two GPUs of these types; None: one whose identity was never read."""
    return {
        uuid: record(uuid, identity=None if name is None else GpuIdentity(gpu=GpuKey(uuid), index=index, name=name))
        for index, (uuid, name) in enumerate(zip((ONE, TWO), names, strict=False))
    }


def capped(one_w: float | None, two_w: float | None, *names: str | None) -> NodeState:
    samples = [
        fast(uuid, power_limit_enforced_w=watts) for uuid, watts in ((ONE, one_w), (TWO, two_w)) if watts is not None
    ]
    return node(*samples, gpus=named(*names))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(capped(700, 700, "H100", "H100"), 0, id="alike"),
        pytest.param(capped(665, 700, "H100", "H100"), 0, id="95 percent"),
        pytest.param(capped(600, 700, "H100", "H100"), 1, id="less than its neighbour"),
        pytest.param(capped(700, 600, "H100", "H100"), 0, id="more than its neighbour"),
        pytest.param(capped(300, 300, "H100", "H100"), 0, id="a site that caps all"),
        pytest.param(capped(300, 700, "L40", "H100"), None, id="another type"),
        pytest.param(capped(300, 700, None, None), None, id="types not known"),
        pytest.param(capped(None, 700, "H100", "H100"), None, id="own limit not read"),
        pytest.param(capped(300, None, "H100", "H100"), None, id="nothing to compare with"),
    ],
)
def test_a_power_limit_is_compared_with_neighbours_of_the_same_type(state: NodeState, expected: int | None) -> None:
    assert level(state, GPU, "power_limit") == expected


def ports(*rates_gbps: float | None, boards: tuple[str | None, ...] = ("A", "A"), **second: Any) -> NodeState:
    samples: list[Sample] = []
    for key, rate, board in zip((PORT, OTHER_PORT), rates_gbps, boards, strict=False):
        of: dict[str, Any] = {"state_id": 4, "physical_state_id": 5} | (second if key == OTHER_PORT else {})
        samples.append(IbPort(port=key, rate_bytes_per_s=None if rate is None else rate * GBIT, **of))
        samples.append(IbDevice(device=key.device, board_id=board))
    return node(*samples)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(ports(400, 400), 0, id="alike"),
        pytest.param(ports(200, 400), 1, id="half of its like"),
        pytest.param(ports(400, 200), 0, id="twice its like"),
        pytest.param(ports(200, 400, boards=("A", "B")), None, id="a slower card by design"),
        pytest.param(ports(200, 400, boards=(None, None)), None, id="cards not known"),
        pytest.param(ports(200, 400, state_id=1), None, id="its like is down"),
        pytest.param(ports(200, 400, is_fabric=False), None, id="its like is for management"),
        pytest.param(ports(None, 400), None, id="rate not known"),
        pytest.param(ports(200), None, id="a single card"),
    ],
)
def test_a_port_is_compared_with_ports_of_the_same_card(state: NodeState, expected: int | None) -> None:
    assert level(state, PORT, "rate") == expected


def test_a_slow_port_names_both_rates() -> None:
    verdict = found(ports(200, 400), PORT, "rate")
    assert verdict is not None
    assert verdict.reason == "mlx5_0 port 1 runs at 200 Gbit/s, its like at 400"


def scanned(*samples: Sample, lanes: tuple[str, ...] = ("infiniband", "ib:mlx5_0"), **changes: Any) -> NodeState:
    busy_since_ns = changes.pop("busy_since_ns", None)
    of = {LaneId(name): LaneStatus(LaneId(name), "infiniband", busy_since_ns, 2 * SECOND, 8 * SECOND) for name in lanes}
    return node(*samples, lanes=of, **({"probe": ProbeRecord(is_up=True, frames=1)} | changes))


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(scanned(port()), 0, id="there"),
        pytest.param(scanned(port(1, 2)), 0, id="down, and there"),
        pytest.param(scanned(lanes=("infiniband",)), 2, id="gone with its card"),
        pytest.param(scanned(), 0, id="its lane is stuck: it is there and silent"),
        pytest.param(scanned(lanes=()), None, id="nobody looks"),
        pytest.param(scanned(lanes=("infiniband",), probe=ProbeRecord()), None, id="the probe is down"),
        pytest.param(scanned(lanes=("infiniband",), busy_since_ns=START - 2 * SECOND), None, id="the look hangs"),
        pytest.param(scanned(lanes=("infiniband",), busy_since_ns=START - SECOND), 2, id="the look is under way"),
    ],
)
def test_a_port_that_once_was_up_is_missed_when_its_card_is_gone(after: NodeState, expected: int | None) -> None:
    assert levels("host", "fabric_ports", scanned(port()), after)[-1] == expected


def test_a_node_that_never_had_a_port_up_misses_none() -> None:
    assert level(scanned(port(1, 2)), "host", "fabric_ports") is None
