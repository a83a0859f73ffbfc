# SPDX-License-Identifier: Apache-2.0
"""NFS mounts: the client's own counters in mountstats. Nothing here touches a mount: a dead server cannot hang it."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from gpufeed.errors import Denied, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputStatus
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.parse.mountinfo import MountEntry, parse_mountinfo
from gpufeed.parse.mountstats import parse_mountstats
from gpufeed.sources.contract import Desk, Group, LanePlan, Outcome
from gpufeed.sources.files import HeldFile, Tree
from gpufeed.sources.gathering import Gathering, Statuses, state_of
from gpufeed.sources.nfs_targets import counters_of, info_of, targets
from gpufeed.sources.selection import Selection

FAST: Final = GroupName("nfs.fast")
SLOW: Final = GroupName("nfs.slow")

HOST_TABLE: Final = "1"
OWN_TABLE: Final = "self"
_OWN_TABLE_SAYS: Final = "reads the mount table of its own namespace: mounts hidden from the unit are missing"
_OWN_TABLE_FIX: Final = "AmbientCapabilities=CAP_DAC_READ_SEARCH for the probe, or no ProtectHome=yes in its unit"


class NfsSpec(Struct, frozen=True):
    """Which mounts, and what they are called."""

    mounts: Selection
    is_named_by_source: bool


class NfsSource:
    """Plans the lane `nfs`."""

    name = "nfs"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One lane, or none where the collector is off."""
        options = config.options("nfs")
        if not options.enabled:
            return ()
        groups = tuple(Group(name=name, collector="nfs", period_ns=config.period_ns(name)) for name in (FAST, SLOW))
        spec = NfsSpec(Selection(exclude=options.exclude_mounts), options.target_from == "source")
        return (LanePlan(lane=LaneId("nfs"), groups=groups, open=open_nfs, spec=spec),)


def open_nfs(spec: NfsSpec, desk: Desk) -> "NfsReader":
    """A reader of the configured procfs."""
    return NfsReader(spec, desk)


class NfsReader:
    """Reads the mount table of process 1, the host's, or where that is not for us our own."""

    def __init__(self, spec: NfsSpec, desk: Desk) -> None:
        self._spec = spec
        self._proc = Tree(desk.config.procfs, desk)
        self._files = {pid: HeldFile(desk.config.procfs, f"{pid}/mountstats", desk) for pid in (HOST_TABLE, OWN_TABLE)}
        self._statuses = Statuses()
        self._seen: tuple[str, ...] | None = None
        self._entries: tuple[MountEntry, ...] = ()

    def read(self, group: GroupName) -> Outcome:
        """`nfs.fast`: a StorageCounters per target; `nfs.slow`: a StorageInfo."""
        gathering = Gathering(self._statuses)
        try:
            pid, data, status = self._table()
        except SourceError as error:
            gathering.say(InputStatus("nfs", "", state_of(error), str(error)))
            gathering.fail("mountstats", error)
            return gathering.outcome()
        parsed = parse_mountstats(data)
        for reject in parsed.rejects:
            gathering.fail("mountstats", reject)
        wanted = [mount for mount in parsed.rows if self._spec.mounts.takes(mount.mountpoint)]
        self._learn(pid, tuple(mount.mountpoint for mount in wanted))
        for target in targets(wanted, self._entries, is_named_by_source=self._spec.is_named_by_source):
            gathering.samples.append(counters_of(target) if group == FAST else info_of(target, self._entries))
        gathering.say(_status(status, has_any=bool(wanted), rejects=len(parsed.rejects)))
        return gathering.outcome()

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()

    def _table(self) -> tuple[str, bytes, InputStatus]:
        """Whose table, its text, and what to say of it. Raises SourceError of our own where neither can be read."""
        try:
            return HOST_TABLE, self._files[HOST_TABLE].read(), InputStatus("nfs", "", "available", "process 1")
        except SourceError as error:
            fix = _OWN_TABLE_FIX if isinstance(error, Denied) else ""
            status = InputStatus("nfs", "", "available", _OWN_TABLE_SAYS, fix)
            return OWN_TABLE, self._files[OWN_TABLE].read(), status

    def _learn(self, pid: str, mountpoints: Iterable[str]) -> None:
        """Look at mountinfo again when the mounts are not those of the read before."""
        seen = (pid, *mountpoints)
        if seen == self._seen:
            return
        self._seen = seen
        self._entries = ()
        if len(seen) > 1:
            try:
                self._entries = parse_mountinfo(self._proc.table(f"{pid}/mountinfo")).rows
            except SourceError:
                self._entries = ()  # the tables alone have to do


def _status(found: InputStatus, *, has_any: bool, rejects: int) -> InputStatus:
    """Mounts whose lines cannot be understood are not mounts that are not there."""
    if has_any:
        return found
    if rejects:
        return InputStatus("nfs", "", "broken", f"none of the {rejects} mounts could be understood; the log names them")
    return InputStatus("nfs", "", "absent", "no NFS file system is mounted")
