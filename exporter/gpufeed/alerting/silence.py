# SPDX-License-Identifier: Apache-2.0
"""PURE. What is told while the node is under maintenance: no beginning, and the ends of those that were told."""

from collections.abc import Iterable

import msgspec

from gpufeed.alerting.evaluator import Alerts, Identity, Transition


class Silence:
    """Remembers which beginnings were withheld: their ends are too, and what still fires afterwards is told then."""

    def __init__(self) -> None:
        self._withheld: frozenset[Identity] = frozenset()

    def passed(
        self, alerts: Alerts, changes: Iterable[Transition], wall_ns: int, *, is_silent: bool
    ) -> tuple[Alerts, tuple[Transition, ...]]:
        """What of these may be told now."""
        news = tuple(changes)
        begun = frozenset(one.alert.identity for one in news if one.to == "firing")
        withheld = self._withheld | begun if is_silent else self._withheld - begun
        ended = tuple(alert for alert in alerts.ended if alert.identity not in withheld)
        ends = tuple(one for one in news if one.to == "resolved" and one.alert.identity not in withheld)
        still = {alert.identity for alert in alerts.ended}
        if is_silent:
            still.update(alert.identity for alert in alerts.on)
            self._withheld = withheld & still
            return msgspec.structs.replace(alerts, on=(), ended=ended), ends
        late = tuple(
            Transition(to="firing", alert=alert, wall_ns=wall_ns)
            for alert in alerts.on
            if alert.state == "firing" and alert.identity in withheld
        )
        self._withheld = withheld & still
        begins = tuple(one for one in news if one.to == "firing")
        return msgspec.structs.replace(alerts, ended=ended), (*late, *begins, *ends)
