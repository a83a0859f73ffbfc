# SPDX-License-Identifier: Apache-2.0
"""One collection without a server: start a probe, listen until every lane has answered, end it."""

import asyncio
from dataclasses import dataclass
from typing import Final

from gpufeed.clock import Clock
from gpufeed.daemon.node import NodeKeeper
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import Frame
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.state import NodeState
from gpufeed.signals.settings import Settings
from gpufeed.units import NS_PER_MS, nanoseconds, seconds
from gpufeed.wire.supervisor import Listener, ProbeSupervisor

WITHIN_S: Final = 10.0
_QUIET_NS: Final = 1_200 * NS_PER_MS
"""Two fast periods: what needs two readings (rates, GPM) has had them."""
_STOP_WITHIN_S: Final = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What came, and the lanes that said nothing, with the call that each sits in."""

    state: NodeState
    silent: tuple[tuple[LaneId, str], ...]
    why_nothing: str = ""  # not empty: no probe has said anything, and why


class _Answers:
    """Which group of which lane has answered, be it with a failure, and when there was something new."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: set[tuple[LaneId, GroupName]] = set()
        self._lanes: set[LaneId] = set()
        self._news_ns = clock.monotonic_ns()

    def on_frame(self, frame: Frame) -> None:
        """Note who answered in a frame."""
        came = {(reading.lane, reading.group) for reading in frame.readings}
        came |= {(failure.lane, failure.group) for failure in frame.failures}
        lanes = {lane.lane for lane in frame.lanes}
        if not came <= self._known or lanes != self._lanes:
            self._news_ns = self._clock.monotonic_ns()
        self._known |= came
        self._lanes = lanes

    @property
    def has_heard(self) -> bool:
        """Whether any frame of a probe came."""
        return bool(self._lanes)

    def silent(self) -> set[LaneId]:
        """Lanes that have not answered at all."""
        return self._lanes - {lane for lane, _ in self._known}

    def are_complete(self) -> bool:
        """Every lane has answered, and nothing new has come for a while."""
        is_quiet = self._clock.monotonic_ns() - self._news_ns >= _QUIET_NS
        return bool(self._lanes) and not self.silent() and is_quiet


async def collect(config: ProbeConfig, settings: Settings, clock: Clock, within_s: float = WITHIN_S) -> Collected:
    """What a probe under `config` gives, within `within_s` or as soon as all of it has come."""
    node, answers = NodeKeeper(settings, clock), _Answers(clock)
    gaps: list[str] = []
    news = asyncio.Event()

    def on_frame(frame: Frame) -> None:
        node.on_frame(frame)
        if frame.gap:
            gaps.append(frame.gap)
        else:
            answers.on_frame(frame)
        news.set()

    supervisor = ProbeSupervisor(config, Listener(on_frame=on_frame), clock)
    supervisor.start()
    deadline_ns = clock.monotonic_ns() + nanoseconds(within_s)
    while not answers.are_complete() and clock.monotonic_ns() < deadline_ns:
        news.clear()
        try:
            await asyncio.wait_for(news.wait(), max(seconds(deadline_ns - clock.monotonic_ns()), 0.0))
        except TimeoutError:
            break
    lanes = node.state.lanes
    silent = tuple((lane, lanes[lane].call if lane in lanes else "") for lane in sorted(answers.silent()))
    state = node.state
    await supervisor.stop(_STOP_WITHIN_S)
    why_nothing = "" if answers.has_heard else (gaps or ["it said nothing"])[-1]
    return Collected(state=state, silent=silent, why_nothing=why_nothing)
