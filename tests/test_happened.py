# SPDX-License-Identifier: Apache-2.0
"""Changes as the daemon notes them: of alerts and of verdicts, once each, over restarts too."""

from typing import Literal

import pytest

from gpufeed.alerting.evaluator import Alert, Transition
from gpufeed.daemon.happened import Happened
from gpufeed.model.frame import FrameTime
from gpufeed.model.ids import GpuKey, GpuUuid, LaneId
from gpufeed.model.state import GpuRecord, NodeState, Verdict

SECOND = 1_000_000_000
KEY = GpuKey(GpuUuid("GPU-1"))


Level = Literal[0, 1, 2] | None


def at(second: int, level: Level) -> NodeState:
    record = GpuRecord(uuid=KEY.uuid, index=3, lane=LaneId("gpu3"), identity=None, condition="ok")
    verdict = Verdict(subject=KEY, check="xid", level=level or 0, since_ns=0)
    return NodeState(
        time=FrameTime(second * SECOND, second * SECOND, second * SECOND),
        gpus={KEY.uuid: record},
        verdicts={} if level is None else {(KEY, "xid"): verdict},
    )


def words(alert: Alert) -> str:
    return f"{alert.name} says so"


def told(happened: Happened) -> list[tuple[int, str, str, str]]:
    return [(one.wall_ns // SECOND, one.of, one.name, one.to) for one in reversed(happened.newest())]


def test_a_verdict_that_gets_worse_and_better_is_told_twice() -> None:
    happened = Happened()
    levels: list[Level] = [0, 2, 2, 0, 0]
    news = [happened.on_state(at(second, level), (), words) for second, level in enumerate(levels)]
    assert news == [False, True, False, True, False]
    assert told(happened) == [(1, "GPU 3", "xid", "failed"), (3, "GPU 3", "xid", "ok")]


def test_an_alert_is_told_with_what_it_says() -> None:
    alert = Alert(name="GpuLost", severity="page", labels=(("uuid", "GPU-1"),), value=2, active_at_ns=0)
    happened = Happened()
    assert happened.on_state(at(5, 0), [Transition(to="firing", alert=alert, wall_ns=5 * SECOND)], words)
    assert told(happened) == [(5, "GPU-1", "GpuLost", "firing")]
    assert happened.newest()[0].text == "GpuLost says so"


def test_a_restart_tells_nothing_anew_and_remembers_what_was() -> None:
    before, after = Happened(), Happened()
    before.on_state(at(1, 2), (), words)
    after.expect()
    assert not after.on_state(at(2, 2), (), words)
    after.restore(before.save())
    later: list[tuple[int, Level]] = [(3, None), (4, 2), (5, 0)]
    for second, level in later:
        after.on_state(at(second, level), (), words)
    assert told(after) == [(1, "GPU 3", "xid", "failed"), (5, "GPU 3", "xid", "ok")]


def test_state_that_does_not_come_is_not_waited_for_for_ever() -> None:
    happened = Happened()
    happened.expect()
    assert not happened.on_state(at(1, 2), (), words)
    assert happened.on_state(at(12, 2), (), words)


def test_saved_garbage_is_forgotten_with_a_word(caplog: pytest.LogCaptureFixture) -> None:
    happened = Happened()
    happened.restore(b"\xc1")
    happened.restore(None)
    assert [record.getMessage() for record in caplog.records] == ["saved events are unreadable and forgotten"]
    assert happened.on_state(at(1, 2), (), words)
