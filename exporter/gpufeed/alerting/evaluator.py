# SPDX-License-Identifier: Apache-2.0
"""PURE. Alerts over time, as Prometheus' own rule manager folds them: pending, firing, kept firing, resolved.

The state goes into the state file. After a restart the history is empty for a while: an alert that was on is held
until its condition can be judged as before, so that a restart neither resolves nor starts anything again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from gpufeed.alerting.define import TEXT_ONLY, Condition, Severity
from gpufeed.alerting.measure import History, Labels, Measurement, measure
from gpufeed.errors import ParseError
from gpufeed.model.frame import FrameTime
from gpufeed.units import NS_PER_S

WINDOWED_INTERVAL_S: Final = 15
"""A window of minutes moves little in a second, and costs a thousand samples to read."""
GRACE_NS: Final = 300 * NS_PER_S
"""How long after a restart a series may take to come back: Prometheus looks back as far."""

ENDED_REMEMBERED_NS: Final = 900 * NS_PER_S
"""How long the end of an alert is repeated, as Prometheus does."""

Identity = tuple[str, Severity, Labels]


class Alert(Struct, frozen=True, kw_only=True):
    """One alert that is on. `text` are labels that may change: they stand in its words only."""

    name: str
    severity: Severity
    labels: Labels
    text: Labels = ()
    value: float
    active_at_ns: int  # monotonic: the condition has held since
    fired_at_ns: int | None = None  # monotonic; None: pending
    fired_wall_ns: int | None = None  # startsAt
    ended_at_ns: int | None = None  # monotonic: the condition holds no more, keep_firing_for runs
    resolved_at_ns: int | None = None  # monotonic; None: it is on
    resolved_wall_ns: int | None = None  # endsAt

    @property
    def identity(self) -> Identity:
        """What makes it the same alert."""
        return (self.name, self.severity, self.labels)

    @property
    def state(self) -> Literal["pending", "firing"]:
        """Whether `for` has passed."""
        return "pending" if self.fired_at_ns is None else "firing"


class Transition(Struct, frozen=True, kw_only=True):
    """An alert began to fire, or has ended after it did."""

    to: Literal["firing", "resolved"]
    alert: Alert
    wall_ns: int


class Alerts(Struct, frozen=True, kw_only=True):
    """All alerts that are on or ended lately, and when each condition was looked at last."""

    on: tuple[Alert, ...] = ()
    evaluated_at_ns: dict[str, int] = field(default_factory=dict)
    restored_at_ns: int | None = None
    ended: tuple[Alert, ...] = ()  # within ENDED_REMEMBERED_NS: receivers are told again


class _Saved(Struct, frozen=True):
    boot_id: str | None
    at_ns: int
    on: tuple[Alert, ...]
    ended: tuple[Alert, ...] = ()


def evaluate(
    alerts: Alerts, conditions: Sequence[Condition], time: FrameTime, history: History
) -> tuple[Alerts, tuple[Transition, ...]]:
    """The alerts at `time`, and what changed. Conditions that are not due stay as they are."""
    now_ns = time.monotonic_ns
    last = alerts.evaluated_at_ns
    due = {
        condition.name: condition
        for condition in conditions
        if condition.name not in last or now_ns - last[condition.name] >= _interval_ns(condition)
    }
    known = {condition.name for condition in conditions}
    on = [alert for alert in alerts.on if alert.name in known and alert.name not in due]
    gone = [alert for alert in alerts.on if alert.name not in known]
    for condition in due.values():
        before = [alert for alert in alerts.on if alert.name == condition.name]
        still, ended = _folded(condition, before, _Moment(time, alerts.restored_at_ns, history))
        on += still
        gone += ended
    fired_before = {alert.identity for alert in alerts.on if alert.state == "firing"}
    fired = [alert for alert in on if alert.state == "firing" and alert.identity not in fired_before]
    resolved = [
        replace(alert, resolved_at_ns=now_ns, resolved_wall_ns=time.wall_ns)
        for alert in gone
        if alert.state == "firing"
    ]
    changed = (
        *(Transition(to="firing", alert=alert, wall_ns=time.wall_ns) for alert in fired),
        *(Transition(to="resolved", alert=alert, wall_ns=time.wall_ns) for alert in resolved),
    )
    evaluated = {name: last[name] for name in known if name in last} | dict.fromkeys(due, now_ns)
    remembered = _remembered((*alerts.ended, *resolved), on, now_ns)
    return replace(alerts, on=tuple(on), evaluated_at_ns=evaluated, ended=remembered), changed


def counts(alerts: Alerts) -> Mapping[tuple[str, Severity, str], int]:
    """Alerts by name, severity and state: the rows of gpufeed_alerts."""
    counted: dict[tuple[str, Severity, str], int] = {}
    for alert in alerts.on:
        key = (alert.name, alert.severity, alert.state)
        counted[key] = counted.get(key, 0) + 1
    return counted


def save(alerts: Alerts, time: FrameTime, boot_id: str | None) -> bytes:
    """The state to keep over a restart."""
    return msgspec.msgpack.encode(_Saved(boot_id, time.monotonic_ns, alerts.on, alerts.ended))


def restore(data: bytes, time: FrameTime, boot_id: str | None, since: Alerts | None = None) -> Alerts:
    """The state from before a restart, with what has come on `since` it. Raises ParseError.

    Over a reboot, which starts the monotonic clock again, durations are kept.
    """
    try:
        saved = msgspec.msgpack.decode(data, type=_Saved)
    except msgspec.DecodeError as error:
        raise ParseError("saved alerts", str(error)) from error
    is_same_clock = saved.boot_id == boot_id and saved.at_ns <= time.monotonic_ns
    shift_ns = 0 if is_same_clock else time.monotonic_ns - saved.at_ns
    on = {alert.identity: alert for alert in (since or Alerts()).on}
    on.update((alert.identity, _shifted(alert, shift_ns)) for alert in saved.on)
    ended = tuple(_shifted(alert, shift_ns) for alert in saved.ended)
    return Alerts(on=tuple(on.values()), restored_at_ns=time.monotonic_ns, ended=ended)


@dataclass(frozen=True, slots=True)
class _Moment:
    time: FrameTime
    restored_at_ns: int | None
    history: History

    @property
    def now_ns(self) -> int:
        return self.time.monotonic_ns

    def is_young(self, window_s: int) -> bool:
        """Whether the history, since a restart, is shorter than the window and the time a series may take."""
        if self.restored_at_ns is None:
            return False
        return self.now_ns - self.restored_at_ns < GRACE_NS + window_s * NS_PER_S


def _interval_ns(condition: Condition) -> int:
    return (WINDOWED_INTERVAL_S if condition.window_s else 1) * NS_PER_S


def _folded(condition: Condition, before: list[Alert], moment: _Moment) -> tuple[list[Alert], list[Alert]]:
    """The alerts of one condition that are on, and those that have ended."""
    measured = tuple(measure(condition, moment.history))
    held = {alert.identity: alert for alert in _holding(condition, measured, moment)}
    known = {_labels(one) for one in measured if not _is_gate_unknown(condition, one)}
    still, ended = [], []
    for alert in before:
        now = held.pop(alert.identity, None)
        if now is not None:
            continued = replace(alert, value=now.value, text=now.text, ended_at_ns=None)
            still.append(_fired(condition, continued, moment))
        elif _is_unjudged(condition, alert, known, moment):
            still.append(alert)
        elif _is_kept(condition, alert, moment):
            still.append(replace(alert, ended_at_ns=_ended_at(alert, moment)))
        else:
            ended.append(alert)
    return [*still, *(_fired(condition, alert, moment) for alert in held.values())], ended


def _holding(condition: Condition, measured: Iterable[Measurement], moment: _Moment) -> Iterator[Alert]:
    for one in measured:
        if not one.holds or (_is_gate_unknown(condition, one) and moment.is_young(0)):
            continue
        for severity, used in condition.severities():
            if used is None or used == bool(one.used):
                yield Alert(
                    name=condition.name,
                    severity=severity,
                    labels=_labels(one),
                    text=tuple(pair for pair in one.labels if pair[0] == TEXT_ONLY),
                    value=one.value,
                    active_at_ns=moment.now_ns,
                )


def _labels(one: Measurement) -> Labels:
    return tuple(sorted(pair for pair in one.labels if pair[0] != TEXT_ONLY))


def _is_gate_unknown(condition: Condition, one: Measurement) -> bool:
    return condition.in_use is not None and one.used is None


def _is_unjudged(condition: Condition, alert: Alert, known: set[Labels], moment: _Moment) -> bool:
    """After a restart: the series is not back yet, or the window is not full again."""
    if alert.labels not in known:
        return moment.is_young(condition.window_s)
    return moment.restored_at_ns is not None and moment.now_ns - moment.restored_at_ns < condition.window_s * NS_PER_S


def _is_kept(condition: Condition, alert: Alert, moment: _Moment) -> bool:
    if alert.state != "firing":
        return False
    return moment.now_ns - _ended_at(alert, moment) < condition.keep_firing_for_s * NS_PER_S


def _ended_at(alert: Alert, moment: _Moment) -> int:
    return moment.now_ns if alert.ended_at_ns is None else alert.ended_at_ns


def _fired(condition: Condition, alert: Alert, moment: _Moment) -> Alert:
    is_due = moment.now_ns - alert.active_at_ns >= condition.for_s * NS_PER_S
    if alert.state == "firing" or not is_due:
        return alert
    return replace(alert, fired_at_ns=moment.now_ns, fired_wall_ns=moment.time.wall_ns)


def _remembered(ended: Iterable[Alert], on: Iterable[Alert], now_ns: int) -> tuple[Alert, ...]:
    """What ended lately and does not fire again; of one alert the last end."""
    firing = {alert.identity for alert in on if alert.state == "firing"}
    last = {alert.identity: alert for alert in ended if alert.identity not in firing}
    return tuple(alert for alert in last.values() if now_ns - (alert.resolved_at_ns or 0) < ENDED_REMEMBERED_NS)


def _shifted(alert: Alert, shift_ns: int) -> Alert:
    return replace(
        alert,
        active_at_ns=alert.active_at_ns + shift_ns,
        fired_at_ns=None if alert.fired_at_ns is None else alert.fired_at_ns + shift_ns,
        ended_at_ns=None if alert.ended_at_ns is None else alert.ended_at_ns + shift_ns,
        resolved_at_ns=None if alert.resolved_at_ns is None else alert.resolved_at_ns + shift_ns,
    )
