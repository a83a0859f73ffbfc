# SPDX-License-Identifier: Apache-2.0
"""What receivers hear around a maintenance: no beginning in it, no end without a beginning, nothing lost afterwards."""

from gpufeed.alerting.evaluator import Alert, Alerts, Transition
from gpufeed.alerting.silence import Silence


def alert(name: str, *, is_ended: bool = False) -> Alert:
    return Alert(
        name=name, severity="page", labels=(), value=1, active_at_ns=0, fired_at_ns=0, fired_wall_ns=1,
        resolved_at_ns=5 if is_ended else None, resolved_wall_ns=5 if is_ended else None,
    )  # fmt: skip


def began(name: str) -> Transition:
    return Transition(to="firing", alert=alert(name), wall_ns=1)


def over(name: str) -> Transition:
    return Transition(to="resolved", alert=alert(name, is_ended=True), wall_ns=5)


class Heard:
    def __init__(self) -> None:
        self.silence = Silence()

    def turn(self, *changes: Transition, on: str = "", ended: str = "", silent: bool) -> tuple[str, str, str]:
        """Names that still fire, that are told as ended, and the changes told, as letters."""
        alerts = Alerts(on=tuple(map(alert, on)), ended=tuple(alert(name, is_ended=True) for name in ended))
        left, told = self.silence.passed(alerts, changes, 9, is_silent=silent)
        return (
            "".join(one.name for one in left.on),
            "".join(one.name for one in left.ended),
            " ".join(("+" if one.to == "firing" else "-") + one.alert.name for one in told),
        )


def test_without_maintenance_everything_passes() -> None:
    heard = Heard()
    assert heard.turn(began("A"), on="A", silent=False) == ("A", "", "+A")
    assert heard.turn(over("A"), ended="A", silent=False) == ("", "A", "-A")


def test_what_was_told_before_is_ended_in_maintenance() -> None:
    heard = Heard()
    heard.turn(began("A"), on="A", silent=False)
    assert heard.turn(on="A", silent=True) == ("", "", "")
    assert heard.turn(over("A"), ended="A", silent=True) == ("", "A", "-A")


def test_what_comes_and_goes_in_maintenance_is_never_heard_of() -> None:
    heard = Heard()
    assert heard.turn(began("A"), on="A", silent=True) == ("", "", "")
    assert heard.turn(over("A"), ended="A", silent=True) == ("", "", "")
    assert heard.turn(ended="A", silent=False) == ("", "", "")
    assert heard.turn(began("A"), on="A", silent=False) == ("A", "", "+A")
    assert heard.turn(over("A"), ended="A", silent=False) == ("", "A", "-A")


def test_what_began_in_maintenance_and_still_fires_afterwards_is_told_then_and_once() -> None:
    heard = Heard()
    heard.turn(began("A"), on="A", silent=True)
    assert heard.turn(on="A", silent=False) == ("A", "", "+A")
    assert heard.turn(on="A", silent=False) == ("A", "", "")
    assert heard.turn(over("A"), ended="A", silent=False) == ("", "A", "-A")


def test_what_ends_with_the_maintenance_itself_is_not_told_as_ended() -> None:
    heard = Heard()
    heard.turn(began("A"), on="A", silent=True)
    assert heard.turn(over("A"), ended="A", silent=False) == ("", "", "")
