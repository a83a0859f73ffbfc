# SPDX-License-Identifier: Apache-2.0
"""PURE. When an alert is sent: at once when it changes, and again every minute while it fires or has just ended."""

from collections.abc import Iterator

from gpufeed.alerting.evaluator import Alert, Alerts, Identity
from gpufeed.alerting.message import RESEND_NS


class Repeats:
    """What was sent when. A restart forgets it, and sends all that fires again: receivers know it by its labels."""

    def __init__(self) -> None:
        self._sent: dict[Identity, tuple[bool, int]] = {}

    def due(self, alerts: Alerts, now_ns: int) -> Iterator[Alert]:
        """Alerts to send at `now_ns` (monotonic), those that have ended among them."""
        current = {alert.identity: alert for alert in alerts.ended}
        current.update((alert.identity, alert) for alert in alerts.on if alert.state == "firing")
        self._sent = {identity: sent for identity, sent in self._sent.items() if identity in current}
        for identity, alert in current.items():
            is_ended = alert.resolved_wall_ns is not None
            was_ended, at_ns = self._sent.get(identity, (None, now_ns))
            if was_ended != is_ended or now_ns - at_ns >= RESEND_NS:
                self._sent[identity] = (is_ended, now_ns)
                yield alert
