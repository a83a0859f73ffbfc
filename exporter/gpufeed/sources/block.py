# SPDX-License-Identifier: Apache-2.0
"""Local disks: /proc/diskstats, each byte counted once."""

from typing import Final

from msgspec import Struct

from gpufeed.errors import SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputStatus
from gpufeed.model.ids import GroupName, LaneId, StorageKey
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.parse.diskstats import DiskStats, leaf_disks, parse_diskstats
from gpufeed.parse.text import clean_text
from gpufeed.sources.contract import Desk, Group, LanePlan, Outcome
from gpufeed.sources.files import HeldFile, Tree
from gpufeed.sources.gathering import Gathering, Statuses, state_of
from gpufeed.sources.selection import Selection

FAST: Final = GroupName("block.fast")
SLOW: Final = GroupName("block.slow")
_NO_MEDIUM: Final = "0"


class BlockSpec(Struct, frozen=True):
    """Which disks."""

    selection: Selection


class BlockSource:
    """Plans the lane `block`."""

    name = "block"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One lane, or none where the collector is off."""
        options = config.options("block")
        if not options.enabled:
            return ()
        groups = tuple(Group(name=name, collector="block", period_ns=config.period_ns(name)) for name in (FAST, SLOW))
        spec = BlockSpec(Selection(options.include, options.exclude))
        return (LanePlan(lane=LaneId("block"), groups=groups, open=open_block, spec=spec),)


def open_block(spec: BlockSpec, desk: Desk) -> "BlockReader":
    """A reader of the configured procfs and sysfs."""
    return BlockReader(spec, desk)


class BlockReader:
    """Reads counters fast, and tells whole devices from parts and stacks when the set of devices changes."""

    def __init__(self, spec: BlockSpec, desk: Desk) -> None:
        self._selection = spec.selection
        self._sys = Tree(desk.config.sysfs, desk)
        self._file = HeldFile(desk.config.procfs, "diskstats", desk)
        self._statuses = Statuses()
        self._seen: tuple[str, ...] | None = None
        self._whole: frozenset[str] = frozenset()
        self._left_out: frozenset[str] = frozenset()

    def read(self, group: GroupName) -> Outcome:
        """`block.fast`: a StorageCounters per disk; `block.slow`: a StorageInfo. Ordered as the kernel lists them."""
        gathering = Gathering(self._statuses)
        try:
            parsed = parse_diskstats(self._file.read())
        except SourceError as error:
            gathering.say(InputStatus("block", "", state_of(error), str(error)))
            gathering.fail("diskstats", error)
            return gathering.outcome()
        for reject in parsed.rejects:
            gathering.fail("diskstats", reject)
        self._learn(tuple(disk.name for disk in parsed.rows))
        disks = leaf_disks(parsed.rows, self._whole, self._left_out)
        taken = [disk for disk in disks if self._selection.takes(disk.name)]
        gathering.samples.extend(map(_counters if group == FAST else self._info, taken))
        gathering.say(InputStatus("block", "", "available"))
        return gathering.outcome()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _learn(self, names: tuple[str, ...]) -> None:
        """Look at /sys/block again when the devices are not those of the read before."""
        if names == self._seen:
            return
        self._seen = names
        try:
            self._whole = frozenset(self._sys.names("block"))
        except SourceError:
            self._whole = frozenset()  # names alone have to do
        self._left_out = frozenset(
            name for name in self._whole if self._text(name, "size") == _NO_MEDIUM or self._is_stacked(name)
        )

    def _is_stacked(self, name: str) -> bool:
        try:
            return bool(self._sys.names(f"block/{name}/slaves"))
        except SourceError:
            return False

    def _info(self, disk: DiskStats) -> StorageInfo:
        facts = {
            "model": self._text(disk.directory, "device/model"),
            "rotational": self._text(disk.directory, "queue/rotational"),
        }
        return StorageInfo(
            storage=StorageKey("block", disk.name),
            source=f"/dev/{disk.name}",
            options={key: value for key, value in facts.items() if value},
        )

    def _text(self, disk: str, attribute: str) -> str:
        try:
            return clean_text(self._sys.attribute(f"block/{disk}/{attribute}"))
        except SourceError:
            return ""


def _counters(disk: DiskStats) -> StorageCounters:
    return StorageCounters(
        storage=StorageKey("block", disk.name),
        read_bytes=disk.read_bytes,
        write_bytes=disk.write_bytes,
        reads=disk.reads,
        writes=disk.writes,
        read_s=disk.read_s,
        write_s=disk.write_s,
        queue_s=disk.queue_s,
        busy_s=disk.busy_s,
        inflight=disk.inflight,
    )
