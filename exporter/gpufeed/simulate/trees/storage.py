# SPDX-License-Identifier: Apache-2.0
"""Block devices: /proc/diskstats and /sys/block. One disk works, one is idle, and device mapper lies on the first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpufeed.simulate.trees.writer import TreeWriter
from gpufeed.simulate.truth import GpuTruth

_SECTOR_BYTES: Final = 512
_READ_BYTES: Final = 128 * 1024
_READ_MS: Final = 0.12
_WRITE_BYTES: Final = 64 * 1024
_WRITE_MS: Final = 0.05
_MILLISECONDS_WRAP_AT: Final = 1 << 32
_NVME: Final = "sys/devices/pci0000:00/0000:00:03.0/0000:03:00.0/nvme"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A line of /proc/diskstats."""

    name: str
    number: tuple[int, int]
    path: str = ""  # in sysfs; partitions have none of their own in /sys/block
    works: bool = False
    slaves: tuple[str, ...] = ()


_DISKS: Final = (
    Disk(name="loop0", number=(7, 0), path="sys/devices/virtual/block/loop0"),
    Disk(name="nvme0n1", number=(259, 0), path=f"{_NVME}/nvme0/nvme0n1", works=True),
    Disk(name="nvme0n1p1", number=(259, 1), works=True),
    Disk(name="nvme1n1", number=(259, 2), path=f"{_NVME}/nvme1/nvme1n1"),
    Disk(name="dm-0", number=(253, 0), path="sys/devices/virtual/block/dm-0", works=True, slaves=("nvme0n1",)),
)


def write_disks(tree: TreeWriter) -> None:
    """What does not change."""
    for disk in (disk for disk in _DISKS if disk.path):
        major, minor = disk.number
        tree.write(f"{disk.path}/dev", f"{major}:{minor}\n")
        tree.write(f"{disk.path}/size", f"{7_501_476_528 if disk.name != 'loop0' else 0}\n")
        tree.write(f"{disk.path}/queue/logical_block_size", "512\n")
        tree.write(f"{disk.path}/queue/rotational", "0\n")
        controller = disk.path.rpartition("/")[0]
        if controller.startswith(_NVME):
            tree.write(f"{controller}/model", "Simulated NVMe 3.84TB                  \n")
            tree.link(f"{disk.path}/device", controller)
        tree.make_directory(f"{disk.path}/holders")
        tree.make_directory(f"{disk.path}/slaves")
        for slave in disk.slaves:
            path = next(other.path for other in _DISKS if other.name == slave)
            tree.link(f"{disk.path}/slaves/{slave}", path)
            tree.link(f"{path}/holders/{disk.name}", disk.path)
        tree.link(f"sys/block/{disk.name}", disk.path)
        tree.link(f"sys/dev/block/{major}:{minor}", disk.path)
    for disk in (disk for disk in _DISKS if not disk.path):
        path = f"{_NVME}/nvme0/nvme0n1/{disk.name}"
        tree.write(f"{path}/partition", "1\n")
        tree.link(f"sys/dev/block/{disk.number[0]}:{disk.number[1]}", path)


def write_diskstats(tree: TreeWriter, gpus: Sequence[GpuTruth]) -> None:
    """What counts."""
    read = sum(gpu.host_total("disk_read_bytes") for gpu in gpus)
    written = sum(gpu.host_total("disk_write_bytes") for gpu in gpus)
    busy, quiet = _fields(read, written), _fields(0.0, 0.0)
    lines = []
    for disk in _DISKS:
        fields = busy if disk.works else quiet
        lines.append(f"{disk.number[0]:4d} {disk.number[1]:7d} {disk.name} {fields}\n")
        if disk.path:
            tree.write(f"{disk.path}/stat", f"{fields}\n")
    tree.write("proc/diskstats", "".join(lines))


def _fields(read: float, written: float) -> str:
    reads, writes = int(read / _READ_BYTES), int(written / _WRITE_BYTES)
    read_ms, write_ms = int(reads * _READ_MS), int(writes * _WRITE_MS)
    queue_ms = (read_ms + write_ms) % _MILLISECONDS_WRAP_AT
    return (
        f"{reads} 0 {int(read / _SECTOR_BYTES)} {read_ms % _MILLISECONDS_WRAP_AT} "
        f"{writes} 0 {int(written / _SECTOR_BYTES)} {write_ms % _MILLISECONDS_WRAP_AT} "
        f"0 {queue_ms} {queue_ms} 0 0 0 0 0 0"
    )
