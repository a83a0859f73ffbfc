# SPDX-License-Identifier: Apache-2.0
"""Changes of alerts and verdicts as they happen, for page and API; looked at once a second, at frame time."""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from gpufeed.alerting.evaluator import Alert, Transition
from gpufeed.errors import ParseError
from gpufeed.health.subject import named
from gpufeed.history.events import Event, Events
from gpufeed.logs import fields
from gpufeed.model.state import NodeState, Subject, Verdict
from gpufeed.units import NS_PER_S

LEVELS: Final = ("ok", "degraded", "failed")
EARLIER_STATE_WITHIN_NS: Final = 10 * NS_PER_S
_log: Final = logging.getLogger(__name__)


class Happened:
    """The history of changes, and whether something new is in it that should be saved."""

    def __init__(self) -> None:
        self._events = Events()
        self._is_expecting = False
        self._asked_ns: int | None = None
        self._looked_ns: int | None = None
        self.newest = self._events.newest

    def on_state(self, state: NodeState, changes: Iterable[Transition], text: Callable[[Alert], str]) -> bool:
        """Note what is new in `state` and `changes`; whether something was."""
        new = [_of_alert(change, text) for change in changes]
        now_ns = state.time.monotonic_ns
        if not self._is_waiting(now_ns) and (self._looked_ns is None or now_ns - self._looked_ns >= NS_PER_S):
            self._looked_ns = now_ns
            new += self._of_health(state)
        self._events.add(new)
        return bool(new)

    def expect(self) -> None:
        """Compare no verdicts before `restore`, for a while: what failed before the restart would count as new."""
        self._is_expecting = True

    def save(self) -> bytes:
        """To keep over a restart."""
        return self._events.save()

    def restore(self, data: bytes | None) -> None:
        """Take over what an earlier server knew."""
        self._is_expecting = False
        if data is None:
            return
        try:
            self._events.restore(data)
        except ParseError as error:
            _log.warning("saved events are unreadable and forgotten", extra=fields(error=error))

    def _is_waiting(self, now_ns: int) -> bool:
        self._asked_ns = now_ns if self._asked_ns is None else self._asked_ns
        return self._is_expecting and now_ns - self._asked_ns < EARLIER_STATE_WITHIN_NS

    def _of_health(self, state: NodeState) -> Iterator[Event]:
        verdicts = {_key(*key): verdict for key, verdict in state.verdicts.items()}
        for name in self._events.changed({key: verdict.level for key, verdict in verdicts.items()}):
            yield _of_verdict(verdicts[name], state)


def _key(subject: Subject, check: str) -> str:
    identity = subject if isinstance(subject, str) else ":".join(
        str(getattr(subject, name)) for name in subject.__struct_fields__
    )  # fmt: skip
    return f"{identity} {check}"


def _of_verdict(verdict: Verdict, state: NodeState) -> Event:
    return Event(
        wall_ns=state.time.wall_ns,
        kind="health",
        name=verdict.check,
        of=named(verdict.subject, state),
        to=LEVELS[verdict.level],
        text=verdict.reason,
    )


def _of_alert(change: Transition, text: Callable[[Alert], str]) -> Event:
    return Event(
        wall_ns=change.wall_ns,
        kind="alert",
        name=change.alert.name,
        of=", ".join(value for _, value in change.alert.labels),
        to=change.to,
        severity=change.alert.severity,
        text=text(change.alert),
    )
