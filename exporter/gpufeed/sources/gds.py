# SPDX-License-Identifier: Apache-2.0
"""GPUDirect Storage: what the nvidia-fs driver moved between storage and GPUs, past the processor and the page cache.

The same bytes may be counted by the disk or the mount they came from. What goes other ways (cuFile's compatibility
mode, upstream PCI peer-to-peer) is not counted here: nothing here is not no GPUDirect Storage.
"""

from typing import Final

from gpufeed.errors import Absent, ParseError, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.ids import GroupName, StorageKey
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.parse.nvidia_fs import GdsStats, parse_gds_stats
from gpufeed.sources.contract import Desk, LanePlan, NoSpec, Outcome
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Gathering, Statuses
from gpufeed.sources.storage_scan import Found, ScanSpec, counter_plan, refused, report, scan_plan

NODE: Final = StorageKey("gds", "node")
STATS: Final = "driver/nvidia-fs/stats"
_SWITCHED_OFF: Final = "the driver counts errors only: its IO statistics are off"
_SWITCH_ON: Final = "echo 1 > /sys/module/nvidia_fs/parameters/rw_stats_enabled"


class GdsSource:
    """Plans the lane `gds`, which plans another where the driver is loaded."""

    name = "gds"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One scan lane, or none where the collector is off."""
        return scan_plan("gds", config, open_scan)


def open_scan(spec: ScanSpec, desk: Desk) -> "GdsScan":
    """A reader that looks for the driver."""
    return GdsScan(spec, desk)


def open_counters(_spec: NoSpec, desk: Desk) -> "GdsReader":
    """A reader of the driver's statistics."""
    return GdsReader(desk)


class GdsScan:
    """Looks whether the driver is loaded, and whether it counts."""

    def __init__(self, spec: ScanSpec, desk: Desk) -> None:
        self._spec = spec
        self._tree = Tree(desk.config.procfs, desk)
        self._statuses = Statuses()

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """A StorageInfo, and a lane."""
        gathering = Gathering(self._statuses)
        try:
            stats = parse_gds_stats(self._tree.table(STATS))
        except Absent:
            return report(gathering, "gds", (), "the nvidia-fs driver is not loaded")
        except (SourceError, ParseError) as error:
            return refused(gathering, "gds", "nvidia-fs", error)
        info = StorageInfo(storage=NODE, source=f"nvidia-fs {stats.driver}".strip())
        found = Found(info=info)
        if not stats.has_io_stats:
            found = Found(info=info, state="unsupported", reason=_SWITCHED_OFF, fix=_SWITCH_ON)
        lane = counter_plan(NODE, self._spec, NoSpec(), open_counters)
        return report(gathering, "gds", (found,), "", (lane,))

    def close(self) -> None:
        """Nothing is held."""


class GdsReader:
    """Reads the counters."""

    def __init__(self, desk: Desk) -> None:
        self._tree = Tree(desk.config.procfs, desk)

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """One StorageCounters. Raises SourceError, ParseError."""
        return Outcome(samples=(_counters(parse_gds_stats(self._tree.table(STATS))),))

    def close(self) -> None:
        """Nothing is held."""


def _counters(stats: GdsStats) -> StorageCounters:
    return StorageCounters(
        storage=NODE,
        read_bytes=stats.read_bytes,
        write_bytes=stats.write_bytes,
        reads=stats.reads,
        writes=stats.writes,
        inflight=stats.inflight,
        errors=stats.errors,
    )
