# SPDX-License-Identifier: Apache-2.0
"""PURE. An alert in the words its receivers take: Alertmanager's API v2, and its webhook form for everybody else."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from gpufeed.alerting.define import Condition
from gpufeed.alerting.evaluator import Alert
from gpufeed.alerting.prometheus import alert_labels, runbook
from gpufeed.alerting.text import filled
from gpufeed.units import NS_PER_S

RESEND_NS: Final = 60 * NS_PER_S
LIVES_NS: Final = 4 * RESEND_NS
"""A receiver that hears nothing more takes an alert for ended after this: four times the pause between two sends."""

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One alert for one receiver. Times are of this machine's wall clock; the sender corrects them."""

    labels: Pairs  # sorted: what makes it the same alert
    annotations: Pairs
    starts_wall_ns: int
    ends_wall_ns: int | None = None  # None: it fires


def message(condition: Condition, alert: Alert, labels: Mapping[str, str], runbook_base_url: str | None) -> Message:
    """What is said of an alert at a site with these `labels`, which give way to the alert's own."""
    said = {**labels, **dict(alert.labels), **alert_labels(condition, alert.severity), "alertname": alert.name}
    words = dict((*alert.labels, *alert.text))
    link, address = runbook(condition, runbook_base_url)
    return Message(
        labels=tuple(sorted((name, value) for name, value in said.items() if value)),
        annotations=(
            ("description", filled(condition.description, words, alert.value)),
            (link, address),
            ("summary", filled(condition.summary, words, alert.value)),
        ),
        starts_wall_ns=alert.fired_wall_ns or 0,
        ends_wall_ns=alert.resolved_wall_ns,
    )


def for_alertmanager(messages: Iterable[Message], now_wall_ns: int, offset_ns: int) -> bytes:
    """The body of POST /api/v2/alerts; `offset_ns` is what the receiver's clock is ahead of ours."""
    return json.dumps([_posted(one, now_wall_ns, offset_ns) for one in messages]).encode()


def for_webhook(messages: Iterable[Message], offset_ns: int) -> bytes:
    """The body that Alertmanager's own webhooks have, version 4."""
    alerts = [_told(one, offset_ns) for one in messages]
    whole = {
        "version": "4",
        "groupKey": "gpufeed",
        "truncatedAlerts": 0,
        "status": "firing" if any(one["status"] == "firing" for one in alerts) else "resolved",
        "receiver": "gpufeed",
        "groupLabels": {},
        "commonLabels": _common([one["labels"] for one in alerts]),
        "commonAnnotations": _common([one["annotations"] for one in alerts]),
        "externalURL": "",
        "alerts": alerts,
    }
    return json.dumps(whole).encode()


def _posted(one: Message, now_wall_ns: int, offset_ns: int) -> dict[str, Any]:
    ends_ns = now_wall_ns + LIVES_NS if one.ends_wall_ns is None else one.ends_wall_ns
    return {
        "labels": dict(one.labels),
        "annotations": dict(one.annotations),
        "startsAt": _timestamp(one.starts_wall_ns + offset_ns),
        # a clock that was set back meanwhile must not make the end come before the start: that is refused
        "endsAt": _timestamp(max(ends_ns, one.starts_wall_ns) + offset_ns),
    }


def _told(one: Message, offset_ns: int) -> dict[str, Any]:
    ends_ns = one.ends_wall_ns
    return {
        "status": "firing" if ends_ns is None else "resolved",
        "labels": dict(one.labels),
        "annotations": dict(one.annotations),
        "startsAt": _timestamp(one.starts_wall_ns + offset_ns),
        "endsAt": "0001-01-01T00:00:00Z" if ends_ns is None else _timestamp(ends_ns + offset_ns),
        "generatorURL": "",
        "fingerprint": hashlib.sha256(repr(one.labels).encode()).hexdigest()[:16],
    }


def _common(of_alerts: list[dict[str, str]]) -> dict[str, str]:
    first, *others = of_alerts
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def _timestamp(wall_ns: int) -> str:
    at = datetime.fromtimestamp(max(wall_ns, 0) // NS_PER_S, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{max(wall_ns, 0) % NS_PER_S // 1_000_000:03}Z"
