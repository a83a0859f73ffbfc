# SPDX-License-Identifier: Apache-2.0
"""Alerts to their receivers: every Alertmanager gets every alert of the node's own, every webhook every change."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from gpufeed.alerting.channel import receiver_name
from gpufeed.alerting.conditions import Condition
from gpufeed.alerting.delivery import Delivery
from gpufeed.alerting.evaluator import Alert, Alerts, Transition
from gpufeed.alerting.message import Message, message
from gpufeed.alerting.repeats import Repeats
from gpufeed.clock import Clock
from gpufeed.config.alerting import Alerting, Receiver
from gpufeed.exposition.server_facts import ReceiverFacts

_Key = tuple[Receiver, bool]


class Notifier:
    """The deliveries in force. A reload keeps those whose receiver stays as it is, with what waits in them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._alerting = Alerting()
        self._conditions: Mapping[str, Condition] = {}
        self._former: dict[str, Condition] = {}  # those of alerts that ended because the site gave them up
        self._repeats = Repeats()
        self._deliveries: dict[_Key, Delivery] = {}
        self._tasks: dict[_Key, asyncio.Task[None]] = {}

    def use(self, alerting: Alerting, conditions: Iterable[Condition]) -> None:
        """Send to these receivers from now on. Must be called on the loop."""
        self._former.update(self._conditions)
        self._alerting, self._conditions = alerting, {one.name: one for one in conditions}
        wanted = dict.fromkeys([(one, False) for one in alerting.alertmanagers])
        wanted.update(dict.fromkeys([(one, True) for one in alerting.webhooks]))
        for key in [key for key in self._deliveries if key not in wanted]:
            del self._deliveries[key]
            self._tasks.pop(key).cancel()
        if any(key not in self._deliveries for key in wanted):
            self._repeats = Repeats()  # a new receiver hears of everything at once
        for key in wanted:
            if key not in self._deliveries:
                receiver, is_webhook = key
                delivery = Delivery(receiver, self._name(receiver.url), self._clock, is_webhook=is_webhook)
                self._deliveries[key] = delivery
                self._tasks[key] = asyncio.create_task(delivery.run(), name=f"deliver to {delivery.name}")

    def tell(self, alerts: Alerts, changes: Iterable[Transition], now_ns: int) -> None:
        """The alerts at `now_ns` (monotonic), and what has changed: what is due goes to the queues."""
        if not self._deliveries:
            return
        due = tuple(self._messages(self._repeats.due(alerts, now_ns)))
        news = tuple(self._messages(change.alert for change in changes))
        for delivery in self._deliveries.values():
            delivery.put(news if delivery.is_webhook else due)

    def facts(self) -> tuple[ReceiverFacts, ...]:
        """How the receivers fare."""
        return tuple(delivery.facts() for delivery in self._deliveries.values())

    async def stop(self) -> None:
        """End every delivery at once."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()
        self._deliveries.clear()

    def _messages(self, alerts: Iterable[Alert]) -> Iterator[Message]:
        for alert in alerts:
            known = self._conditions if alert.resolved_wall_ns is None else {**self._former, **self._conditions}
            condition = known.get(alert.name)
            if condition is not None and condition.evaluator != "prometheus":
                yield message(condition, alert, self._alerting.labels, self._alerting.runbook_base_url)

    def _name(self, url: str) -> str:
        name = receiver_name(url)
        taken = {delivery.name for delivery in self._deliveries.values()}
        numbered = (f"{name}#{number}" for number in count(2))
        return name if name not in taken else next(other for other in numbered if other not in taken)
