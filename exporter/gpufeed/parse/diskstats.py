# SPDX-License-Identifier: Apache-2.0
"""/proc/diskstats, and which of its lines are devices whose work may be added up.

Source: Documentation/admin-guide/iostats.rst. 14, 18 (since 4.18) or 20 columns (since 5.5), 17 under lxcfs.
"""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from gpufeed.errors import ParseError
from gpufeed.parse.number import MAX_COUNT, counts
from gpufeed.parse.table import Parsed, parse_rows
from gpufeed.parse.text import clean_text
from gpufeed.units import MS_PER_S, SECTOR_BYTES

N = TypeVar("N", int, float)

_NAME_COLUMN: Final = 2
_VALUES: Final = 11  # columns behind the name that every kernel since 2.6.25 has
_OVER_OTHERS: Final = re.compile(r"(?:loop|ram|zram|sr|fd|dm-|md|drbd|bcache)\d")
_PATH: Final = re.compile(r"(nvme\d+)c\d+(n\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskStats:
    """One line: work of a device since it was attached. Times are printed in 32 bits of milliseconds and wrap."""

    name: str  # as every tool spells it: cciss/c0d0
    reads: int  # field 1
    read_bytes: int  # field 3
    read_s: float  # field 4
    writes: int  # field 5
    write_bytes: int  # field 7
    write_s: float  # field 8
    inflight: int  # field 9
    busy_s: float  # field 10
    queue_s: float  # field 11: time weighted by the number of requests

    @property
    def directory(self) -> str:
        """As sysfs, where a name may hold no slash, spells it: cciss!c0d0."""
        return self.name.replace("/", "!")


def parse_diskstats(data: bytes) -> Parsed[DiskStats]:
    """One row per block device and partition, in the order of the file; columns beyond the 14th are not read."""
    return parse_rows(data.split(b"\n"), _parse_line)


def leaf_disks(
    disks: Iterable[DiskStats], whole: Collection[str] = (), left_out: Collection[str] = ()
) -> tuple[DiskStats, ...]:
    """Devices whose work may be added up: each byte is counted once.

    Not partitions (by their names, but nothing that is in `whole`, the names in /sys/block), not devices made of others
    (dm, md, and what the caller knows to be `left_out`), not memory or optical drives. Paths of an NVMe multipath head
    count as the head.
    """
    rows = [disk for disk in disks if not _is_no_device(disk) and disk.directory not in left_out]
    names = {disk.name for disk in rows}
    leaves: dict[str, list[DiskStats]] = {}
    for disk in rows:
        path = _PATH.fullmatch(disk.name)
        is_whole = disk.directory in whole or not _is_partition(disk.name, names)
        if path or is_whole:
            leaves.setdefault("".join(path.groups()) if path else disk.name, []).append(disk)
    return tuple(_one(name, rows) for name, rows in leaves.items())


def _parse_line(line: bytes) -> DiskStats:
    words = line.split()
    if len(words) <= _NAME_COLUMN:
        raise ParseError("major, minor, name and counts", line.strip(), "diskstats")
    name = clean_text(words[_NAME_COLUMN])
    value = counts(words[_NAME_COLUMN + 1 :], _VALUES, f"diskstats {name}")
    if max(value[2], value[6]) * SECTOR_BYTES > MAX_COUNT:
        raise ParseError("sectors that a device can have moved", line.strip(), f"diskstats {name}")
    return DiskStats(
        name=name,
        reads=value[0],
        read_bytes=value[2] * SECTOR_BYTES,
        read_s=value[3] / MS_PER_S,
        writes=value[4],
        write_bytes=value[6] * SECTOR_BYTES,
        write_s=value[7] / MS_PER_S,
        inflight=value[8],
        busy_s=value[9] / MS_PER_S,
        queue_s=value[10] / MS_PER_S,
    )


def _is_no_device(disk: DiskStats) -> bool:
    """Made of others or of memory; or one of the many slots for network disks, and never used."""
    is_free_slot = disk.name.startswith("nbd") and disk.reads == disk.writes == 0
    return is_free_slot or _OVER_OTHERS.match(disk.name) is not None


def _is_partition(name: str, names: Collection[str]) -> bool:
    """`sda1` beside `sda`, `nvme0n1p2` beside `nvme0n1`."""
    base = name.rstrip("0123456789")
    if base == name:
        return False
    return base in names or (base.endswith("p") and base[:-1] in names and base[-2:-1].isdigit())


def _one(name: str, rows: list[DiskStats]) -> DiskStats:
    """A device, or a multipath head: the kernel counts on the head, on its paths, or on both, by version.

    So per field the larger of the head and the sum of its paths, never their sum.
    """
    head = [row for row in rows if row.name == name]
    paths = [row for row in rows if row.name != name]
    if not paths:
        return rows[0]

    def larger(field: Callable[[DiskStats], N]) -> N:
        return max(*map(field, head), sum(map(field, paths))) if head else sum(map(field, paths))

    return DiskStats(
        name=name,
        reads=larger(lambda row: row.reads),
        read_bytes=larger(lambda row: row.read_bytes),
        read_s=larger(lambda row: row.read_s),
        writes=larger(lambda row: row.writes),
        write_bytes=larger(lambda row: row.write_bytes),
        write_s=larger(lambda row: row.write_s),
        inflight=larger(lambda row: row.inflight),
        busy_s=larger(lambda row: row.busy_s),
        queue_s=larger(lambda row: row.queue_s),
    )
