# SPDX-License-Identifier: Apache-2.0
"""The recent past of what alerts stand on, and the alerts that are on; looked at once a second, at frame time."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gpufeed.alerting import evaluator
from gpufeed.alerting.conditions import Condition
from gpufeed.alerting.define import MAX_LOCAL_WINDOW_S
from gpufeed.alerting.evaluator import Transition
from gpufeed.alerting.measure import wanted, windowed
from gpufeed.alerting.text import filled
from gpufeed.catalogue.define import MetricDef
from gpufeed.errors import ParseError
from gpufeed.exposition.family import Labels, label_pairs
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.history.rings import Rings, SeriesKey
from gpufeed.logs import fields
from gpufeed.model.host import NodeInfo
from gpufeed.model.state import NodeState
from gpufeed.units import NS_PER_S
from gpufeed.web.endpoints import Firing

_EVERY_NS: Final = NS_PER_S
_BOOT_ID_WITHIN_NS: Final = 10 * NS_PER_S
_MAX_KEYS: Final = 20_000
_log: Final = logging.getLogger(__name__)


class Recent:
    """History rings, and the alert evaluator over them."""

    def __init__(self, conditions: Sequence[Condition], facts: Callable[[], ServerFacts]) -> None:
        self.rings = Rings()
        self.alerts = evaluator.Alerts()
        self._facts = facts
        self._looked_ns: int | None = None
        self._saved: bytes | None = None  # waits for the boot id, which says how to read it
        self._is_expecting = False
        self._asked_ns: int | None = None
        self.use(conditions)

    def use(self, conditions: Sequence[Condition]) -> None:
        """Evaluate these from now on; windows longer than the history are left to Prometheus."""
        self._conditions = {one.name: one for one in conditions if one.window_s <= MAX_LOCAL_WINDOW_S}
        self._is_wanted = wanted(self._conditions.values())
        self._keys: dict[tuple[str, Labels], SeriesKey | None] = {}
        self._metrics = frozenset(metric for one in self._conditions.values() for metric in one.metrics)
        self.rings.keep_latest_only(self._metrics - windowed(self._conditions.values()))

    def on_state(self, state: NodeState) -> tuple[Transition, ...]:
        """Remember and evaluate, when a second has passed since the last time; what has changed."""
        now_ns = state.time.monotonic_ns
        if self._looked_ns is not None and now_ns - self._looked_ns < _EVERY_NS:
            return ()
        self._looked_ns = now_ns
        if not self._has_taken_over(state):
            return ()
        self.rings.append(now_ns, self._rows(state))
        self.alerts, changes = evaluator.evaluate(self.alerts, tuple(self._conditions.values()), state.time, self.rings)
        for change in changes:
            self._say(change)
        return changes

    def firing(self) -> tuple[Firing, ...]:
        """The alerts that are on, for people."""
        return tuple(
            Firing(name=one.name, severity=one.severity, state=one.state, text=self.text(one)) for one in self.alerts.on
        )

    def save(self, state: NodeState) -> bytes:
        """The alerts that are on, to keep over a restart."""
        return evaluator.save(self.alerts, state.time, _boot_id(state))

    def expect(self) -> None:
        """Evaluate nothing before `restore`, for a while: what fired before the restart would count as new."""
        self._is_expecting = True

    def restore(self, data: bytes | None) -> None:
        """Take over the alerts of an earlier server, as soon as it is known whether this is the same boot."""
        self._saved = data
        self._is_expecting = False

    def _has_taken_over(self, state: NodeState) -> bool:
        """Whether an earlier server's alerts are among ours, or will not come."""
        if self._saved is None and not self._is_expecting:
            return True
        now_ns = state.time.monotonic_ns
        self._asked_ns = now_ns if self._asked_ns is None else self._asked_ns
        if (self._is_expecting or _boot_id(state) is None) and now_ns - self._asked_ns < _BOOT_ID_WITHIN_NS:
            return False
        self._is_expecting = False
        data, self._saved = self._saved, None
        if data is not None:
            try:
                self.alerts = evaluator.restore(data, state.time, _boot_id(state))
            except ParseError as error:
                _log.warning("saved alerts are unreadable and forgotten", extra=fields(error=error))
        return True

    def _rows(self, state: NodeState) -> Iterator[tuple[SeriesKey, float]]:
        for family in families(state, self._facts()):
            if family.definition.name in self._metrics:
                for values, value in family.rows:
                    key = self._key(family.definition, values)
                    if key is not None:
                        yield key, value

    def _key(self, definition: MetricDef, values: Labels) -> SeriesKey | None:
        """The key of a row, None where no condition reads it; made once a row, because it is the dear part."""
        row = (definition.name, values)
        if row not in self._keys:
            if len(self._keys) >= _MAX_KEYS:
                self._keys.clear()
            key = (definition.name, label_pairs(definition, values))
            self._keys[row] = key if self._is_wanted(key) else None
        return self._keys[row]

    def _say(self, change: Transition) -> None:
        alert = change.alert
        text = fields(alert=alert.name, severity=alert.severity, **dict(alert.labels), text=self.text(alert))
        _log.warning("alert %s", change.to, extra=text)

    def text(self, alert: evaluator.Alert) -> str:
        """What an alert says, in a line."""
        condition = self._conditions.get(alert.name)
        if condition is None:
            return ""
        return filled(condition.summary, dict((*alert.labels, *alert.text)), alert.value)


def _boot_id(state: NodeState) -> str | None:
    held = next(iter(state.latest(NodeInfo).values()), None)
    return held.sample.boot_id if held is not None else None
