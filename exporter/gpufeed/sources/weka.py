# SPDX-License-Identifier: Apache-2.0
"""Weka mounts. Their client runs outside the kernel and counts nothing in it: there, and not measurable from here."""

from typing import Final

from gpufeed.errors import SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.ids import GroupName
from gpufeed.sources.contract import Desk, LanePlan, Outcome
from gpufeed.sources.gathering import Gathering, Statuses
from gpufeed.sources.mounts import MountTable, MountTarget, info_of
from gpufeed.sources.storage_scan import NOT_MEASURABLE, Found, ScanSpec, refused, report, scan_plan

FSTYPE: Final = "wekafs"
_WHY: Final = f"{NOT_MEASURABLE}: the client's counters are the cluster's, none are the kernel's"
_INSTEAD: Final = "scrape the Weka cluster itself; its client's processors are busy by design"


class WekaSource:
    """Plans the lane `weka`."""

    name = "weka"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One scan lane, or none where the collector is off."""
        return scan_plan("weka", config, open_scan)


def open_scan(_spec: ScanSpec, desk: Desk) -> "WekaScan":
    """A reader that finds mounts."""
    return WekaScan(desk)


class WekaScan:
    """Looks through the mount table."""

    def __init__(self, desk: Desk) -> None:
        self._table = MountTable(desk)
        self._statuses = Statuses()

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """A StorageInfo per target."""
        gathering = Gathering(self._statuses)
        try:
            targets = self._table.targets(FSTYPE.__eq__)
        except SourceError as error:
            return refused(gathering, "weka", "mountinfo", error)
        return report(gathering, "weka", tuple(map(_found, targets)), f"no Weka in {self._table.whose}")

    def close(self) -> None:
        """Nothing is held."""


def _found(target: MountTarget) -> Found:
    return Found(info=info_of("weka", target), state="unsupported", reason=_WHY, fix=_INSTEAD)
