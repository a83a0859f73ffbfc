# SPDX-License-Identifier: Apache-2.0
"""One lane without its thread: what is due, the one job at a time, and what becomes of a job's outcome.

A thread (`thread.py`) or the inline probe (`inline.py`) drives it: `begin`, `perform`, `finish`, in that order. Only
`perform` may block or fail, and this is the only place of the project that catches every exception: a reader is
somebody else's code.
"""

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import UnionType
from typing import Final

from gpufeed.errors import ParseError, SourceError
from gpufeed.model.frame import Failure, GpuEvent, InputStatus, LaneStatus, Reading, XidEvent
from gpufeed.model.ids import CollectorName, GroupName, LaneId
from gpufeed.probe.meter import Meter
from gpufeed.probe.schedule import Schedule, is_fast
from gpufeed.probe.slots import Slots, Ticket
from gpufeed.sources.contract import Desk, DeviceFailure, Group, LanePlan, Outcome, Reader
from gpufeed.units import NS_PER_S, seconds

LOGGER: Final = "gpufeed.probe.lane"
REOPEN_FIRST_NS: Final = NS_PER_S
REOPEN_MAX_NS: Final = 30 * NS_PER_S
REOPEN_AFTER_FAILURES: Final = 5
"""Reads in a row that gave nothing: then the reader itself is suspect, and opened anew."""

_OPENING: Final = GroupName("")
_EXPECTED: Final = frozenset({"absent", "unsupported", "released"})

Found = Callable[[LaneId, tuple[LanePlan, ...]], None]
"""Told of the lanes that a scan found; called on the lane's thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a job went: an outcome, or why there is none."""

    outcome: Outcome | None = None
    reason: str = ""
    detail: str = ""
    trace: str = ""  # of an exception nobody expected


