# SPDX-License-Identifier: Apache-2.0
"""Which fabric ports a GPU's traffic leaves through, and what they can carry."""

from dataclasses import dataclass
from math import isfinite
from typing import Any

from gpufeed.model.fabric import IbDevice, IbPort
from gpufeed.model.gpu import GpuIdentity
from gpufeed.model.ids import GpuUuid, IbPortKey
from gpufeed.model.state import Held
from gpufeed.signals.flaps import STATE_ACTIVE
from gpufeed.signals.nearest import ports_near
from gpufeed.signals.view import View


@dataclass(frozen=True, slots=True)
class PortLimits:
    """A fabric port: its rate in one direction, and whether it is down or slower than its neighbours."""

    port: IbPortKey
    bytes_per_s: float | None
    is_degraded: bool = False


def ports_of(uuid: GpuUuid, view: View) -> tuple[PortLimits, ...]:
    """The ports nearest to one GPU.

    Those below the same PCI switch. Where that is not known and there are as many as GPUs, the nth in the order of PCI
    addresses, as boards are wired one to one. Otherwise those of the same NUMA node, and where nothing is known of
    that, all.
    """
    return view.once(("ports of", uuid), lambda: _nearest(uuid, view))


def _nearest(uuid: GpuUuid, view: View) -> tuple[PortLimits, ...]:
    ports = fabric_ports(view)
    record = view.records.get(uuid)
    identity = record.identity if record is not None else None
    if not ports or identity is None:
        return ports
    beside = _below_the_same_switch(uuid, view)
    if below := tuple(limit for limit in ports if limit.port in beside):
        return below
    order = view.once("pci order", lambda: _pci_order(view))
    if len(order) == len(ports) and uuid in order:
        return (ports[order.index(uuid)],)
    near = tuple(limit for limit in ports if _numa(limit.port, view) == identity.numa_node)
    return near if near and identity.numa_node is not None else ports


def fabric_ports(view: View) -> tuple[PortLimits, ...]:
    """Every port that jobs exchange bytes through."""
    return view.once("fabric ports", lambda: _fabric_ports(view))


def _fabric_ports(view: View) -> tuple[PortLimits, ...]:
    held: list[Held[Any]] = list(view.samples.get(IbPort, {}).values())
    ports: list[IbPort] = sorted(
        (item.sample for item in held if item.sample.is_fabric), key=lambda port: (_address(port.port, view), port.port)
    )
    configured = view.settings.ib_expected_bytes_per_s
    fastest: dict[Kind, float] = {}
    for port in ports:
        kind = _kind(port, view)
        fastest[kind] = max(fastest.get(kind, 0.0), _rate(port) or 0.0)
    return tuple(
        PortLimits(port.port, _rate(port), is_degraded=_is_degraded(port, configured or fastest[_kind(port, view)]))
        for port in ports
    )


def _below_the_same_switch(uuid: GpuUuid, view: View) -> frozenset[IbPortKey]:
    known = view.once("nearest ports", lambda: ports_near(view.samples, view.records))
    return frozenset(near.port for near in known.get(uuid, ()) if near.path == "same_switch")


Kind = tuple[str | None, str | None]
"""Board and link layer: a card for storage need not be as fast as those for the fabric."""


def _kind(port: IbPort, view: View) -> Kind:
    device = _device(port.port, view)
    return (device.board_id if device is not None else None, port.link_layer)


def _is_degraded(port: IbPort, expected: float) -> bool:
    rate = _rate(port)
    return (port.state_id is not None and port.state_id != STATE_ACTIVE) or (rate is not None and rate < expected)


def _rate(port: IbPort) -> float | None:
    rate = port.rate_bytes_per_s
    return rate if rate is not None and isfinite(rate) and rate > 0 else None


def _device(port: IbPortKey, view: View) -> IbDevice | None:
    device: IbDevice | None = view.latest(IbDevice, port.device)
    return device


def _address(port: IbPortKey, view: View) -> str:
    device = _device(port, view)
    return (device.pci_bus_id if device is not None else None) or ""


def _numa(port: IbPortKey, view: View) -> int | None:
    device = _device(port, view)
    return device.numa_node if device is not None else None


def _pci_order(view: View) -> list[GpuUuid]:
    identities: list[GpuIdentity] = [
        record.identity
        for record in view.records.values()
        if record.identity is not None and record.identity.pci_bus_id
    ]
    return [identity.gpu.uuid for identity in sorted(identities, key=lambda known: known.pci_bus_id or "")]
