# SPDX-License-Identifier: Apache-2.0
"""Samples of network interfaces: what one is, what went through it, and what its driver counts besides."""

from typing import Literal

from gpufeed.model.sample import Sample

NetDirection = Literal["receive", "transmit"]
PciDirection = Literal["read", "write"]


class NetInterface(Sample, frozen=True, kw_only=True, tag="net_interface"):
    """A physical interface. Source: /sys/class/net."""

    device: str
    is_up: bool | None = None  # operstate; where the driver says nothing, carrier
    speed_bytes_per_s: float | None = None  # in one direction; None also while it is down
    carrier_changes: int | None = None
    errors: dict[str, int]  # by the name of the kernel's file in statistics/
    bond: str | None = None  # that it is a member of
    driver: str | None = None
    pci_bus_id: str | None = None
    numa_node: int | None = None

    @property
    def subject(self) -> str:
        """The interface."""
        return self.device


class NetCounters(Sample, frozen=True, kw_only=True, tag="net_counters"):
    """What went through an interface. Remote memory access goes past these counters."""

    device: str
    receive_bytes: int | None = None
    transmit_bytes: int | None = None

    @property
    def subject(self) -> str:
        """The interface."""
        return self.device


class NetEvents(Sample, frozen=True, kw_only=True, tag="net_events"):
    """What the driver of an interface counts and the kernel does not. Source: ethtool statistics, an allow-list."""

    device: str
    events: dict[str, int]  # by the driver's own names
    pause_s: dict[NetDirection, float]  # receive: the network kept us from sending; transmit: we kept it
    priority_pause_s: dict[NetDirection, dict[str, float]]  # the same by priority, "0" to "7"
    pci_stall_ratio: dict[PciDirection, float]  # of the last second, in which the card waited for PCIe

    @property
    def subject(self) -> str:
        """The interface."""
        return self.device