class Lane:
    """One thing that can hang by itself."""

    def __init__(self, plan: LanePlan, desk: Desk, slots: Slots, found: Found) -> None:
        self.plan = plan
        self.desk = desk
        self.meter = Meter(group.name for group in plan.groups)
        self.busy_since_ns: int | None = None
        self.ticket = Ticket(plan.lane)
        self._slots = slots
        self._found = found
        self._groups = {group.name: group for group in plan.groups}
        self._schedule = Schedule(plan.groups, desk.clock.monotonic_ns())
        self._reader: Reader | None = None
        self._job = _OPENING
        self._held_by = ""
        self._open_due_ns = desk.clock.monotonic_ns()
        self._reopen_ns = REOPEN_FIRST_NS
        self._failing: dict[str, tuple[str, int]] = {}  # by group, or group and device: reason, since
        self._failed_in_a_row = 0
        self._busy_ns = 0
        self._reads = 0

    @property
    def is_open(self) -> bool:
        """Whether there is a reader to close."""
        return self._reader is not None

    def due_ns(self) -> int:
        """When the next job is due, monotonic."""
        if self._reader is None:
            return self._open_due_ns
        following = self._schedule.next()
        return self._open_due_ns + REOPEN_MAX_NS if following is None else following[0]

    def begin(self) -> None:
        """Take the next job: from now on the lane is busy."""
        following = self._schedule.next()
        self._job = _OPENING if self._reader is None or following is None else following[1]
        self._held_by = ""
        self.busy_since_ns = self.desk.clock.monotonic_ns()

    def perform(self) -> Result:
        """Open the reader or read the group. May block for ever; never raises."""
        try:
            if self._reader is None or self._job == _OPENING:
                self._reader = self.plan.open(self.plan.spec, self.desk)
                return Result()
            return Result(outcome=_checked(self._reader.read(self._job)))
        except SourceError as error:
            return Result(reason=error.reason, detail=str(error))
        except ParseError as error:
            return Result(reason="parse", detail=str(error))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a reader does, the other lanes go on
            return Result(reason="broken", detail=repr(error), trace=traceback.format_exc(limit=-12))

    def finish(self, result: Result, cpu_ns: int = 0) -> None:
        """Deliver a job's result, after `cpu_ns` of processor time: the lane is idle again."""
        began_ns = self.busy_since_ns or 0
        ended_ns = self.desk.clock.monotonic_ns()
        self._busy_ns += ended_ns - began_ns
        self.meter.cpu_ns += cpu_ns
        if self._job == _OPENING:
            self._finish_opening(result, ended_ns)
        else:
            self._reads += 1
            self.meter.add(self._job, ended_ns - began_ns, cpu_ns, self.desk.counts.nvml_calls)
            self._schedule.done(self._job, began_ns, ended_ns)
            self._finish_reading(self._groups[self._job], result, began_ns, ended_ns)
        self.desk.call = ""
        self.busy_since_ns = None

    def step(self, cpu_ns: Callable[[], int]) -> None:
        """One job from begin to end."""
        self.begin()
        used_ns = cpu_ns()
        result = self.perform()
        self.finish(result, cpu_ns() - used_ns)

    def held_elsewhere(self, since_ns: int, holder: str) -> None:
        """The lane cannot begin: an earlier probe's call on the same thing is outstanding since `since_ns`."""
        self._held_by = holder
        self.busy_since_ns = since_ns

    def close(self) -> None:
        """Let go of the reader. On the lane's thread only."""
        reader, self._reader = self._reader, None
        if reader is None:
            return
        try:
            reader.close()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a reader that cannot even close ends all the same
            self._log(logging.DEBUG, f"lane={self.plan.lane} close={error!r}")

    def set_fast_period(self, period_ns: int) -> None:
        """The governor's word on how often fast groups are read at most; 0: as configured."""
        self._schedule.fast_period_ns = period_ns

    def status(self) -> LaneStatus:
        """The lane at this moment. Any thread may ask."""
        desk, plan = self.desk, self.plan
        lengthened = self._schedule.fast_period_ns
        configured = max((group.period_ns for group in plan.groups if is_fast(group.name)), default=0)
        return LaneStatus(
            lane=plan.lane,
            collector=self._collector(),
            busy_since_ns=self.busy_since_ns,
            late_after_ns=plan.late_after_ns,
            stuck_after_ns=plan.stuck_after_ns,
            call=self._held_by or desk.call,
            fast_period_ns=lengthened if lengthened > configured > 0 else None,
            busy_ns=self._busy_ns,
            reads=self._reads,
            gpu=desk.gpu_index,
            uuid=desk.gpu_uuid,
        )

    def _collector(self) -> CollectorName:
        group = self._groups.get(self._job) or next(iter(self._groups.values()), None)
        return "self" if group is None else group.collector

    def _finish_opening(self, result: Result, ended_ns: int) -> None:
        if not result.reason:
            self._reopen_ns = REOPEN_FIRST_NS
            self._failed_in_a_row = 0
            self._schedule = self._rescheduled(ended_ns)
            self._recovered(_OPENING, ended_ns)
            return
        self._open_due_ns = ended_ns + self._reopen_ns
        self._reopen_ns = min(2 * self._reopen_ns, REOPEN_MAX_NS)
        first_of = {group.collector: group for group in reversed(self.plan.groups)}
        for group in first_of.values():
            self._failed(group, result, ended_ns)
        self._note(_OPENING, result, ended_ns)

    def _finish_reading(self, group: Group, result: Result, began_ns: int, ended_ns: int) -> None:
        outcome = result.outcome
        if outcome is None:
            self._failed(group, result, ended_ns)
            self._note(group.name, result, ended_ns)
            self._suspect_reader(result, ended_ns)
            return
        self._failed_in_a_row = 0
        self._recovered(group.name, ended_ns)
        slots, lane = self._slots, self.plan.lane
        reading = Reading(
            lane=lane,
            group=group.name,
            collector=group.collector,
            began_ns=began_ns,
            ended_ns=ended_ns,
            period_ns=self._schedule.period_ns(group.name),
            samples=outcome.samples,
        )
        slots.put_reading(self.ticket, reading)
        self._deliver_failures(group, outcome.failures, ended_ns)
        for status in outcome.inputs:
            slots.put_input(self.ticket, status)
        for event in outcome.events:
            slots.put_event(event)
        if outcome.lanes is not None and not self.ticket.is_void:
            self._found(lane, outcome.lanes)

    def _deliver_failures(self, group: Group, failures: tuple[DeviceFailure, ...], ended_ns: int) -> None:
        failing = {f"{group.name} device={failure.device}": failure for failure in failures}
        for what, failure in failing.items():
            self._failed(group, Result(reason=failure.reason, detail=f"{failure.device}: {failure.detail}"), ended_ns)
            self._note(what, Result(reason=failure.reason, detail=failure.detail), ended_ns)
        for what in [what for what in self._failing if what.startswith(f"{group.name} ") and what not in failing]:
            self._recovered(what, ended_ns)

    def _suspect_reader(self, result: Result, now_ns: int) -> None:
        """Reads that fail one after another: close the reader and open it anew, with back-off."""
        self._failed_in_a_row += 1
        if result.reason not in _EXPECTED and self._failed_in_a_row >= REOPEN_AFTER_FAILURES:
            self.close()
            self._open_due_ns = now_ns + self._reopen_ns
            self._reopen_ns = min(2 * self._reopen_ns, REOPEN_MAX_NS)

    def _rescheduled(self, now_ns: int) -> Schedule:
        schedule = Schedule(self.plan.groups, now_ns)
        schedule.fast_period_ns = self._schedule.fast_period_ns
        return schedule

    def _failed(self, group: Group, result: Result, at_ns: int) -> None:
        failure = Failure(
            lane=self.plan.lane,
            group=group.name,
            collector=group.collector,
            at_ns=at_ns,
            reason=result.reason,
            detail=result.detail,
        )
        self._slots.put_failure(self.ticket, failure)

    def _note(self, what: str, result: Result, now_ns: int) -> None:
        """Log a failure when it starts or changes its reason, never while it lasts."""
        reason, since_ns = self._failing.get(what, ("", now_ns))
        self._failing[what] = (result.reason, since_ns)
        if reason == result.reason:
            return
        level = logging.INFO if result.reason in _EXPECTED else logging.WARNING
        text = f"lane={self.plan.lane} {_word(what)} reason={result.reason} detail={result.detail!r}"
        self._log(level, f"{text}\n{result.trace}" if result.trace else text)

    def _recovered(self, what: str, now_ns: int) -> None:
        failing = self._failing.pop(what, None)
        if failing is not None:
            reason, since_ns = failing
            outage_s = seconds(now_ns - since_ns)
            self._log(logging.INFO, f"lane={self.plan.lane} {_word(what)} recovered={reason} after_s={outage_s:.1f}")

    def _log(self, level: int, text: str) -> None:
        self._slots.log(level, LOGGER, text)


def _checked(outcome: Outcome) -> Outcome:
    """The outcome, if a reader of another package kept the contract. Raises TypeError.

    Samples are looked at where they are decoded: there are too many of them to do it twice.
    """
    rows: tuple[tuple[type | UnionType, tuple[object, ...]], ...] = (
        (DeviceFailure, outcome.failures),
        (InputStatus, outcome.inputs),
        (XidEvent | GpuEvent, outcome.events),
        (LanePlan, outcome.lanes or ()),
    )
    for kind, values in rows:
        for value in values:
            if not isinstance(value, kind):
                raise TypeError(f"a reader returned {value!r:.80} in place of a {kind}")
    return outcome


def _word(what: str) -> str:
    return f"group={what}" if what else "open"
