# SPDX-License-Identifier: Apache-2.0
"""PURE. What waits for one receiver: of each alert its newest message, and no more than fits."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from gpufeed.alerting.message import Message, Pairs

MAX_WAITING: Final = 1_000
MAX_BATCH: Final = 256


class Outbox:
    """A bounded queue in which a newer message of an alert takes the place of the older one."""

    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self.dropped = 0
        self._max_waiting = max_waiting
        self._waiting: OrderedDict[Pairs, Message] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, messages: Iterable[Message]) -> None:
        """Let these wait; where there are too many, the oldest are dropped and counted."""
        for one in messages:
            self._waiting.pop(one.labels, None)
            self._waiting[one.labels] = one
        while len(self._waiting) > self._max_waiting:
            self._waiting.popitem(last=False)
            self.dropped += 1

    def batch(self) -> tuple[Message, ...]:
        """The oldest ones, at most as many as go into one request. They wait on until `done`."""
        return tuple(self._waiting.values())[:MAX_BATCH]

    def done(self, messages: Iterable[Message]) -> None:
        """These need no sending any more, unless something newer has come of them meanwhile."""
        for one in messages:
            if self._waiting.get(one.labels) is one:
                del self._waiting[one.labels]
