# SPDX-License-Identifier: Apache-2.0
"""A Lustre mount that the data set lies on: llite and osc statistics in debugfs. Beside it, a GDS driver that is idle.

As a client of 2.15 prints them. What the truth calls NFS is whatever the data set is read through.
"""

from collections.abc import Sequence
from typing import Final

from gpufeed.simulate.levels import NFS_READ_BYTES
from gpufeed.simulate.trees.writer import TreeWriter
from gpufeed.simulate.truth import GpuTruth

FILE_SYSTEM: Final = "scratch"
_INSTANCE: Final = "ff4a1c2d3e5f6071"
_DEBUGFS: Final = "sys/kernel/debug/lustre"
_TARGETS: Final = 4
_FROM_CACHE: Final = 1.1
"""Bytes that applications read for one byte that comes from the servers."""

_WRITE_US: Final = 2_000
_GDS: Final = """\
GDS Version: 1.13.1.3
NVFS statistics(ver: 4.0)
NVFS Driver(version: 2.24.3)
Mellanox PeerDirect Supported: True
IO stats: Disabled, peer IO stats: Disabled
Logging level: info

Active Shadow-Buffer (MiB): 0
Active Process: 0
Reads\t\t\t\t: err=0 io_state_err=0
Sparse Reads\t\t        : n=0 io=0 holes=0 pages=0
Writes\t\t\t\t: err=0 io_state_err=0 pg-cache=0 pg-cache-fail=0 pg-cache-eio=0
Mmap\t\t\t\t: n=0 ok=0 err=0 munmap=0
Bar1-map\t\t\t: n=0 ok=0 err=0 free=0 callbacks=0 active=0 delay-frees=0
Error\t\t\t\t: cpu-gpu-pages=0 sg-ext=0 dma-map=0 dma-ref=0
Ops\t\t\t\t: Read=0 Write=0 BatchIO=0
"""


def write_clients(tree: TreeWriter) -> None:
    """What does not change."""
    mount = f"{FILE_SYSTEM}-{_INSTANCE}"
    for tracker in ("stats_track_pid", "stats_track_ppid", "stats_track_gid"):
        tree.write(f"sys/fs/lustre/llite/{mount}/{tracker}", "0\n")
    tree.write("sys/fs/lustre/version", "2.15.5\n")
    tree.write("proc/driver/nvidia-fs/stats", _GDS)


def write_clients_statistics(tree: TreeWriter, gpus: Sequence[GpuTruth], wall_ns: int) -> None:
    """What counts."""

    def total(name: str) -> float:
        return sum(gpu.host_total(name) for gpu in gpus)

    read, written = int(total("nfs_read_bytes")), int(total("nfs_write_bytes"))
    reads, writes = int(total("nfs_reads")), written // NFS_READ_BYTES
    read_us = int((total("nfs_read_rtt_s") + total("nfs_read_queue_s")) * 1e6)
    calls = int(reads * _FROM_CACHE)
    tree.write(
        f"{_DEBUGFS}/llite/{FILE_SYSTEM}-{_INSTANCE}/stats",
        _stats(
            wall_ns,
            _moved("read_bytes", calls, int(read * _FROM_CACHE)),
            _moved("write_bytes", writes, written),
            _took("read", calls, read_us),
            _took("write", writes, writes * _WRITE_US),
            _took("open", 7 + reads // 20, 900 + reads * 11),
            "ioctl                     3 samples [reqs]\n",
        ),
    )
    for target in range(_TARGETS):
        tree.write(
            f"{_DEBUGFS}/osc/{FILE_SYSTEM}-OST{target:04x}-osc-{_INSTANCE}/stats",
            _stats(
                wall_ns,
                _took("req_waittime", reads, read_us),
                _moved("read_bytes", reads // _TARGETS, _part(read, target)),
                _moved("write_bytes", writes // _TARGETS, _part(written, target)),
            ),
        )


def _part(total: int, target: int) -> int:
    """Of a sum, so that the parts add up."""
    return total * (target + 1) // _TARGETS - total * target // _TARGETS


def _stats(wall_ns: int, *lines: str) -> str:
    second, nanosecond = divmod(wall_ns, 1_000_000_000)
    return f"{'snapshot_time':<25} {second}.{nanosecond:09d} secs.nsecs\n{''.join(lines)}"


def _moved(name: str, calls: int, moved: int) -> str:
    """A counter that has not counted yet has no line."""
    return f"{name:<25} {calls} samples [bytes] 1 {NFS_READ_BYTES} {moved} {moved}\n" if moved else ""


def _took(name: str, calls: int, took_us: int) -> str:
    return f"{name:<25} {calls} samples [usecs] 1 90000 {took_us} {took_us}\n" if calls else ""
