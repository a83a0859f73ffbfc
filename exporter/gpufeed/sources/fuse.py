# SPDX-License-Identifier: Apache-2.0
"""FUSE mounts: how many requests wait for the daemon. The kernel counts neither bytes nor time of them.

Source: fs/fuse/control.c. A connection is called by the device number of its superblock; reading of it asks no daemon.
"""

from typing import Final

from msgspec import Struct

from gpufeed.errors import ParseError, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.ids import GroupName, StorageKey
from gpufeed.model.storage import StorageCounters
from gpufeed.parse.mountinfo import MountEntry
from gpufeed.parse.number import parse_count
from gpufeed.sources.contract import Desk, LanePlan, Outcome
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Gathering, Statuses, state_of
from gpufeed.sources.mounts import MountTable, MountTarget, info_of
from gpufeed.sources.storage_scan import (
    NOT_MEASURABLE,
    READ_ANY_FILE,
    Found,
    ScanSpec,
    counter_plan,
    refused,
    report,
    scan_plan,
)
from gpufeed.sources.summing import total

CONNECTIONS: Final = "fs/fuse/connections"
ALL: Final = StorageKey("fuse", "connections")

_NO_STORAGE: Final = frozenset(
    {
        "fuse.lxcfs", "fuse.portal", "fuse.gvfsd-fuse", "fuse.snapfuse", "fuse.squashfuse", "fuse.squashfuse_ll",
        "fuse.fuse-overlayfs", "fuse.vmware-vmblock",
    }
)  # fmt: skip
"""Views of this very node, and images on it: no storage that a job reads its data from."""

_MINOR_BITS: Final = 20
_NO_BYTES: Final = "counts only requests that wait"
_NOT_SHOWN: Final = f"{NOT_MEASURABLE}: the kernel does not show its connection"
_SHOW: Final = "mount -t fusectl none /sys/fs/fuse/connections"


class Connections(Struct, frozen=True):
    """The superblocks of a target, by number."""

    target: str
    numbers: tuple[int, ...]


class FuseSpec(Struct, frozen=True):
    """All that is read together: a read takes no time, and cannot wait for a daemon."""

    connections: tuple[Connections, ...]


class FuseSource:
    """Plans the lane `fuse`, which plans one for all connections."""

    name = "fuse"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One scan lane, or none where the collector is off."""
        return scan_plan("fuse", config, open_scan)


def open_scan(spec: ScanSpec, desk: Desk) -> "FuseScan":
    """A reader that finds mounts."""
    return FuseScan(spec, desk)


def open_counters(spec: FuseSpec, desk: Desk) -> "FuseReader":
    """A reader of connections."""
    return FuseReader(spec, desk)


class FuseScan:
    """Looks through the mount table, and whether the connections can be read."""

    def __init__(self, spec: ScanSpec, desk: Desk) -> None:
        self._spec = spec
        self._table = MountTable(desk)
        self._tree = Tree(desk.config.sysfs, desk)
        self._statuses = Statuses()

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """A StorageInfo per target, and a lane for those that can be read."""
        gathering = Gathering(self._statuses)
        try:
            targets = self._table.targets(_is_storage)
        except SourceError as error:
            return refused(gathering, "fuse", "mountinfo", error)
        found: list[Found] = []
        shown: list[Connections] = []
        for target in targets:
            connections = Connections(target.name, tuple(map(_number, target.mounts)))
            try:
                requests(self._tree, connections)
            except (SourceError, ParseError) as error:
                found.append(_unseen(target, error))
                gathering.fail(target.name, error)
            else:
                found.append(Found(info=info_of("fuse", target), reason=_NO_BYTES))
                shown.append(connections)
        lanes = (counter_plan(ALL, self._spec, FuseSpec(tuple(shown)), open_counters),) if shown else ()
        return report(gathering, "fuse", found, f"no FUSE storage in {self._table.whose}", lanes)

    def close(self) -> None:
        """Nothing is held."""


class FuseReader:
    """Reads how many requests wait."""

    def __init__(self, spec: FuseSpec, desk: Desk) -> None:
        self._spec = spec
        self._tree = Tree(desk.config.sysfs, desk)
        self._statuses = Statuses()

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """A StorageCounters per target; one that was unmounted since the last scan has none."""
        gathering = Gathering(self._statuses)
        for connections in self._spec.connections:
            try:
                inflight = requests(self._tree, connections)
            except (SourceError, ParseError) as error:
                gathering.fail(connections.target, error)
            else:
                storage = StorageKey("fuse", connections.target)
                gathering.samples.append(StorageCounters(storage=storage, inflight=inflight))
        return gathering.outcome()

    def close(self) -> None:
        """Nothing is held."""


def requests(tree: Tree, connections: Connections) -> int:
    """Requests that the daemon has not answered. Raises SourceError, ParseError."""
    counts = [
        parse_count(tree.attribute(f"{CONNECTIONS}/{number}/waiting"), f"fuse {number}")
        for number in connections.numbers
    ]
    waiting = total(counts)
    if waiting is None:
        raise ParseError("a count", "nothing", f"fuse {connections.target}")
    return waiting


def _is_storage(fstype: str) -> bool:
    return (fstype in {"fuse", "fuseblk"} or fstype.startswith("fuse.")) and fstype not in _NO_STORAGE


def _number(mount: MountEntry) -> int:
    """As the kernel keeps a device number, which is not how it prints it."""
    major, minor = mount.device.split(":")
    return int(major) << _MINOR_BITS | int(minor)


def _unseen(target: MountTarget, error: SourceError | ParseError) -> Found:
    state = state_of(error)
    if state == "absent":
        return Found(info=info_of("fuse", target), state="unsupported", reason=_NOT_SHOWN, fix=_SHOW)
    fix = READ_ANY_FILE if state == "denied" else ""
    return Found(info=info_of("fuse", target), state=state, reason=str(error), fix=fix)
