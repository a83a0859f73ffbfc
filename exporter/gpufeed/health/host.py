# SPDX-License-Identifier: Apache-2.0
"""Checks of the host."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.health.finding import OK, Finding
from gpufeed.health.latches import Latches
from gpufeed.model.gpu import DriverInfo, PciGpus
from gpufeed.model.host import HostMemory
from gpufeed.model.state import NodeState

HostCheck = Callable[[NodeState, Latches], Finding | None]

EXPECTED_BY: Final = ("config", "inventory", "pci")
"""Whose word on the number of GPUs counts, first one first."""
MEMORY_LOW_RATIO: Final = 0.05


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


HOST_CHECKS: Final[Mapping[str, HostCheck]] = MappingProxyType(
    {"driver": driver, "gpu_count": gpu_count, "memory": memory}
)
