# SPDX-License-Identifier: Apache-2.0
"""Drivers of RDMA devices as rows of data: what each calls its devices, and where it counts what.

After what drivers show in sysfs: mlx5 has management counters on either link layer, others only their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gpufeed.simulate.layout import FabricKind


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricDriver:
    """One driver on one link layer."""

    device: str  # name of the nth device
    module: str  # kernel module of the PCI function
    link_layer: str = "Ethernet"
    has_counters: bool = False  # the folder of management counters
    waits_for_credits: bool = False  # and port_xmit_wait moves in it
    board_id: str | None = None
    has_hca_type: bool = False
    has_netdev: bool = True
    bytes: tuple[str, str] | None = None  # hardware counters: received, sent
    packets: tuple[str, str] | None = None
    slowed: str | None = None  # hardware counter of being told to send less
    pause_us: str | None = None  # statistic of the interface: how long we were not allowed to send


DRIVERS: Final[Mapping[FabricKind, FabricDriver]] = MappingProxyType(
    {
        "infiniband": FabricDriver(
            device="mlx5_{}",
            module="mlx5_core",
            link_layer="InfiniBand",
            has_counters=True,
            waits_for_credits=True,
            board_id="MT_0000000838",
            has_hca_type=True,
        ),
        "omnipath": FabricDriver(
            device="hfi1_{}",
            module="hfi1",
            link_layer="InfiniBand",
            has_counters=True,
            waits_for_credits=True,
            board_id="Omni-Path Host Fabric Interface Adapter 100 Series",
        ),
        "roce": FabricDriver(
            device="mlx5_{}",
            module="mlx5_core",
            has_counters=True,
            board_id="MT_0000000884",
            has_hca_type=True,
            slowed="rp_cnp_handled",
            pause_us="rx_prio3_pause_duration",
        ),
        "roce_bnxt": FabricDriver(
            device="bnxt_re{}",
            module="bnxt_en",
            board_id="BCM57608",
            has_hca_type=True,
            bytes=("rx_bytes", "tx_bytes"),
            packets=("rx_pkts", "tx_pkts"),
            slowed="rx_cnp_pkts",
            pause_us="pfc_pri3_rx_duration_us",
        ),
        "roce_irdma": FabricDriver(
            device="irdma{}",
            module="ice",
            bytes=("ip4InOctets", "ip4OutOctets"),
            packets=("ip4InPkts", "ip4OutPkts"),
            slowed="cnpHandled",
        ),
        "efa": FabricDriver(
            device="efa_{}",
            module="efa",
            link_layer="Unknown",
            has_netdev=False,
            bytes=("rx_bytes", "tx_bytes"),
            packets=("rx_pkts", "tx_pkts"),
        ),
    }
)
"""By the fabric that a layout has."""
