# SPDX-License-Identifier: Apache-2.0
"""Which fabric ports a GPU is nearest to, by the way from one to the other through the PCI tree.

Boards and cards below one switch talk past the processor. Below one host bridge, or at one memory node, they talk
through it; all others through the link between processors.
"""

from collections.abc import Mapping
from typing import Final, Literal

from gpufeed.model.fabric import IbDevice, IbPort
from gpufeed.model.gpu import PciGpus
from gpufeed.model.ids import GpuUuid
from gpufeed.model.network import NetInterface
from gpufeed.model.state import GpuRecord, NearPort
from gpufeed.signals.samples import Samples, all_of

MAX_PORTS: Final = 2
"""A board has one card of its own, or shares two with its neighbours."""

_BELOW_ONE_PORT: Final = 2
"""Common steps from the top from which on a switch joins two devices: the host bridge, and a port of it."""

Path = tuple[str, ...]
Nearness = tuple[int, int]
"""Steps in common, then whether the memory node is the same: the greater the nearer."""


def ports_near(samples: Samples, records: Mapping[GpuUuid, GpuRecord]) -> dict[GpuUuid, tuple[NearPort, ...]]:
    """At most two ports of each GPU, all equally near; none of GPUs whose place is not known."""
    devices = {device.device: device for device in all_of(samples, IbDevice)}
    netdevs = _netdevs(samples)
    ports = sorted((port for port in all_of(samples, IbPort) if port.is_fabric), key=lambda port: port.port)
    paths = {
        bus_id: path
        for gpus in all_of(samples, PciGpus)
        for bus_id, path in zip(gpus.bus_ids, gpus.paths, strict=False)
    }
    found: dict[GpuUuid, tuple[NearPort, ...]] = {}
    for uuid, record in records.items():
        identity = record.identity
        if identity is None or identity.pci_bus_id is None:
            continue
        path = paths.get(identity.pci_bus_id, ())
        ranked = [(_nearness(path, identity.numa_node, devices.get(port.port.device)), port) for port in ports]
        best = max((nearness for nearness, _ in ranked if nearness is not None), default=None)
        near = tuple(
            NearPort(port=port.port, netdev=port.netdev or netdevs.get(port.port.device, ""), path=_word(nearness))
            for nearness, port in ranked
            if nearness is not None and nearness == best
        )[:MAX_PORTS]
        if near:
            found[uuid] = near
    return found


def _nearness(path: Path, numa_node: int | None, device: IbDevice | None) -> Nearness | None:
    """None where neither the way nor the memory node of the two is known."""
    if device is None:
        return None
    steps = _common_steps(path, device.pci_path)
    has_numa = numa_node is not None and device.numa_node is not None
    if not (path and device.pci_path) and not has_numa:
        return None
    return (steps if steps >= _BELOW_ONE_PORT else 0, int(has_numa and numa_node == device.numa_node))


def _common_steps(one: Path, other: Path) -> int:
    steps = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        steps += 1
    return steps


def _word(nearness: Nearness) -> Literal["same_switch", "same_numa", "remote"]:
    steps, is_same_node = nearness
    return "same_switch" if steps else "same_numa" if is_same_node else "remote"


def _netdevs(samples: Samples) -> dict[str, str]:
    """Interfaces by RDMA device, where the two are on one PCI function and no other interface is."""
    on_function: dict[str, list[str]] = {}
    for interface in all_of(samples, NetInterface):
        if interface.pci_bus_id is not None:
            on_function.setdefault(interface.pci_bus_id, []).append(interface.bond or interface.device)
    return {
        device.device: names[0]
        for device in all_of(samples, IbDevice)
        if len(names := on_function.get(device.pci_bus_id or "", [])) == 1
    }
