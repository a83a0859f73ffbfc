# SPDX-License-Identifier: Apache-2.0
"""Samples of the cluster interconnect: RDMA devices and their ports. Source: /sys/class/infiniband."""

from gpufeed.model.ids import IbPortKey
from gpufeed.model.sample import Sample


class IbDevice(Sample, frozen=True, kw_only=True, tag="ib_device"):
    """An RDMA device."""

    device: str
    board_id: str | None = None  # board_id
    firmware: str | None = None  # fw_ver
    hca_type: str | None = None  # hca_type
    node_guid: str | None = None  # node_guid
    pci_bus_id: str | None = None  # the target of `device`
    numa_node: int | None = None  # device/numa_node; -1 is None
    pci_path: tuple[str, ...] = ()  # from the host bridge to the function, each by its name in sysfs

    @property
    def subject(self) -> str:
        """The device."""
        return self.device


class IbPort(Sample, frozen=True, kw_only=True, tag="ib_port"):
    """State and speed of a port."""

    port: IbPortKey
    link_layer: str | None = None  # link_layer: InfiniBand or Ethernet
    lid: int | None = None
    state_id: int | None = None  # state: 4 is ACTIVE
    physical_state_id: int | None = None  # phys_state: 5 is LinkUp
    rate_bytes_per_s: float | None = None  # rate
    width: int | None = None  # rate: the "4" of "(4X NDR)"
    speed: str | None = None  # rate: the "NDR" of "(4X NDR)"
    netdev: str | None = None  # gid_attrs/ndevs/0
    is_fabric: bool = True  # False: management or virtual device, out of capacity

    @property
    def subject(self) -> IbPortKey:
        """The port."""
        return self.port


class IbCounters(Sample, frozen=True, kw_only=True, tag="ib_counters"):
    """Counters of a port, in bytes where the kernel counts 4-byte words."""

    port: IbPortKey
    receive_bytes: int | None = None  # counters/port_rcv_data × 4
    transmit_bytes: int | None = None  # counters/port_xmit_data × 4
    receive_packets: int | None = None
    transmit_packets: int | None = None
    transmit_wait_ticks: int | None = None  # counters/port_xmit_wait: unit differs by device generation

    @property
    def subject(self) -> IbPortKey:
        """The port."""
        return self.port


class IbErrors(Sample, frozen=True, kw_only=True, tag="ib_errors"):
    """Error counters and hardware events of a port, under the kernel's own file names."""

    port: IbPortKey
    errors: dict[str, int]
    hw_events: dict[str, int]
    saturated: tuple[str, ...] | None = ()  # counters that stand at their ceiling; None: none that has one is readable

    @property
    def subject(self) -> IbPortKey:
        """The port."""
        return self.port
