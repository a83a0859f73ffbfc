# SPDX-License-Identifier: Apache-2.0
"""What is mounted: mountinfo of process 1, the host's, or where that is not for us our own. Reading it asks no server.

The names of targets are those of NFS: by mount point, or by source where the mount point says nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gpufeed.errors import SourceError
from gpufeed.model.ids import StorageKey, StorageKind
from gpufeed.model.storage import StorageInfo
from gpufeed.parse.mountinfo import MountEntry, parse_mountinfo
from gpufeed.parse.mountstats import NfsMount
from gpufeed.sources.contract import Desk
from gpufeed.sources.files import Tree
from gpufeed.sources.nfs import HOST_TABLE, OWN_TABLE
from gpufeed.sources.nfs_targets import OPTIONS, targets

_AUTOMOUNT: Final = "autofs"


@dataclass(frozen=True, slots=True, kw_only=True)
class MountTarget:
    """One or several superblocks that go by one name, each with one of its mounts."""

    name: str
    mounts: tuple[MountEntry, ...]


class MountTable:
    """The mount table, parsed anew only when it has changed."""

    def __init__(self, desk: Desk) -> None:
        self._proc = Tree(desk.config.procfs, desk)
        self._data = b""
        self._entries: tuple[MountEntry, ...] = ()
        self.whose = ""  # what the last read can say for itself

    def targets(self, is_wanted: Callable[[str], bool]) -> tuple[MountTarget, ...]:
        """Mounts of the wanted types of file system, in the order of the table. Raises SourceError."""
        entries = self._read()
        wanted = [entry for entry in entries if is_wanted(entry.fstype)]
        automounts = [entry for entry in entries if entry.fstype == _AUTOMOUNT]
        return mount_targets(wanted, automounts) if wanted else ()

    def sources(self, fstype: str) -> tuple[str, ...]:
        """What file systems of a type were mounted from; none where the table cannot be read."""
        try:
            entries = self._read()
        except SourceError:
            return ()
        return tuple(entry.source for entry in entries if entry.fstype == fstype)

    def _read(self) -> tuple[MountEntry, ...]:
        data = self._text()
        if data != self._data:
            self._data = data
            self._entries = parse_mountinfo(data).rows
        return self._entries

    def _text(self) -> bytes:
        try:
            data = self._proc.table(f"{HOST_TABLE}/mountinfo")
        except SourceError:
            self.whose = "our own mount table"
            return self._proc.table(f"{OWN_TABLE}/mountinfo")
        self.whose = "the mount table of process 1"
        return data


def info_of(kind: StorageKind, target: MountTarget) -> StorageInfo:
    """What a target is, by its first superblock."""
    mount = target.mounts[0]
    return StorageInfo(
        storage=StorageKey(kind, target.name),
        source=mount.source,
        fstype=mount.fstype,
        options=_options(mount),
        devices=tuple(each.device for each in target.mounts),
    )


def _options(mount: MountEntry) -> dict[str, str]:
    """Of the allow-list, the superblock's own before those of the mount, but `ro` wherever it stands."""
    pairs = (word.partition("=") for word in mount.options.split(","))
    given = {key: value for key, _, value in pairs}
    return {key: given[key] for key in OPTIONS if key in given}


def mount_targets(wanted: Sequence[MountEntry], automounts: Sequence[MountEntry]) -> tuple[MountTarget, ...]:
    """One per name."""
    by_point = {entry.mountpoint: entry for entry in wanted}
    mounts = [NfsMount(source=entry.source, mountpoint=entry.mountpoint, fstype=entry.fstype) for entry in wanted]
    return tuple(
        MountTarget(name=found.name, mounts=tuple(by_point[mount.mountpoint] for mount in found.mounts))
        for found in targets(mounts, [*automounts, *wanted])
    )
