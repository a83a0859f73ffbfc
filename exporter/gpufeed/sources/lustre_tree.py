# SPDX-License-Identifier: Apache-2.0
"""Where Lustre shows what its mounts do. Up to 2.11 that is procfs, then debugfs; which there are, sysfs tells anybody.

A mount is a directory `<file system>-<instance>`, with another instance after each mount. No file read here asks a
server; `kbytesfree` and others beside them would.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from gpufeed.errors import Absent, SourceError, Unsupported
from gpufeed.parse.lustre import LustreStats, parse_lustre_stats
from gpufeed.parse.text import clean_text
from gpufeed.sources.contract import Desk
from gpufeed.sources.files import Tree

DEBUGFS: Final = "kernel/debug/lustre"
PROCFS: Final = "fs/lustre"
SINGLES: Final = "fs/lustre/llite"
"""One value a file: in procfs beside the statistics, and since 2.12 in sysfs."""

OSC_LIMIT: Final = 256
"""Files of one mount, one for each of its targets on the servers, that are worth the time of every fast read."""

RESTRICTED: Final = "its statistics are kept of one process or group only"
_NO_STATS: Final = "this client shows no statistics"
_DIRECTORY: Final = re.compile(r"(?P<file_system>.+)-(?P<instance>[0-9a-f]{8,32})")
_TRACKERS: Final = ("stats_track_pid", "stats_track_ppid", "stats_track_gid")
_TRACKS_ALL: Final = re.compile(r"0\b.*|")


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreMount:
    """One directory. `root`: where its statistics are; None: nowhere that we can see."""

    file_system: str
    instance: str
    root: str | None

    @property
    def name(self) -> str:
        """As the kernel spells the directory."""
        return f"{self.file_system}-{self.instance}"


class MountFiles(Struct, frozen=True):
    """The statistics of one mount, below sysfs or procfs: of its applications, and of each target on the servers."""

    root: str
    stats: str
    osc: tuple[str, ...] = ()


class LustreTree:
    """Both trees at once."""

    def __init__(self, desk: Desk) -> None:
        self._sys = Tree(desk.config.sysfs, desk)
        self._proc = Tree(desk.config.procfs, desk)
        self._refusal: SourceError | None = None

    def mounts(self) -> tuple[LustreMount, ...]:
        """Every mount, ordered by file system and instance."""
        self._refusal = None
        roots: dict[str, str | None] = {}
        for root in (DEBUGFS, PROCFS):
            for name in self._directories(root, "llite"):
                if self._tree(root).has(f"{root}/llite/{name}/stats"):
                    roots.setdefault(name, root)
        for name in self._singles():
            roots.setdefault(name, None)
        found = [(match, root) for name, root in sorted(roots.items()) if (match := _DIRECTORY.fullmatch(name))]
        return tuple(
            LustreMount(file_system=match["file_system"], instance=match["instance"], root=root)
            for match, root in found
        )

    def files(self, mount: LustreMount) -> MountFiles:
        """What to read. Raises SourceError where it is not for us, or would not say what it seems to say."""
        if mount.root is None:
            raise self._refusal or Unsupported(_NO_STATS)
        if self._is_restricted(mount):
            raise Unsupported(RESTRICTED)
        directory = f"{mount.root}/llite/{mount.name}"
        self._tree(mount.root).table(f"{directory}/stats")  # under lockdown it is there, and cannot be opened
        ends_with = f"-osc-{mount.instance}"
        osc = [
            f"{mount.root}/osc/{name}/stats"
            for name in self._directories(mount.root, "osc")
            if name.startswith(f"{mount.file_system}-") and name.endswith(ends_with)
        ]
        osc = [path for path in osc if self._tree(mount.root).has(path)]
        return MountFiles(mount.root, f"{directory}/stats", tuple(osc) if len(osc) <= OSC_LIMIT else ())

    def stats(self, root: str, path: str) -> LustreStats:
        """The counters of one file. Raises SourceError, ParseError."""
        return parse_lustre_stats(self._tree(root).table(path), path)

    def _tree(self, root: str) -> Tree:
        return self._proc if root == PROCFS else self._sys

    def _directories(self, root: str, kind: str) -> tuple[str, ...]:
        try:
            names = self._tree(root).names(f"{root}/{kind}")
        except Absent:
            return ()
        except SourceError as error:
            self._refusal = self._refusal or error
            return ()
        return tuple(filter(_DIRECTORY.fullmatch, names))

    def _singles(self) -> Iterator[str]:
        try:
            yield from filter(_DIRECTORY.fullmatch, self._sys.names(SINGLES))
        except SourceError:
            return  # older versions have no such directory

    def _is_restricted(self, mount: LustreMount) -> bool:
        """Whether somebody asked Lustre to count one process, parent or group alone."""
        for tree in (self._sys, self._proc):
            for tracker in _TRACKERS:
                try:
                    text = clean_text(tree.attribute(f"{SINGLES}/{mount.name}/{tracker}"))
                except SourceError:
                    continue
                if _TRACKS_ALL.fullmatch(text) is None:
                    return True
        return False
