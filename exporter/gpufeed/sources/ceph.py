# SPDX-License-Identifier: Apache-2.0
"""CephFS mounts of the kernel's client: its requests to the servers, in debugfs. Each client has a lane.

A client is a directory `<cluster>.client<number>`. Which mount it serves, no file says in so many words: it is told
where there is one of each, or one of each in a cluster that the mount's source names. Else the client has its own name.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from gpufeed.errors import Absent, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.ids import GroupName, StorageKey
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.parse.ceph import CephOperation, parse_ceph_metrics
from gpufeed.sources.contract import Desk, LanePlan, Outcome
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Gathering, Statuses, state_of
from gpufeed.sources.mounts import MountTable, MountTarget, info_of
from gpufeed.sources.storage_scan import Found, ScanSpec, counter_plan, fix_of, report, scan_plan

DIRECTORY: Final = "kernel/debug/ceph"
_FSTYPE: Final = "ceph"
_CLIENT: Final = re.compile(r"(?P<cluster>[0-9a-f-]{36})\.client[0-9]+")
_TABLES: Final = ("latency", "size")
_NO_METRICS: Final = "this kernel keeps no counters of CephFS (some before 5.7 do not)"
_COUNTED_BY_CLIENT: Final = "counted by client, as it is not known which of them serves this mount"


class CephSpec(Struct, frozen=True):
    """One client, and its files."""

    target: str
    files: tuple[str, ...]


class CephSource:
    """Plans the lane `ceph`, which finds the others."""

    name = "ceph"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One scan lane, or none where the collector is off."""
        return scan_plan("ceph", config, open_scan)


def open_scan(spec: ScanSpec, desk: Desk) -> "CephScan":
    """A reader that finds clients and mounts."""
    return CephScan(spec, desk)


def open_counters(spec: CephSpec, desk: Desk) -> "CephReader":
    """A reader of one client."""
    return CephReader(spec, desk)


class CephScan:
    """Looks for clients that count, and for mounts that none of them can be told to serve."""

    def __init__(self, spec: ScanSpec, desk: Desk) -> None:
        self._spec = spec
        self._tree = Tree(desk.config.sysfs, desk)
        self._table = MountTable(desk)
        self._statuses = Statuses()

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """A StorageInfo per target, and a lane per client."""
        gathering = Gathering(self._statuses)
        clients, refusal = self._clients(gathering)
        targets = self._targets()
        served = pair(tuple(clients), targets)
        found: list[Found] = []
        lanes: list[LanePlan] = []
        for client, files in clients.items():
            info = _info(client, served.get(client))
            found.append(Found(info=info))
            spec = CephSpec(info.storage.target, files)
            lanes.append(counter_plan(info.storage, self._spec, spec, open_counters))
        unserved = (target for target in targets if target not in served.values())
        found.extend(_unserved(target, refusal, has_clients=bool(clients)) for target in unserved)
        return report(gathering, "ceph", found, "no CephFS is mounted by the kernel's client", tuple(lanes))

    def close(self) -> None:
        """Nothing is held."""

    def _targets(self) -> tuple[MountTarget, ...]:
        try:
            return self._table.targets(_FSTYPE.__eq__)
        except SourceError:
            return ()  # clients have names of their own

    def _clients(self, gathering: Gathering) -> tuple[dict[str, tuple[str, ...]], SourceError | None]:
        """Clients that count, with their files; and what kept us from others."""
        clients: dict[str, tuple[str, ...]] = {}
        refusal: SourceError | None = None
        try:
            names = tuple(filter(_CLIENT.fullmatch, self._tree.names(DIRECTORY)))
        except Absent:
            names = ()
        except SourceError as error:
            names, refusal = (), error
        for name in names:
            try:
                clients[name] = self._files(f"{DIRECTORY}/{name}/metrics")
            except Absent:
                continue  # of a block device, or of a kernel that does not count
            except SourceError as error:
                gathering.fail(name, error)
                refusal = error
        return clients, refusal

    def _files(self, metrics: str) -> tuple[str, ...]:
        """One file, or since 5.16 a directory of several. Raises SourceError where they cannot be read."""
        try:
            names = self._tree.names(metrics)
        except Absent:
            names = ()  # a file is no directory
        files = tuple(f"{metrics}/{table}" for table in _TABLES if table in names) or (metrics,)
        for file in files:
            self._tree.table(file)
        return files


class CephReader:
    """Reads the counters of one client."""

    def __init__(self, spec: CephSpec, desk: Desk) -> None:
        self._spec = spec
        self._tree = Tree(desk.config.sysfs, desk)

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """One StorageCounters. Raises SourceError, ParseError."""
        operations = parse_ceph_metrics(*map(self._tree.table, self._spec.files))
        return Outcome(samples=(counters_of(StorageKey("ceph", self._spec.target), operations),))

    def close(self) -> None:
        """Nothing is held."""


def pair(clients: Sequence[str], targets: Sequence[MountTarget]) -> dict[str, MountTarget]:
    """The mount that each client serves, where that is certain."""
    single = [target for target in targets if len(target.mounts) == 1]
    if len(clients) == len(targets) == len(single) == 1:
        return {clients[0]: single[0]}
    served: dict[str, MountTarget] = {}
    for client in clients:
        cluster = client.partition(".")[0]
        alike = [other for other in clients if other.startswith(cluster)]
        named = [target for target in targets if cluster in target.mounts[0].source]
        if len(alike) == len(named) == 1 and named[0] in single:
            served[client] = named[0]
    return served


def counters_of(storage: StorageKey, operations: Mapping[str, CephOperation]) -> StorageCounters:
    """What a client asked of the servers, its own cache not among it."""
    read, write = (operations.get(name, CephOperation()) for name in ("read", "write"))
    return StorageCounters(
        storage=storage,
        read_bytes=read.moved_bytes,
        write_bytes=write.moved_bytes,
        reads=read.calls,
        writes=write.calls,
        read_s=read.took_s,
        write_s=write.took_s,
        operations={name: one.calls for name, one in operations.items() if one.calls is not None},
        operation_s={name: one.took_s for name, one in operations.items() if one.took_s is not None},
    )


def _info(client: str, target: MountTarget | None) -> StorageInfo:
    if target is None:
        return StorageInfo(storage=StorageKey("ceph", client), fstype=_FSTYPE)
    return info_of("ceph", target)


def _unserved(target: MountTarget, refusal: SourceError | None, *, has_clients: bool) -> Found:
    info = info_of("ceph", target)
    if refusal is not None:
        return Found(info=info, state=state_of(refusal), reason=str(refusal), fix=fix_of(refusal))
    if has_clients:
        return Found(info=info, reason=_COUNTED_BY_CLIENT)
    return Found(info=info, state="unsupported", reason=_NO_METRICS)
