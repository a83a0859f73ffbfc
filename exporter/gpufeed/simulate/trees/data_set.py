# SPDX-License-Identifier: Apache-2.0
"""A data set that lies on CephFS, FUSE, Weka or BeeGFS: its mount, and what the kernel shows of its client.

It is mounted over the NFS mount that other nodes read it through. What the truth calls NFS is whatever it is read
through; of FUSE the kernel shows requests that wait, of Weka and BeeGFS nothing that counts.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from gpufeed.simulate.layout import DataSetKind
from gpufeed.simulate.levels import NFS_READ_BYTES
from gpufeed.simulate.trees.writer import TreeWriter
from gpufeed.simulate.truth import GpuTruth

_NUMBER: Final = 71
_CLUSTER: Final = "5d1c2a7e-0f3b-4c8d-9e6a-77b1c2d3e4f5"
_CLIENT: Final = f"sys/kernel/debug/ceph/{_CLUSTER}.client4242/metrics"
_CONNECTION: Final = f"sys/fs/fuse/connections/{_NUMBER}"
_BEEGFS: Final = "proc/fs/beegfs/5F2-6711A0C3-node"
_MOUNTS: Final[Mapping[DataSetKind, str]] = MappingProxyType(
    {
        "ceph": "ceph 10.3.0.1:6789,10.3.0.2:6789:/train rw,name=train,secret=<hidden>,acl,rsize=65536",
        "fuse": "fuse.s3fs s3fs rw,user_id=0,group_id=0,allow_other",
        "weka": "wekafs backend1/train rw,readcache,num_cores=2",
        "beegfs": "beegfs beegfs_nodev rw,cfgFile=/etc/beegfs/beegfs-client.conf",
    }
)
_LATENCY: Final = "item          total       sum_lat(us)     avg_lat(us)     min_lat(us)     max_lat(us)     stdev(us)"
_SIZE: Final = "item          total       avg_sz(bytes)   min_sz(bytes)   max_sz(bytes)  total_sz(bytes)"


def mount_line(kind: DataSetKind, point: str) -> str | None:
    """Its line of a mount table; None where it lies on what is mounted there anyway."""
    mounted = _MOUNTS.get(kind)
    return None if mounted is None else f"171 27 0:{_NUMBER} / {point} rw,relatime shared:171 - {mounted}"


def write_client(tree: TreeWriter, kind: DataSetKind) -> None:
    """What does not change."""
    if kind == "fuse":
        tree.write(f"{_CONNECTION}/congestion_threshold", "9\n")
    elif kind == "beegfs":
        tree.write(f"{_BEEGFS}/config", "cfgFile = /etc/beegfs/beegfs-client.conf\nsysMgmtdHost = storage1\n")


def write_client_statistics(tree: TreeWriter, kind: DataSetKind, gpus: Sequence[GpuTruth]) -> None:
    """What counts."""

    def total(name: str) -> float:
        return sum(gpu.host_total(name) for gpu in gpus)

    if kind == "fuse":
        waiting = sum(gpu.activity.host.loaders_blocked for gpu in gpus)
        tree.write(f"{_CONNECTION}/waiting", f"{waiting}\n")
    elif kind == "ceph":
        read, written, reads = (int(total(name)) for name in ("nfs_read_bytes", "nfs_write_bytes", "nfs_reads"))
        writes, read_us = written // NFS_READ_BYTES, int((total("nfs_read_rtt_s") + total("nfs_read_queue_s")) * 1e6)
        tree.write(f"{_CLIENT}/latency", _table(_LATENCY, {"read": (reads, read_us), "write": (writes, writes * 2000)}))
        sizes = {"read": (reads, read), "write": (writes, written)}
        tree.write(f"{_CLIENT}/size", _table(_SIZE, sizes, is_last=True))


def _table(header: str, rows: Mapping[str, tuple[int, int]], *, is_last: bool = False) -> str:
    """Two numbers a row are known, how many and their sum; the others are those of rows that are all alike."""
    lines = [header, "-" * len(header)]
    for name, (count, amount) in rows.items():
        mean = amount // count if count else 0
        numbers = (count, mean, mean, mean, amount) if is_last else (count, amount, mean, mean, mean, 0)
        lines.append(f"{name:<14}" + "".join(f"{number:<16}" for number in numbers))
    return "\n".join(lines) + "\n"
