# SPDX-License-Identifier: Apache-2.0
"""The keys of `collectors`."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpufeed.config.kinds import Regex
from gpufeed.config.mark import key


class Collector(Struct, frozen=True, kw_only=True):
    """A collector without keys of its own."""

    enabled: Annotated[bool, key("Read it.")] = True


class NvmlCollector(Struct, frozen=True, kw_only=True):
    """GPUs, through the driver's library."""

    enabled: Annotated[bool, key("Read it.")] = True
    expected_gpus: Annotated[int | None, key("GPUs this node must have; null: as many as were ever seen.", ge=0)] = None


class InfinibandCollector(Struct, frozen=True, kw_only=True):
    """RDMA devices."""

    enabled: Annotated[bool, key("Read it.")] = True
    include: Annotated[Regex, key("Devices to read.")] = ".*"
    exclude: Annotated[Regex, key("Devices to leave out.")] = "^(smi|scif)"
    expected_rate_gbps: Annotated[float | None, key("Gbit/s every port must run at.", gt=0)] = None


class EthernetCollector(Struct, frozen=True, kw_only=True):
    """Network interfaces."""

    enabled: Annotated[bool, key("Read it.")] = True
    include: Annotated[Regex, key("Interfaces to read.")] = ".*"
    exclude: Annotated[Regex, key("Interfaces to leave out; empty: none.")] = ""


class BlockCollector(Struct, frozen=True, kw_only=True):
    """Local disks."""

    enabled: Annotated[bool, key("Read it.")] = True
    include: Annotated[Regex, key("Devices to read.")] = ".*"
    exclude: Annotated[Regex, key("Devices to leave out; empty: none.")] = ""


class NfsCollector(Struct, frozen=True, kw_only=True):
    """NFS mounts."""

    enabled: Annotated[bool, key("Read it.")] = True
    exclude_mounts: Annotated[Regex, key("Mount points to leave out; empty: none.")] = ""
    target_from: Annotated[
        Literal["mountpoint", "source"], key("What names a mount: where it is mounted, or server:/export.")
    ] = "mountpoint"


class GpfsCollector(Struct, frozen=True, kw_only=True):
    """GPFS (Spectrum Scale)."""

    enabled: Annotated[bool, key("Read it: starts mmpmon, which needs root, for every reading.")] = False


def _switch(help_name: str) -> Meta:
    return key(f"{help_name}.")


class Collectors(Struct, frozen=True, kw_only=True):
    """What is read."""

    nvml: Annotated[NvmlCollector, _switch("GPUs")] = NvmlCollector()
    nvlink: Annotated[Collector, _switch("NVLink")] = Collector()
    gpm: Annotated[Collector, _switch("Hardware utilization of GPUs (GPM)")] = Collector()
    xid: Annotated[Collector, _switch("XID errors")] = Collector()
    infiniband: Annotated[InfinibandCollector, _switch("InfiniBand and RoCE")] = InfinibandCollector()
    ethernet: Annotated[EthernetCollector, _switch("Ethernet")] = EthernetCollector()
    block: Annotated[BlockCollector, _switch("Local disks")] = BlockCollector()
    nfs: Annotated[NfsCollector, _switch("NFS")] = NfsCollector()
    lustre: Annotated[Collector, _switch("Lustre")] = Collector()
    gpfs: Annotated[GpfsCollector, _switch("GPFS")] = GpfsCollector()
    beegfs: Annotated[Collector, _switch("BeeGFS")] = Collector()
    ceph: Annotated[Collector, _switch("CephFS")] = Collector()
    weka: Annotated[Collector, _switch("Weka")] = Collector()
    fuse: Annotated[Collector, _switch("FUSE mounts")] = Collector()
    gds: Annotated[Collector, _switch("GPUDirect Storage")] = Collector()
    pressure: Annotated[Collector, _switch("Pressure stall information")] = Collector()
    host: Annotated[Collector, _switch("Processors and memory")] = Collector()
    jobs: Annotated[Collector, _switch("Who owns which GPU")] = Collector()
