# SPDX-License-Identifier: Apache-2.0
"""Which disks a block device is made of: partitions lie on one, mapped devices and arrays on several."""

from typing import Final

from gpufeed.errors import SourceError
from gpufeed.sources.files import Tree

_DEPTH: Final = 4
"""A partition of an array of encrypted partitions; deeper is a circle."""


def disks_below(sys: Tree, device: str) -> frozenset[str]:
    """Names of the disks below `device` (major:minor) as diskstats has them; none where it is no block device."""
    try:
        return frozenset(name.replace("!", "/") for name in _below(sys, _disk_at(sys, f"dev/block/{device}"), 0))
    except SourceError:
        return frozenset()


def _below(sys: Tree, name: str, depth: int) -> frozenset[str]:
    try:
        parts = sys.names(f"block/{name}/slaves") if depth < _DEPTH else ()
    except SourceError:
        parts = ()
    if not parts:
        return frozenset({name})
    return frozenset().union(*(_below(sys, _whole(sys, part), depth + 1) for part in parts))


def _whole(sys: Tree, name: str) -> str:
    """The disk that a partition is of."""
    try:
        return _disk_at(sys, f"class/block/{name}")
    except SourceError:
        return name


def _disk_at(sys: Tree, link: str) -> str:
    """Of a link to a device: the disk itself, or that which stands above a partition. Raises SourceError."""
    *_, above, name = ("", *sys.target(link).split("/"))
    return above if above and sys.has(f"{link}/partition") else name
