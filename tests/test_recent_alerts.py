# SPDX-License-Identifier: Apache-2.0
"""Alerts as the daemon evaluates them: from states to what is shown, and over a restart."""

from dataclasses import replace

import pytest

from gpufeed.alerting import site
from gpufeed.config.alerting import Alerting
from gpufeed.config.load import parse
from gpufeed.config.schema import Config
from gpufeed.daemon.recent import Recent
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.model.frame import FrameTime
from gpufeed.model.host import NodeInfo
from gpufeed.model.ids import GpuKey, GpuUuid, GroupName, LaneId
from gpufeed.model.state import GpuRecord, Held, NodeState, ProbeRecord, Verdict

SECOND = 1_000_000_000
UUID = GpuUuid("GPU-1")
KEY = GpuKey(UUID)


def lost_at(monotonic_s: int, boot_id: str = "boot") -> NodeState:
    now_ns = monotonic_s * SECOND
    info = NodeInfo(nodename="n", boot_id=boot_id)
    held = Held(
        sample=info, lane=LaneId("host"), group=GroupName("host.fast"), collector="host", read_at_ns=0, stale_at_ns=1
    )
    record = GpuRecord(uuid=UUID, index=3, lane=LaneId("gpu3"), identity=None, condition="lost", in_use_at_ns=now_ns)
    return NodeState(
        time=FrameTime(now_ns, now_ns, 1_700_000_000 * SECOND + now_ns),
        samples={NodeInfo: {"node": held}},
        gpus={UUID: record},
        verdicts={(KEY, "lost"): Verdict(subject=KEY, check="lost", level=2, since_ns=0)},
        probe=ProbeRecord(is_up=True, frames=1),
    )


def recent(alerting: Alerting | None = None) -> Recent:
    return Recent(site.conditions(alerting if alerting is not None else Alerting()), ServerFacts)


def shown(evaluated: Recent) -> dict[str, str]:
    return {one.name: one.state for one in evaluated.firing()}


def test_a_lost_gpu_is_pending_for_a_minute_and_fires_then(caplog: pytest.LogCaptureFixture) -> None:
    evaluated = recent()
    for at_s in range(1000, 1060):
        evaluated.on_state(lost_at(at_s))
    assert shown(evaluated) == {"GpuLost": "pending"}
    evaluated.on_state(lost_at(1060))
    assert shown(evaluated) == {"GpuLost": "firing"}
    assert evaluated.firing()[0].text == "GPU 3 is lost"
    evaluated.on_state(replace(lost_at(1061), verdicts={}))
    assert shown(evaluated) == {}
    assert [record.getMessage() for record in caplog.records] == ["alert firing", "alert resolved"]


def test_states_within_a_second_are_one_evaluation() -> None:
    evaluated = recent()
    for quarter in range(8):
        evaluated.on_state(replace(lost_at(1000), time=FrameTime(1000 * SECOND + quarter * SECOND // 4, 0, 0)))
    assert {key[0] for key in evaluated.rings.select("gpufeed_gpu_health")} == {"gpufeed_gpu_health"}
    (key,) = evaluated.rings.select("gpufeed_gpu_health")
    assert len(evaluated.rings.points(key)) == 2


def test_a_site_switches_an_alert_off_while_it_is_on() -> None:
    evaluated = recent()
    evaluated.on_state(lost_at(1000))
    assert "GpuLost" in shown(evaluated)
    off = parse(b"alerting: {thresholds: {GpuLost: {enabled: false}}}", "x")
    evaluated.use(site.conditions(off.alerting))
    evaluated.on_state(lost_at(1001))
    assert shown(evaluated) == {}


def test_a_firing_alert_survives_a_restart_within_one_boot() -> None:
    first = recent()
    for at_s in range(1000, 1070):
        first.on_state(lost_at(at_s))
    saved = first.save(lost_at(1070))
    second = recent(Config().alerting)
    second.restore(saved)
    second.on_state(lost_at(1080))
    assert shown(second) == {"GpuLost": "firing"}
    assert second.alerts.on[0].fired_at_ns == first.alerts.on[0].fired_at_ns


def test_saved_alerts_that_are_garbage_are_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    evaluated = recent()
    evaluated.restore(b"garbage")
    evaluated.on_state(lost_at(1000))
    assert "saved alerts are unreadable and forgotten" in caplog.text
    assert shown(evaluated) == {"GpuLost": "pending"}


def test_saved_alerts_wait_for_the_boot_id_but_not_for_ever() -> None:
    first = recent()
    for at_s in range(1000, 1070):
        first.on_state(lost_at(at_s))
    saved = first.save(lost_at(1070))
    second = recent()
    second.restore(saved)
    second.on_state(replace(lost_at(1080), samples={}, verdicts={}))
    assert shown(second) == {}
    second.on_state(replace(lost_at(1090), samples={}))
    assert shown(second) == {"GpuLost": "firing"}


def test_nothing_is_evaluated_before_the_saved_alerts_have_come_but_not_for_ever() -> None:
    evaluated = recent()
    evaluated.expect()
    evaluated.on_state(lost_at(1000))
    assert shown(evaluated) == {}
    evaluated.restore(None)
    evaluated.on_state(lost_at(1001))
    assert shown(evaluated) == {"GpuLost": "pending"}
    forgotten = recent()
    forgotten.expect()
    forgotten.on_state(lost_at(1000))
    forgotten.on_state(lost_at(1010))
    assert shown(forgotten) == {"GpuLost": "pending"}
