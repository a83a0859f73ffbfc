# SPDX-License-Identifier: Apache-2.0
"""Sources of other packages: found by entry point, only where the configuration names them, each behind its own lane.

Importing somebody's module may fail or hang as well as reading may, so it happens on a lane too: that lane is a scan
whose children are the lanes the source plans. What such a lane reads passes a gate (`extra_gate`): values under the
source's own name, and nothing else.
"""

import re
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from msgspec import Struct

from gpufeed.errors import Absent, Broken, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputStatus
from gpufeed.model.ids import COLLECTORS, GroupName, LaneId
from gpufeed.sources.contract import Desk, Group, LanePlan, Outcome, Source
from gpufeed.sources.extra_gate import gated
from gpufeed.sources.gathering import Statuses, state_of

ENTRY_POINTS: Final = "gpufeed.sources"
RARE: Final = GroupName("extra.rare")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_FOREIGN_ERRORS: Final = (ArithmeticError, AttributeError, ImportError, LookupError, NameError, OSError, RuntimeError,
                          SyntaxError, TypeError, ValueError)  # fmt: skip
"""What a module of somebody else's commonly dies of. Whatever else it raises, the lane catches, as of any reader."""


class ExtraSpec(Struct, frozen=True):
    """Which source, and the configuration it plans for: another one is another lane, and plans anew."""

    name: str
    config: ProbeConfig


def plan_extra(config: ProbeConfig) -> tuple[LanePlan, ...]:
    """One scan lane for each source the configuration names, in its order, none twice."""
    group = Group(name=RARE, collector="extra", period_ns=config.period_ns(RARE))
    return tuple(
        LanePlan(lane=LaneId(f"extra:{name}"), groups=(group,), open=open_extra, spec=ExtraSpec(name, config))
        for name in dict.fromkeys(config.extra_sources)
    )


def open_extra(spec: ExtraSpec, desk: Desk) -> "ExtraReader":
    """A reader that plans the lanes of one source."""
    return ExtraReader(spec, desk)


class ExtraReader:
    """Loads a source once, and plans its lanes."""

    def __init__(self, spec: ExtraSpec, desk: Desk) -> None:
        self._spec = spec
        self._desk = desk
        self._statuses = Statuses()
        self._source: Source | None = None

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """No sample; the lanes of the source. One that cannot be loaded is said to be broken, and tried again."""
        name = self._spec.name
        try:
            self._source = self._source or self._load()
            plans = self._plans(self._source)
        except SourceError as error:
            status = InputStatus(f"extra:{name}", "", state_of(error), str(error))
            return Outcome(inputs=self._statuses.news(status), lanes=())
        return Outcome(inputs=self._statuses.news(InputStatus(f"extra:{name}", "", "available")), lanes=plans)

    def close(self) -> None:
        """Nothing is held: Python cannot unload a module."""

    def _load(self) -> Source:
        """Import the source. Raises Absent where no package offers it, Broken where it is no good."""
        found = _find(self._spec.name)
        self._desk.call = f"import {found.value}"
        try:
            loaded = found.load()
            source: Source = loaded() if isinstance(loaded, type) else loaded
        except _FOREIGN_ERRORS as error:
            raise Broken(f"{found.value} cannot be loaded: {error!r}") from error
        return source

    def _plans(self, source: Source) -> tuple[LanePlan, ...]:
        """The source's lanes, each under its name and behind the gate. Raises Broken."""
        name = self._spec.name
        self._desk.call = f"plan of {name}"
        try:
            return tuple(gated(name, plan) for plan in source.plan(self._spec.config))
        except _FOREIGN_ERRORS as error:
            raise Broken(f"the lanes of {name} cannot be planned: {error!r}") from error


def _find(name: str) -> EntryPoint:
    """The one entry point of that name. Raises Absent or Broken."""
    if not _NAME.fullmatch(name) or name in COLLECTORS:
        raise Broken(f"{name!r} cannot name a source: lower-case letters, digits and _, and none of our collectors")
    found = tuple(entry_points(group=ENTRY_POINTS, name=name))
    if not found:
        raise Absent(f"no installed package has the entry point {name} in group {ENTRY_POINTS}")
    if len({(each.value, each.dist.name if each.dist else "") for each in found}) > 1:
        offers = ", ".join(sorted({each.dist.name if each.dist else each.value for each in found}))
        raise Broken(f"several packages offer the source {name}: {offers}")
    return found[0]
