# SPDX-License-Identifier: Apache-2.0
"""Which lanes run: those the configuration plans and those that scans found, kept equal to what is wanted.

The same code serves a reload, a hot-plugged device and a device that went: two equal plans are the same lane and keep
running, any other difference ends the one and starts the other.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from gpufeed.clock import Clock
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.ids import LaneId
from gpufeed.probe.lane import Found, Lane
from gpufeed.probe.slots import Slots
from gpufeed.sources.contract import Board, Desk, LanePlan, Source
from gpufeed.sources.extra import plan_extra

LOGGER: Final = "gpufeed.probe.reconcile"


class Runner(Protocol):
    """What drives a lane: a thread, or the inline probe's own hand."""

    @property
    def lane(self) -> Lane:
        """The lane it drives."""

    def end(self) -> None:
        """Take no further job, close the reader when the one outstanding is over. Returns at once."""


class Roster:
    """All lanes of a probe. One thread calls `desire` and `found`; any may look at `lanes`."""

    def __init__(self, sources: tuple[Source, ...], clock: Clock, slots: Slots, run: Callable[[Lane], Runner]) -> None:
        self.board = Board()
        self.lanes: tuple[Lane, ...] = ()
        self._sources = sources
        self._clock = clock
        self._slots = slots
        self._run = run
        self._roots: tuple[LanePlan, ...] = ()
        self._children: dict[LaneId, tuple[LanePlan, ...]] = {}
        self._running: dict[LaneId, Runner] = {}
        self._told: Found = self.found
        self.config: ProbeConfig | None = None

    def tell(self, told: Found) -> None:
        """Send what scans find there instead: it must call `found` on the roster's own thread."""
        self._told = told

    def desire(self, config: ProbeConfig) -> None:
        """Run the lanes of `config`."""
        self.config = config
        planned = tuple(plan for source in self._sources for plan in source.plan(config))
        self._roots = (*planned, *plan_extra(config))
        for runner in self._running.values():
            runner.lane.desk.config = config
        self._reconcile()

    def found(self, parent: LaneId, plans: tuple[LanePlan, ...]) -> None:
        """A scan found these lanes; they replace those it found before. A scan that was withdrawn is not heard."""
        if self._children.get(parent) != plans and parent in self._running:
            self._children[parent] = plans
            self._reconcile()

    def end(self) -> None:
        """End every lane; what was read stays for the last frame."""
        for runner in self._running.values():
            runner.end()

    def _reconcile(self) -> None:
        wanted = self._wanted()
        for lane, runner in list(self._running.items()):
            if wanted.get(lane) != runner.lane.plan:
                del self._running[lane]
                self._slots.withdraw(runner.lane.ticket)
                runner.end()
        for gone in self._children.keys() - wanted.keys():
            del self._children[gone]
        for lane, plan in wanted.items():
            if lane not in self._running:
                self._running[lane] = self._run(self._new_lane(plan))
        self.lanes = tuple(self._running[lane].lane for lane in wanted)

    def _wanted(self) -> dict[LaneId, LanePlan]:
        wanted: dict[LaneId, LanePlan] = {}
        for plan in self._with_children(self._roots):
            if plan.lane not in wanted:
                wanted[plan.lane] = plan
            elif wanted[plan.lane] != plan:
                self._slots.log(logging.WARNING, LOGGER, f"lane={plan.lane} planned=twice: the first stands")
        return wanted

    def _with_children(
        self, plans: Iterable[LanePlan], ancestors: frozenset[LaneId] = frozenset()
    ) -> Iterator[LanePlan]:
        for plan in plans:
            yield plan
            lineage = ancestors | {plan.lane}
            found = (child for child in self._children.get(plan.lane, ()) if child.lane not in lineage)
            yield from self._with_children(found, lineage)

    def _new_lane(self, plan: LanePlan) -> Lane:
        if self.config is None:
            raise RuntimeError("no configuration yet")
        desk = Desk(lane=plan.lane, clock=self._clock, config=self.config, board=self.board)
        return Lane(plan, desk, self._slots, self._told)
