# SPDX-License-Identifier: Apache-2.0
"""Sources of other packages: found by entry point, only where the configuration names them, each behind its own lane.

Importing somebody's module may fail or hang as well as reading may, so it happens on a lane too: that lane is a scan
whose children are the lanes the source plans.
"""

from importlib.metadata import entry_points
from typing import Final

from msgspec import Struct

from gpufeed.errors import Absent
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.sources.contract import Desk, Group, LanePlan, Outcome, Source

ENTRY_POINTS: Final = "gpufeed.sources"


class ExtraSpec(Struct, frozen=True):
    """Which source, and the configuration it plans for: another one is another lane, and plans anew."""

    name: str
    config: ProbeConfig


class ExtraReader:
    """Plans the lanes of one source."""

    def __init__(self, source: Source, spec: ExtraSpec) -> None:
        self._source = source
        self._spec = spec

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """The lanes the source plans under the configuration."""
        return Outcome(lanes=tuple(self._source.plan(self._spec.config)))

    def close(self) -> None:
        """Nothing is held."""


def plan_extra(config: ProbeConfig) -> tuple[LanePlan, ...]:
    """One scan lane for each source the configuration names."""
    group = Group(name=GroupName("extra.rare"), collector="extra", period_ns=config.rare_period_ns)
    return tuple(
        LanePlan(
            lane=LaneId(f"extra:{name}"), groups=(group,), open=open_extra, spec=ExtraSpec(name=name, config=config)
        )
        for name in dict.fromkeys(config.extra_sources)
    )


def open_extra(spec: ExtraSpec, desk: Desk) -> ExtraReader:
    """Import the source. Raises Absent where no installed package offers it."""
    desk.call = f"import {spec.name}"
    found = next(iter(entry_points(group=ENTRY_POINTS, name=spec.name)), None)
    if found is None:
        raise Absent(f"no installed package has the entry point {spec.name} in group {ENTRY_POINTS}")
    source = found.load()
    return ExtraReader(source() if isinstance(source, type) else source, spec)
