# SPDX-License-Identifier: Apache-2.0
"""GPFS (Spectrum Scale), off unless asked for: only a process of IBM's can ask the client, and it has to be root's."""

from collections.abc import Iterator, Sequence
from typing import Final

from gpufeed.errors import Absent, Denied, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputStatus
from gpufeed.model.ids import GroupName, LaneId, StorageKey
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.parse.mmpmon import REQUEST, GpfsIo, parse_mmpmon
from gpufeed.sources.contract import Desk, Group, LanePlan, NoSpec, Outcome
from gpufeed.sources.gathering import Gathering, Statuses, state_of
from gpufeed.sources.mmpmon import Mmpmon
from gpufeed.sources.summing import by_name, total

SLOW: Final = GroupName("gpfs.slow")
COMMAND: Final = "usr/lpp/mmfs/bin/mmpmon"
_FSTYPE: Final = "gpfs"
_NEEDS_ROOT: Final = "run the probe as a unit of its own, as root: mmpmon answers nobody else"
_NOT_INSTALLED: Final = "GPFS is not installed here"


class GpfsSource:
    """Plans the lane `gpfs`."""

    name = "gpfs"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One lane, or none where the collector is off. A process is dear: it is started every slow period."""
        if not config.options("gpfs").enabled:
            return ()
        group = Group(name=SLOW, collector="gpfs", period_ns=config.period_ns(SLOW))
        return (LanePlan(lane=LaneId("gpfs"), groups=(group,), open=open_gpfs),)


def open_gpfs(_spec: NoSpec, desk: Desk) -> "GpfsReader":
    """A reader of the configured rootfs."""
    return GpfsReader(desk)


class GpfsReader:
    """Asks for all file systems at once."""

    def __init__(self, desk: Desk) -> None:
        self._mmpmon = Mmpmon(f"{desk.config.rootfs.rstrip('/')}/{COMMAND}", desk)
        self._statuses = Statuses()

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """A StorageCounters and a StorageInfo per file system. Never raises: what is missing is said."""
        gathering = Gathering(self._statuses)
        try:
            parsed = parse_mmpmon(self._mmpmon.ask(REQUEST))
        except SourceError as error:
            gathering.say(_missing(error))
            gathering.fail("mmpmon", error)
            return gathering.outcome()
        for reject in parsed.rejects:
            gathering.fail("mmpmon", reject)
        named: dict[str, list[GpfsIo]] = {}
        for row in parsed.rows:
            named.setdefault(row.name, []).append(row)
        for name, rows in named.items():
            gathering.samples.extend((_counters(name, rows), _info(name, rows)))
        is_there = named or parsed.rejects
        nothing = InputStatus("gpfs", "", "absent", "no GPFS file system is mounted")
        gathering.say(InputStatus("gpfs", "", "available") if is_there else nothing)
        return gathering.outcome()

    def close(self) -> None:
        """End what does not end by itself."""
        self._mmpmon.close()


def _missing(error: SourceError) -> InputStatus:
    match error:
        case Absent():
            return InputStatus("gpfs", "", "absent", _NOT_INSTALLED)
        case Denied():
            return InputStatus("gpfs", "", "denied", str(error), _NEEDS_ROOT)
        case _:
            return InputStatus("gpfs", "", state_of(error), str(error))


def _counters(name: str, rows: Sequence[GpfsIo]) -> StorageCounters:
    """The client's view: what its own cache answered is among the bytes. File systems of one name are added up."""
    read_bytes = total(row.read_bytes for row in rows)
    return StorageCounters(
        storage=StorageKey("gpfs", name),
        read_bytes=read_bytes,
        write_bytes=total(row.write_bytes for row in rows),
        application_read_bytes=read_bytes,
        reads=total(row.reads for row in rows),
        writes=total(row.writes for row in rows),
        operations=by_name(pair for row in rows for pair in _operations(row)),
    )


def _operations(row: GpfsIo) -> Iterator[tuple[str, int]]:
    yield "read", row.reads
    yield "write", row.writes
    yield "open", row.opens
    yield "close", row.closes
    yield "readdir", row.directory_reads
    yield "inode_update", row.inode_updates


def _info(name: str, rows: Sequence[GpfsIo]) -> StorageInfo:
    cluster = ", ".join(dict.fromkeys(row.cluster for row in rows if row.cluster))
    return StorageInfo(storage=StorageKey("gpfs", name), source=cluster, fstype=_FSTYPE)
