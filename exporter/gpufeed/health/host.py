# SPDX-License-Identifier: Apache-2.0
"""Checks of the host."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.health.finding import OK, Finding
from gpufeed.health.latches import Latches
from gpufeed.model.fabric import IbPort
from gpufeed.model.gpu import DriverInfo, PciGpus
from gpufeed.model.host import HostMemory
from gpufeed.model.ids import LaneId
from gpufeed.model.state import NodeState

HostCheck = Callable[[NodeState, Latches], Finding | None]

EXPECTED_BY: Final = ("config", "inventory", "pci")
"""Whose word on the number of GPUs counts, first one first."""
MEMORY_LOW_RATIO: Final = 0.05

FABRIC_SCAN: Final = LaneId("infiniband")
"""Lane that looks which RDMA devices there are; each of them then has a lane of its own."""


def driver(state: NodeState, _: Latches) -> Finding | None:
    """GPUs sit on the bus and the driver does not serve them."""
    pci = next((held.sample.bus_ids for held in state.latest(PciGpus).values()), ())
    if state.latest(DriverInfo):
        return OK
    nvml = state.inputs.get(("nvml", ""))
    if not pci or nvml is None or nvml.state not in {"absent", "broken", "denied"}:
        return None
    reason = f"{len(pci)} NVIDIA GPUs on the PCI bus, and no driver: {nvml.reason or nvml.state}"
    return Finding(2, reason, "investigate")


def gpu_count(state: NodeState, _: Latches) -> Finding | None:
    """The driver shows fewer GPUs than the node has."""
    counts = [held.sample.device_count for held in state.latest(DriverInfo).values()]
    origin = next((word for word in EXPECTED_BY if word in state.gpus_expected), None)
    if not counts or origin is None:
        return None
    expected = state.gpus_expected[origin]
    if counts[0] >= expected:
        return OK
    return Finding(2, f"the driver shows {counts[0]} of {expected} GPUs (expected by {origin})", "drain")


def memory(state: NodeState, _: Latches) -> Finding | None:
    """Hardly any memory of the node is available."""
    for held in state.latest(HostMemory).values():
        available, total = held.sample.available_bytes, held.sample.total_bytes
        if available is None or total <= 0:
            return None
        if available >= MEMORY_LOW_RATIO * total:
            return OK
        return Finding(1, f"{available / total:.1%} of the node's memory is available", "app")
    return None


def fabric_ports(state: NodeState, latches: Latches) -> Finding | None:
    """A fabric port that once was up is no longer there at all. One whose lane is stuck is there, and silent."""
    scan = state.lanes.get(FABRIC_SCAN)
    once_up = latches.baselines.ports_once_up
    if not state.probe.is_up or scan is None or not once_up:
        return None
    if scan.busy_since_ns is not None and state.time.monotonic_ns - scan.busy_since_ns >= scan.late_after_ns:
        return None
    there = {held.sample.port for held in state.latest(IbPort).values()}
    gone = sorted(port for port in once_up - there if LaneId(f"ib:{port.device}") not in state.lanes)
    if not gone:
        return OK
    names = ", ".join(f"{port.device} port {port.port}" for port in gone)
    return Finding(2, f"{len(gone)} of {len(once_up)} fabric ports are gone: {names}", "drain")


HOST_CHECKS: Final[Mapping[str, HostCheck]] = MappingProxyType(
    {"driver": driver, "gpu_count": gpu_count, "memory": memory, "fabric_ports": fabric_ports}
)
