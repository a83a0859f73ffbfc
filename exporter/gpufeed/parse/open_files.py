# SPDX-License-Identifier: Apache-2.0
"""On which file system an open file lies, by its path and the mount table of its process. No mount is asked itself."""

from collections.abc import Iterable, Sequence
from typing import Final

from gpufeed.parse.mountinfo import MountEntry

_NETWORK: Final = frozenset({"nfs", "nfs4", "lustre", "gpfs", "beegfs", "beegfs_nodev", "ceph", "wekafs"})
_LOCAL: Final = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs"})
_FUSE: Final = "fuse."
_ROOT: Final = "/"


def data_mounts(paths: Iterable[str], entries: Sequence[MountEntry]) -> tuple[MountEntry, ...]:
    """The mounts on which `paths` lie and that can hold data, each once, ordered by mount point.

    Of local file systems the root is left out: every program has a library open there.
    """
    by_length = sorted(_on_top(entries), key=lambda entry: -len(entry.mountpoint))
    found = {entry.mountpoint: entry for path in paths if (entry := _holding(path, by_length)) is not None}
    return tuple(entry for _, entry in sorted(found.items()) if is_network(entry) or _is_local_data(entry))


def is_network(entry: MountEntry) -> bool:
    """Whether what is read here comes from elsewhere."""
    return entry.fstype in _NETWORK or entry.fstype.startswith(_FUSE)


def _is_local_data(entry: MountEntry) -> bool:
    return entry.fstype in _LOCAL and entry.mountpoint != _ROOT


def _on_top(entries: Iterable[MountEntry]) -> list[MountEntry]:
    """Of several mounts in one place the last covers the others."""
    return list({entry.mountpoint: entry for entry in entries}.values())


def _holding(path: str, by_length: Sequence[MountEntry]) -> MountEntry | None:
    if not path.startswith("/"):
        return None  # a pipe, a socket, memory
    for entry in by_length:
        if entry.mountpoint in {_ROOT, path} or path.startswith(f"{entry.mountpoint}/"):
            return entry
    return None
