# SPDX-License-Identifier: Apache-2.0
"""Which fabric ports a GPU is nearest to."""

from collections.abc import Hashable, Mapping
from typing import Any

import pytest

from gpufeed.model.fabric import IbDevice, IbPort
from gpufeed.model.gpu import GpuIdentity, PciGpus
from gpufeed.model.ids import GpuKey, GpuUuid, GroupName, IbPortKey, LaneId
from gpufeed.model.network import NetInterface
from gpufeed.model.sample import Sample
from gpufeed.model.state import GpuRecord, Held, NearPort
from gpufeed.signals.nearest import ports_near

A = GpuUuid("GPU-a")
BUS_ID = "0000:1b:00.0"
SWITCH = ("pci0000:15", "0000:15:01.0", "0000:16:00.0")
GPU_PATH = (*SWITCH, "0000:17:02.0", BUS_ID)


def holding(*samples: Sample) -> Mapping[type[Sample], Mapping[Hashable, Held[Any]]]:
    found: dict[type[Sample], dict[Hashable, Held[Any]]] = {}
    for sample in samples:
        held = Held(
            sample=sample, lane=LaneId("x"), group=GroupName("x.slow"), collector="host", read_at_ns=0, stale_at_ns=1
        )
        found.setdefault(type(sample), {})[sample.subject] = held
    return found


def record(numa_node: int | None = 0, bus_id: str | None = BUS_ID) -> GpuRecord:
    identity = GpuIdentity(gpu=GpuKey(A), index=0, pci_bus_id=bus_id, numa_node=numa_node)
    return GpuRecord(uuid=A, index=0, lane=LaneId("gpu0"), identity=identity, condition="ok")


def card(name: str, *path: str, numa_node: int | None = 0) -> IbDevice:
    return IbDevice(device=name, pci_bus_id=path[-1] if path else None, numa_node=numa_node, pci_path=path)


def port(name: str, number: int = 1, *, netdev: str | None = None, is_fabric: bool = True) -> IbPort:
    return IbPort(port=IbPortKey(name, number), netdev=netdev, is_fabric=is_fabric)


GPUS = PciGpus(bus_ids=(BUS_ID,), paths=(GPU_PATH,))


def near(*samples: Sample, gpu: GpuRecord | None = None, gpus: PciGpus | None = GPUS) -> list[tuple[str, str]]:
    known = samples if gpus is None else (*samples, gpus)
    found = ports_near(holding(*known), {A: gpu or record()})
    return [(each.port.device, each.path) for each in found.get(A, ())]


BESIDE = card("mlx5_3", *SWITCH, "0000:17:00.0", "0000:18:00.0")
SAME_NODE = card("mlx5_1", "pci0000:40", "0000:40:01.0", "0000:41:00.0")
FAR = card("mlx5_0", "pci0000:90", "0000:90:01.0", "0000:91:00.0", numa_node=1)


def test_the_card_below_the_same_switch_is_nearest() -> None:
    cards = (BESIDE, SAME_NODE, FAR)
    assert near(*cards, *(port(one.device) for one in cards)) == [("mlx5_3", "same_switch")]


def test_of_two_cards_below_switches_the_one_with_the_longer_way_in_common_is_nearer() -> None:
    other = card("mlx5_2", *SWITCH[:2], "0000:16:01.0", "0000:19:00.0")
    assert near(BESIDE, other, port("mlx5_2"), port("mlx5_3")) == [("mlx5_3", "same_switch")]
    assert near(other, port("mlx5_2")) == [("mlx5_2", "same_switch")]


def test_below_one_host_bridge_is_not_below_one_switch() -> None:
    beside = card("mlx5_4", "pci0000:15", "0000:15:02.0", "0000:20:00.0")
    assert near(beside, SAME_NODE, port("mlx5_4"), port("mlx5_1")) == [("mlx5_1", "same_numa"), ("mlx5_4", "same_numa")]


def test_without_a_card_near_it_the_gpu_has_remote_ones_two_at_most() -> None:
    cards = [card(f"mlx5_{number}", "pci0000:90", f"0000:9{number}:00.0", numa_node=1) for number in range(4)]
    assert near(*cards, *(port(one.device) for one in reversed(cards))) == [("mlx5_0", "remote"), ("mlx5_1", "remote")]


def test_the_memory_node_has_to_do_where_no_way_is_known() -> None:
    here, there = card("a", numa_node=0), card("b", numa_node=1)
    assert near(here, there, port("a"), port("b"), gpus=None) == [("a", "same_numa")]


@pytest.mark.parametrize("numa_node", [None, 0])
def test_where_nothing_is_known_nothing_is_said(numa_node: int | None) -> None:
    assert near(card("a", numa_node=None), port("a"), gpu=record(numa_node), gpus=None) == []
    assert near(port("a"), gpu=record(numa_node)) == []


def test_a_gpu_without_a_place_has_no_ports() -> None:
    assert near(BESIDE, port("mlx5_3"), gpu=record(bus_id=None)) == []
    unknown = GpuRecord(uuid=A, index=0, lane=LaneId("gpu0"), identity=None, condition="missing")
    assert ports_near(holding(BESIDE, port("mlx5_3"), GPUS), {A: unknown}) == {}


def test_a_management_device_is_never_the_nearest() -> None:
    smi = card("smi1", *SWITCH, "0000:17:00.0", "0000:18:00.0")
    ports = (port("smi1", is_fabric=False), port("mlx5_3"))
    assert near(smi, BESIDE, *ports) == [("mlx5_3", "same_switch")]


def interface(name: str, bus_id: str | None, bond: str | None = None) -> NetInterface:
    return NetInterface(device=name, errors={}, pci_bus_id=bus_id, bond=bond)


def netdev_of(*samples: Sample, said: str | None = None) -> str:
    found = ports_near(holding(BESIDE, port("mlx5_3", netdev=said), GPUS, *samples), {A: record()})
    return found[A][0].netdev


def test_the_interface_of_a_port_is_the_one_it_names_else_the_only_one_on_its_function() -> None:
    assert netdev_of(interface("eth0", "0000:18:00.0"), said="bond0") == "bond0"
    assert netdev_of(interface("eth0", "0000:18:00.0"), interface("eth1", None)) == "eth0"
    assert netdev_of(interface("eth0", "0000:18:00.0", bond="bond0")) == "bond0"
    assert netdev_of(interface("eth0", "0000:18:00.0"), interface("eth1", "0000:18:00.0")) == ""
    assert netdev_of() == ""


def test_a_port_is_named_with_its_number() -> None:
    found = ports_near(holding(BESIDE, port("mlx5_3", 2), port("mlx5_3", 1), GPUS), {A: record()})
    expected = tuple(NearPort(port=IbPortKey("mlx5_3", number), netdev="", path="same_switch") for number in (1, 2))
    assert found[A] == expected
