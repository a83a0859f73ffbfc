# SPDX-License-Identifier: Apache-2.0
"""Which ports a GPU's traffic leaves through, where the PCI tree is known, and which of them are slower than others."""

from collections.abc import Hashable, Mapping
from typing import Any

from gpufeed.model.fabric import IbDevice, IbPort
from gpufeed.model.gpu import GpuIdentity, PciGpus
from gpufeed.model.ids import GpuKey, GpuUuid, GroupName, IbPortKey, LaneId
from gpufeed.model.sample import Sample
from gpufeed.model.state import GpuRecord, Held
from gpufeed.signals.affinity import ports_of
from gpufeed.signals.baselines import Baselines
from gpufeed.signals.settings import Settings
from gpufeed.signals.view import View

A, B = GpuUuid("GPU-a"), GpuUuid("GPU-b")
PLACES = {A: "0000:1b:00.0", B: "0000:2b:00.0"}
FAST, SLOW = 5e10, 2.5e10


def below(bus: int, function: str) -> tuple[str, ...]:
    return (f"pci0000:{bus}0", f"0000:{bus}0:01.0", f"0000:{bus}1:00.0", function)


def view(*samples: Sample) -> View:
    found: dict[type[Sample], dict[Hashable, Held[Any]]] = {}
    for sample in samples:
        held = Held(
            sample=sample, lane=LaneId("x"), group=GroupName("x.slow"), collector="host", read_at_ns=0, stale_at_ns=1
        )
        found.setdefault(type(sample), {})[sample.subject] = held
    records: Mapping[GpuUuid, GpuRecord] = {
        uuid: GpuRecord(
            uuid=uuid,
            index=index,
            lane=LaneId(f"gpu{index}"),
            identity=GpuIdentity(gpu=GpuKey(uuid), index=index, pci_bus_id=place),
            condition="ok",
        )
        for index, (uuid, place) in enumerate(PLACES.items())
    }
    return View(timelines={}, samples=found, records=records, baselines=Baselines(), settings=Settings())


GPUS = PciGpus(bus_ids=tuple(PLACES.values()), paths=(below(1, PLACES[A]), below(2, PLACES[B])))


def port(device: str, rate: float = FAST, link_layer: str = "InfiniBand") -> IbPort:
    return IbPort(port=IbPortKey(device, 1), state_id=4, rate_bytes_per_s=rate, link_layer=link_layer)


def test_the_card_below_a_gpus_switch_is_its_own_whatever_the_order_of_addresses() -> None:
    # by address the first card belongs to the first GPU; by the tree it is the other way round
    cards = (
        IbDevice(device="mlx5_0", pci_bus_id="0000:05:00.0", pci_path=below(2, "0000:05:00.0")),
        IbDevice(device="mlx5_1", pci_bus_id="0000:06:00.0", pci_path=below(1, "0000:06:00.0")),
    )
    now = view(GPUS, *cards, port("mlx5_0"), port("mlx5_1"))
    assert [limit.port.device for limit in ports_of(A, now)] == ["mlx5_1"]
    assert [limit.port.device for limit in ports_of(B, now)] == ["mlx5_0"]


def degraded(*samples: Sample) -> dict[str, bool]:
    return {limit.port.device: limit.is_degraded for limit in ports_of(GpuUuid("GPU-?"), view(*samples))}


def test_a_card_of_another_kind_may_be_slower_than_those_of_the_fabric() -> None:
    boards = [IbDevice(device=name, board_id=board) for name, board in (("a", "X"), ("b", "X"), ("c", "Y"))]
    assert degraded(*boards, port("a"), port("b", SLOW), port("c", SLOW)) == {"a": False, "b": True, "c": False}


def test_a_bond_on_ethernet_is_not_compared_with_infiniband() -> None:
    assert degraded(port("mlx5_0"), port("mlx5_bond_0", SLOW, "Ethernet")) == {"mlx5_0": False, "mlx5_bond_0": False}
