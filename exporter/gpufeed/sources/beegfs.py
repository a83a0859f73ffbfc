# SPDX-License-Identifier: Apache-2.0
"""BeeGFS: which file systems are mounted. The client counts no bytes, and operations only its servers do."""

from typing import Final

from gpufeed.errors import Absent, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.ids import GroupName, StorageKey
from gpufeed.model.storage import StorageInfo
from gpufeed.parse.beegfs import parse_management_host
from gpufeed.sources.contract import Desk, LanePlan, Outcome
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Gathering, Statuses
from gpufeed.sources.storage_scan import NOT_MEASURABLE, Found, ScanSpec, refused, report, scan_plan

DIRECTORY: Final = "fs/beegfs"
_FSTYPE: Final = "beegfs"
_WHY: Final = f"{NOT_MEASURABLE}: the client counts nothing"
_INSTEAD: Final = "scrape the servers; the bytes show in the counters of the network they come by"


class BeegfsSource:
    """Plans the lane `beegfs`."""

    name = "beegfs"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One scan lane, or none where the collector is off."""
        return scan_plan("beegfs", config, open_scan)


def open_scan(_spec: ScanSpec, desk: Desk) -> "BeegfsScan":
    """A reader that finds mounts."""
    return BeegfsScan(desk)


class BeegfsScan:
    """Lists what the client module shows: a directory per mount."""

    def __init__(self, desk: Desk) -> None:
        self._tree = Tree(desk.config.procfs, desk)
        self._statuses = Statuses()

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """A StorageInfo per file system, called by the host that manages it, or where that is unknown by the mount."""
        gathering = Gathering(self._statuses)
        try:
            clients = self._tree.names(DIRECTORY)
        except Absent:
            clients = ()
        except SourceError as error:
            return refused(gathering, "beegfs", DIRECTORY, error)
        names = dict.fromkeys(self._file_system(client) for client in clients)
        return report(gathering, "beegfs", tuple(map(_found, names)), "no BeeGFS file system is mounted")

    def close(self) -> None:
        """Nothing is held."""

    def _file_system(self, client: str) -> str:
        try:
            return parse_management_host(self._tree.table(f"{DIRECTORY}/{client}/config")) or client
        except SourceError:
            return client


def _found(name: str) -> Found:
    info = StorageInfo(storage=StorageKey("beegfs", name), source=name, fstype=_FSTYPE)
    return Found(info=info, state="unsupported", reason=_WHY, fix=_INSTEAD)
