# SPDX-License-Identifier: Apache-2.0
"""What things are called: identities that survive a restart, a re-enumeration and the way over the wire."""

from typing import Final, Literal, NewType, get_args

from msgspec import Struct

GpuUuid = NewType("GpuUuid", str)
"""NVML UUID of a board (`GPU-…`); of the physical board also where MIG is on."""

LaneId = NewType("LaneId", str)
"""One thing that can hang by itself: `nvml-init`, `gpu3`, `ib:mlx5_0`, `block`, `nfs` …"""

CollectorName = Literal[
    "nvml", "nvlink", "gpm", "xid", "infiniband", "ethernet", "block", "nfs", "lustre", "gpfs",
    "beegfs", "ceph", "weka", "fuse", "gds", "pressure", "host", "jobs", "extra", "self",
]  # fmt: skip
"""What a user can switch on and off and ask for with `collect[]`. `extra`: third-party sources; `self`: always on."""

COLLECTORS: Final[tuple[CollectorName, ...]] = get_args(CollectorName)

GroupName = NewType("GroupName", str)
"""`<collector>.<speed>`, for example `nvml.fast`: what is read together at one period; a key of `sampling.periods`."""

StorageKind = Literal["block", "nfs", "lustre", "gpfs", "beegfs", "ceph", "weka", "fuse", "gds"]


class GpuKey(Struct, frozen=True, array_like=True, order=True):
    """A GPU, or with `gi` (GPU instance) and `ci` (compute instance) a MIG slice of it."""

    uuid: GpuUuid
    gi: int | None = None
    ci: int | None = None

    @property
    def is_instance(self) -> bool:
        """A MIG instance, not a whole board."""
        return self.gi is not None

    @property
    def board(self) -> "GpuKey":
        """The board that this is, or is a part of."""
        return GpuKey(self.uuid)

    def is_within(self, other: "GpuKey") -> bool:
        """Whether this is `other` or a part of it."""
        return self.uuid == other.uuid and other.gi in {None, self.gi} and other.ci in {None, self.ci}


class JobKey(Struct, frozen=True, array_like=True, order=True):
    """A scheduler's job. Kubernetes: `job_id` is the pod UID, `step` the container."""

    scheduler: str
    job_id: str
    step: str = ""


class StorageKey(Struct, frozen=True, array_like=True, order=True):
    """One thing bytes are read from: a block device, a mount, a file system."""

    kind: StorageKind
    target: str


class IbPortKey(Struct, frozen=True, array_like=True, order=True):
    """A port of an RDMA device, as /sys/class/infiniband names it."""

    device: str
    port: int
