# SPDX-License-Identifier: Apache-2.0
"""Lustre: the client's own statistics. One lane looks which file systems there are; each is read on one of its own."""

from itertools import groupby
from typing import Final

from msgspec import Struct

from gpufeed.errors import SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.ids import GroupName, StorageKey
from gpufeed.model.storage import StorageInfo
from gpufeed.sources.contract import Desk, LanePlan, Outcome
from gpufeed.sources.gathering import Gathering, Statuses, state_of
from gpufeed.sources.lustre_counters import LustreClient, counters_of
from gpufeed.sources.lustre_tree import RESTRICTED, LustreTree, MountFiles
from gpufeed.sources.mounts import MountTable
from gpufeed.sources.storage_scan import Found, ScanSpec, counter_plan, fix_of, report, scan_plan

_FSTYPE: Final = "lustre"
_UNRESTRICT: Final = "lctl set_param llite.*.stats_track_pid=0 (or ppid, or gid)"
_CACHE_COUNTED: Final = (
    "bytes may include what the page cache answered: its targets show no statistics, or are too many"
)


class LustreSpec(Struct, frozen=True):
    """One file system, and its mounts: usually one."""

    file_system: str
    mounts: tuple[MountFiles, ...]


class LustreSource:
    """Plans the lane `lustre`, which finds the others."""

    name = "lustre"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One scan lane, or none where the collector is off."""
        return scan_plan("lustre", config, open_scan)


def open_scan(spec: ScanSpec, desk: Desk) -> "LustreScan":
    """A reader that finds file systems."""
    return LustreScan(spec, desk)


def open_counters(spec: LustreSpec, desk: Desk) -> "LustreReader":
    """A reader of one file system."""
    return LustreReader(spec, desk)


class LustreScan:
    """Finds mounts, and whether what they count can be read."""

    def __init__(self, spec: ScanSpec, desk: Desk) -> None:
        self._spec = spec
        self._tree = LustreTree(desk)
        self._table = MountTable(desk)
        self._statuses = Statuses()

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """A StorageInfo per file system, and a lane for each that can be read; ordered by name."""
        gathering = Gathering(self._statuses)
        mounts = self._tree.mounts()
        sources = self._table.sources(_FSTYPE) if mounts else ()
        found: list[Found] = []
        lanes: list[LanePlan] = []
        for name, alike in groupby(mounts, lambda mount: mount.file_system):
            info = StorageInfo(
                storage=StorageKey("lustre", name),
                source=next((source for source in sources if _file_system(source) == name), None),
                fstype=_FSTYPE,
            )
            try:
                files = tuple(map(self._tree.files, alike))
            except SourceError as error:
                gathering.fail(name, error)
                fix = _UNRESTRICT if str(error) == RESTRICTED else fix_of(error)
                found.append(Found(info=info, state=state_of(error), reason=str(error), fix=fix))
                continue
            found.append(Found(info=info, reason="" if all(one.osc for one in files) else _CACHE_COUNTED))
            lanes.append(counter_plan(info.storage, self._spec, LustreSpec(name, files), open_counters))
        return report(gathering, "lustre", found, "no Lustre file system is mounted", tuple(lanes))

    def close(self) -> None:
        """Nothing is held."""


class LustreReader:
    """Reads one file system. Its mounts are added up, so that one that fails takes the others of its name with it."""

    def __init__(self, spec: LustreSpec, desk: Desk) -> None:
        self._spec = spec
        self._tree = LustreTree(desk)
        self._statuses = Statuses()

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """One StorageCounters. Raises SourceError, ParseError."""
        gathering = Gathering(self._statuses)
        clients = [self._client(files, gathering) for files in self._spec.mounts]
        gathering.samples.append(counters_of(self._spec.file_system, clients))
        return gathering.outcome()

    def close(self) -> None:
        """Nothing is held."""

    def _client(self, files: MountFiles, gathering: Gathering) -> LustreClient:
        llite, *osc = (self._tree.stats(files.root, path) for path in (files.stats, *files.osc))
        for stats in (llite, *osc):
            for reject in stats.rejects:
                gathering.fail(self._spec.file_system, reject)
        return LustreClient(llite=llite, osc=tuple(osc))


def _file_system(source: str) -> str:
    """`10.0.0.1@o2ib:10.0.0.2@o2ib:/name/below`: the name."""
    return source.rpartition(":/")[2].partition("/")[0]
