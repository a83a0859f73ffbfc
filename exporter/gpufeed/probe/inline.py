# SPDX-License-Identifier: Apache-2.0
"""The probe without threads: the same lanes, reconciling and frames, stepped by a clock. For tests and replay."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from gpufeed.clock import Clock
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import Event, Frame
from gpufeed.probe.cost import Balance
from gpufeed.probe.lane import Lane, Result
from gpufeed.probe.reconcile import Roster
from gpufeed.probe.report import Reporter
from gpufeed.probe.slots import Slots
from gpufeed.sources.contract import Board, Source
from gpufeed.wire.messages import Log

INLINE_PID: Final = 1


def never_blocked() -> bool:
    """Every read returns."""
    return False


def costs_nothing() -> int:
    """Processor time of an inline probe: what is measured in tests is not the tests' own speed."""
    return 0


@dataclass(slots=True)
class Hand:
    """Drives one lane by hand. `outstanding`: its read has not come back, these are the events it saw so far."""

    lane: Lane
    outstanding: tuple[Event, ...] | None = None
    is_ended: bool = False

    def end(self) -> None:
        """A lane whose read is outstanding cannot close."""
        self.is_ended = True
        if self.outstanding is None:
            self.lane.close()


class InlineProbe:
    """A probe whose reads happen inside `tick`.

    `is_blocked` is asked after each read: while it says yes, that read is taken as still outstanding. It is tried
    again at every tick, as the clock has no other way to find out, and delivers what it reads when it gets through.
    """

    def __init__(
        self,
        config: ProbeConfig,
        sources: tuple[Source, ...],
        clock: Clock,
        is_blocked: Callable[[], bool] = never_blocked,
    ) -> None:
        self._clock = clock
        self._is_blocked = is_blocked
        self._slots = Slots()
        self._hands: list[Hand] = []
        self._roster = Roster(sources, clock, self._slots, self._drive)
        self._reporter = Reporter(clock, self._slots, INLINE_PID, lambda: (0, 0))
        self._balance = Balance(clock)
        self._roster.desire(config)

    @property
    def board(self) -> Board:
        """What lanes tell one another; a test may release NVML here."""
        return self._roster.board

    def desire(self, config: ProbeConfig) -> None:
        """Reload: reconcile the lanes with another configuration."""
        self._roster.desire(config)

    def tick(self) -> Frame:
        """Run everything that is due now, in order of due time, each group at most once; the frame of this moment."""
        for blocked in [hand for hand in self._hands if hand.outstanding is not None]:
            self._attempt(blocked)
        while (hand := self._next_due()) is not None:
            hand.lane.begin()
            self._attempt(hand)
        self._hands = [hand for hand in self._hands if not hand.is_ended or hand.outstanding is not None]
        self._balance.set_periods(self._roster, costs_nothing())
        return self._reporter.frame(self._roster.lanes)

    def logs(self) -> tuple[Log, ...]:
        """Log lines since the last call."""
        return self._slots.take_logs()

    def close(self) -> None:
        """Close every reader that is not blocked."""
        self._roster.end()

    def _drive(self, lane: Lane) -> Hand:
        hand = Hand(lane)
        self._hands.append(hand)
        return hand

    def _next_due(self) -> Hand | None:
        now_ns = self._clock.monotonic_ns()
        ready = [hand for hand in self._hands if hand.outstanding is None and not hand.is_ended]
        earliest = min(ready, key=lambda hand: hand.lane.due_ns(), default=None)
        return earliest if earliest is not None and earliest.lane.due_ns() <= now_ns else None

    def _attempt(self, hand: Hand) -> None:
        seen = hand.outstanding or ()
        result = hand.lane.perform()
        if self._is_blocked():
            hand.outstanding = seen + (() if result.outcome is None else result.outcome.events)
            return
        hand.outstanding = None
        hand.lane.finish(_with_events(result, seen))
        if hand.is_ended:
            hand.lane.close()


def _with_events(result: Result, events: tuple[Event, ...]) -> Result:
    """Events of earlier attempts are not lost: a reader gives each only once."""
    if not events or result.outcome is None:
        return result
    return replace(result, outcome=replace(result.outcome, events=events + result.outcome.events))
