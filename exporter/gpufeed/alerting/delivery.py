# SPDX-License-Identifier: Apache-2.0
"""Delivery to one receiver: what waits is posted, in its own time, whatever becomes of the other receivers."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, Literal, get_args

from gpufeed.alerting.channel import Answer, Channel
from gpufeed.alerting.message import Message, for_alertmanager, for_webhook
from gpufeed.alerting.outbox import Outbox
from gpufeed.clock import Clock
from gpufeed.config.alerting import Receiver
from gpufeed.errors import Unreachable
from gpufeed.exposition.server_facts import ReceiverFacts
from gpufeed.logs import Transitions
from gpufeed.units import NS_PER_S, seconds

Outcome = Literal["delivered", "refused", "failed"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)

TOLERATED_OFFSET_NS: Final = 2 * NS_PER_S
"""The Date header has whole seconds and a way behind it: a clock this near is right."""
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 15.0
REFUSED_FOR_NS: Final = 900 * NS_PER_S
_BAD: Final = frozenset({400, 413, 422})
"""The receiver will not take this, however often it is said."""
_OK: Final = range(200, 300)

_log: Final = logging.getLogger(__name__)


class Delivery:
    """A queue, a connection and the task between them."""

    def __init__(self, receiver: Receiver, name: str, clock: Clock, *, is_webhook: bool) -> None:
        self.name = name
        self.is_webhook = is_webhook
        self._clock = clock
        self._channel = Channel(receiver, receiver.url if is_webhook else _api(receiver.url))
        self._outbox = Outbox()
        self._news = asyncio.Event()
        self._sends: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
        self._measured_ns: int | None = None
        self._offset_ns = 0
        self._refused: dict[tuple[object, ...], int] = {}
        self._transitions = Transitions(_log, clock)

    def put(self, messages: Iterable[Message]) -> None:
        """Send these when it is their turn, except what was refused lately as it stands."""
        now_ns = self._clock.monotonic_ns()
        self._refused = {key: at_ns for key, at_ns in self._refused.items() if now_ns - at_ns < REFUSED_FOR_NS}
        self._outbox.put(one for one in messages if _key(one) not in self._refused)
        if len(self._outbox):
            self._news.set()

    def facts(self) -> ReceiverFacts:
        """How it fares now."""
        return ReceiverFacts(
            receiver=self.name,
            sends=self._sends.copy(),
            waiting=len(self._outbox),
            dropped=self._outbox.dropped,
            clock_offset_s=None if self._measured_ns is None else seconds(self._measured_ns),
        )

    async def run(self) -> None:
        """Deliver until cancelled. What fails waits on, and longer every time."""
        pause_s = FIRST_PAUSE_S
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                if await self._emptied():
                    pause_s = FIRST_PAUSE_S
                else:
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                    self._news.set()
        finally:
            await self._channel.close()

    async def _emptied(self) -> bool:
        """Send all that waits; whether it went."""
        if self._measured_ns is None and not self.is_webhook and not await self._asked_the_time():
            return False
        while batch := self._outbox.batch():
            if not await self._sent(batch):
                return False
        return True

    async def _asked_the_time(self) -> bool:
        """An empty list changes nothing, and its answer has a date: without it a slow clock ends alerts at once."""
        return await self._asked(lambda: b"[]") is not None

    async def _sent(self, batch: tuple[Message, ...]) -> bool:
        offset_ns = self._offset_ns
        answer = await self._asked(lambda: self._body(batch))
        if answer is None:
            return False
        if answer.status in _BAD:
            return await self._sent_singly(batch, answer)
        self._note("delivered", len(batch))
        if offset_ns != self._offset_ns and not self.is_webhook:
            return False  # the times in it were wrong: it goes again
        self._outbox.done(batch)
        return True

    async def _sent_singly(self, batch: tuple[Message, ...], answer: Answer) -> bool:
        """One bad alert spoils a request: find it, and leave only that one out."""
        if len(batch) > 1:
            for one in batch:
                if not await self._sent((one,)):
                    return False
            return True
        (one,) = batch
        self._outbox.done(batch)
        self._refused[_key(one)] = self._clock.monotonic_ns()
        self._note("refused", 1)
        name = dict(one.labels)["alertname"]
        self._transitions.failed(
            name, "a receiver refuses an alert", receiver=self.name, alert=name, status=answer.status, said=answer.text
        )
        return True

    async def _asked(self, body: Callable[[], bytes]) -> Answer | None:
        """The receiver's word on a body; None: it has to be asked again."""
        try:
            answer = await self._channel.post(body())
        except Unreachable as error:
            self._failed(str(error))
            return None
        self._learn(answer)
        if answer.status not in _OK and answer.status not in _BAD:
            self._failed(f"status {answer.status}: {answer.text[:200]}")
            return None
        self._transitions.recovered("", "a receiver of alerts answers again", receiver=self.name)
        return answer

    def _body(self, batch: tuple[Message, ...]) -> bytes:
        if self.is_webhook:
            return for_webhook(batch, self._offset_ns)
        return for_alertmanager(batch, self._clock.wall_ns(), self._offset_ns)

    def _learn(self, answer: Answer) -> None:
        if answer.date_wall_ns is None:
            self._measured_ns = self._measured_ns or 0
            return
        self._measured_ns = answer.date_wall_ns + NS_PER_S // 2 - self._clock.wall_ns()
        if abs(self._measured_ns - self._offset_ns) > TOLERATED_OFFSET_NS:
            self._offset_ns = self._measured_ns if abs(self._measured_ns) > TOLERATED_OFFSET_NS else 0
            _log.warning("the clocks of a receiver of alerts and of this node differ: times are corrected")

    def _failed(self, why: str) -> None:
        self._note("failed", max(len(self._outbox.batch()), 1))
        self._transitions.failed("", "a receiver of alerts cannot be reached", receiver=self.name, reason=why)

    def _note(self, outcome: Outcome, count: int) -> None:
        self._sends[outcome] += count


def _api(url: str) -> str:
    return f"{url.rstrip('/')}/api/v2/alerts"


def _key(one: Message) -> tuple[object, ...]:
    return (one.labels, one.ends_wall_ns is None)
