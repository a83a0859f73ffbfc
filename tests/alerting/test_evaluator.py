# SPDX-License-Identifier: Apache-2.0
"""Alerts over time: what Prometheus' rule manager would do, and what a restart must not do."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerting.histories import IN_USE, LOST, START_S, WALL_S, Story, condition, key, time_at
from gpufeed.alerting.conditions import CONDITIONS
from gpufeed.alerting.define import Condition, Select
from gpufeed.alerting.evaluator import Alerts, counts, restore, save
from gpufeed.errors import ParseError
from gpufeed.units import NS_PER_S

BOOT = "boot-1"
ILL, WELL = {LOST: 2.0}, {LOST: 0.0}


def test_without_for_it_fires_at_once_and_says_so_once() -> None:
    story = Story((condition(),))
    assert [alert.state for alert in story.at(0, ILL)] == ["firing"]
    story.at(1, ILL)
    assert story.changes == ["firing"]


def test_with_for_it_is_pending_first() -> None:
    story = Story((condition(for_s=60),))
    assert [story.at(at_s, ILL)[0].state for at_s in (0, 59, 60, 61)] == ["pending", "pending", "firing", "firing"]
    (fired,) = story.transitions
    assert fired.alert.active_at_ns == START_S * NS_PER_S
    assert fired.alert.fired_at_ns == (START_S + 60) * NS_PER_S
    assert fired.alert.fired_wall_ns == (WALL_S + 60) * NS_PER_S


def test_what_never_fired_is_never_resolved() -> None:
    story = Story((condition(for_s=60),))
    story.at(0, ILL)
    assert story.at(30, WELL) == ()
    assert story.changes == []


def test_a_pause_starts_the_wait_again() -> None:
    story = Story((condition(for_s=60),))
    for at_s, rows in ((0, ILL), (30, WELL), (31, ILL), (61, ILL)):
        story.at(at_s, rows)
    assert story.changes == []
    story.at(91, ILL)
    assert story.changes == ["firing"]


def test_what_fired_is_resolved_when_the_condition_ends_or_its_series_goes() -> None:
    for after in (WELL, {}):
        story = Story((condition(),))
        story.at(0, ILL)
        assert story.at(1, after) == ()
        assert story.changes == ["firing", "resolved"]


def test_keep_firing_for_bridges_a_pause() -> None:
    story = Story((condition(keep_firing_for_s=30),))
    for at_s, rows in ((0, ILL), (10, WELL), (39, WELL), (39.5, ILL), (41, ILL), (42, WELL), (71, WELL)):
        story.at(at_s, rows)
    assert story.changes == ["firing"]
    story.at(72, WELL)
    assert story.changes == ["firing", "resolved"]


def test_pending_alerts_are_not_kept() -> None:
    story = Story((condition(for_s=60, keep_firing_for_s=30),))
    story.at(0, ILL)
    assert story.at(1, WELL) == ()


def test_labels_of_an_alert_do_not_change_with_the_index_of_its_gpu() -> None:
    story = Story((condition(),))
    story.at(0, ILL)
    (alert,) = story.at(1, {key("gpufeed_gpu_health", gpu="5", uuid="GPU-a", check="lost"): 2})
    assert story.changes == ["firing"]
    assert alert.labels == (("check", "lost"), ("uuid", "GPU-a"))
    assert alert.text == (("gpu", "5"),)


def test_in_use_decides_the_severity_and_exactly_one_fires() -> None:
    story = Story((condition(in_use="gpu", severity_idle="ticket"),))
    assert [alert.severity for alert in story.at(0, {LOST: 2, IN_USE: 1})] == ["page"]
    assert [alert.severity for alert in story.at(1, {LOST: 2, IN_USE: 0})] == ["ticket"]
    assert [alert.severity for alert in story.at(2, {LOST: 2})] == ["ticket"]


def test_a_window_of_minutes_is_looked_at_every_fifteen_seconds() -> None:
    slow = condition(statistic="max", window_s=60)
    story = Story((slow,))
    story.at(0, WELL)
    assert story.at(14, ILL) == ()
    assert [alert.state for alert in story.at(15, ILL)] == ["firing"]


def test_a_condition_that_is_taken_out_of_the_table_ends_its_alerts() -> None:
    story = Story((condition(), condition(name="OtherIll", for_s=60)))
    story.at(0, ILL)
    story.conditions = ()
    assert story.at(1, ILL) == ()
    assert story.changes == ["firing", "resolved"]
    assert story.alerts.evaluated_at_ns == {}


def test_alerts_are_counted_by_name_severity_and_state() -> None:
    story = Story((condition(), condition(name="OtherIll", for_s=60)))
    story.at(0, {**ILL, key("gpufeed_gpu_health", gpu="4", uuid="GPU-b", check="lost"): 2})
    assert counts(story.alerts) == {("GpuIll", "page", "firing"): 2, ("OtherIll", "page", "pending"): 2}


def restarted(story: Story, at_s: float, boot: str = BOOT) -> Story:
    data = save(story.alerts, time_at(at_s), BOOT)
    return Story(story.conditions, alerts=restore(data, time_at(at_s), boot))


def test_after_a_restart_a_firing_alert_waits_for_its_series_and_goes_on() -> None:
    story = Story((condition(),))
    story.at(0, ILL)
    story = restarted(story, 10)
    story.at(11, {})
    (alert,) = story.at(40, ILL)
    assert story.changes == []
    assert alert.fired_at_ns == START_S * NS_PER_S


def test_after_a_restart_a_pending_alert_has_waited_as_long_as_before() -> None:
    story = Story((condition(for_s=60),))
    story.at(0, ILL)
    story = restarted(story, 50)
    story.at(51, {})
    story.at(60, ILL)
    assert story.changes == ["firing"]


def test_after_a_restart_a_fault_that_is_over_is_resolved_as_soon_as_it_is_seen_to_be() -> None:
    story = Story((condition(),))
    story.at(0, ILL)
    story = restarted(story, 10)
    story.at(11, WELL)
    assert story.changes == ["resolved"]


def test_a_series_that_does_not_come_back_ends_its_alert_after_a_while() -> None:
    story = Story((condition(),))
    story.at(0, ILL)
    story = restarted(story, 10)
    story.at(309, {})
    assert story.changes == []
    story.at(311, {})
    assert story.changes == ["resolved"]


def test_after_a_restart_a_window_must_be_full_before_it_clears_anything() -> None:
    story = Story((condition(statistic="max", window_s=600),))
    story.at(0, ILL)
    story = restarted(story, 10)
    for at_s in range(11, 600, 15):
        story.at(at_s, WELL)
    assert story.changes == []
    story.at(611, WELL)
    assert story.changes == ["resolved"]


def test_after_a_restart_in_use_is_waited_for_too() -> None:
    gated = condition(in_use="gpu", severity_idle="ticket")
    story = Story((gated,))
    story.at(0, {LOST: 2, IN_USE: 1})
    story = restarted(story, 10)
    story.at(11, ILL)
    story.at(20, {LOST: 2, IN_USE: 1})
    assert story.changes == []


def test_over_a_reboot_durations_are_kept_though_the_clock_began_again() -> None:
    story = Story((condition(for_s=60),))
    story.at(0, ILL)
    data = save(story.alerts, time_at(30), BOOT)
    early = -START_S + 20  # monotonic time of the new boot
    alerts = restore(data, time_at(early), "boot-2")
    story = Story(story.conditions, alerts=alerts)
    story.at(early + 29, ILL)
    assert story.changes == []
    story.at(early + 30, ILL)
    assert story.changes == ["firing"]


def test_a_firing_and_a_kept_alert_survive_a_reboot() -> None:
    story = Story((condition(keep_firing_for_s=600),))
    story.at(0, ILL)
    story.at(10, WELL)
    story = restarted(story, 20, boot="boot-2")
    story.at(21, WELL)
    assert story.changes == []
    story.at(611, WELL)
    assert story.changes == ["resolved"]


def test_what_came_on_before_the_saved_state_was_read_is_not_lost_and_what_was_saved_is_older() -> None:
    before = Story((condition(for_s=60),))
    before.at(0, ILL)
    other = key("gpufeed_gpu_health", gpu="4", uuid="GPU-b", check="lost")
    story = Story(before.conditions)
    story.at(30, {**ILL, other: 2})
    story.alerts = restore(save(before.alerts, time_at(1), BOOT), time_at(31), BOOT, since=story.alerts)
    story.at(60, {**ILL, other: 2})
    assert [transition.alert.labels[1] for transition in story.transitions] == [("uuid", "GPU-a")]
    story.at(90, {**ILL, other: 2})
    assert [transition.alert.labels[1] for transition in story.transitions] == [("uuid", "GPU-a"), ("uuid", "GPU-b")]


def test_saved_alerts_that_are_garbage_are_refused() -> None:
    with pytest.raises(ParseError):
        restore(b"\xc1nonsense", time_at(0), BOOT)


MOMENTS = st.lists(
    st.tuples(st.integers(1, 20), st.sampled_from(["ill", "well", "absent", "restart"])), min_size=1, max_size=60
)
VARIANTS = st.builds(
    condition, for_s=st.sampled_from([0, 5, 30]), keep_firing_for_s=st.sampled_from([0, 10]), threshold=st.just(1)
)


@given(MOMENTS, VARIANTS)
def test_it_fires_and_resolves_in_turn_and_never_resolves_what_never_fired(
    moments: list[tuple[int, str]], of: Condition
) -> None:
    story, at_s = Story((of,)), 0
    changes: list[str] = []
    for distance_s, what in moments:
        at_s += distance_s
        if what == "restart":
            story = restarted(story, at_s)
        else:
            story.at(at_s, {"ill": ILL, "well": WELL, "absent": {}}[what])
            changes += story.changes[:]
            story.transitions.clear()
    assert changes == ["firing", "resolved"] * (len(changes) // 2) + ["firing"] * (len(changes) % 2)


@given(
    before=st.lists(st.sampled_from([ILL, WELL]), min_size=1, max_size=40),
    silent_s=st.integers(0, 100),
    of=VARIANTS,
)
def test_a_restart_neither_resolves_nor_restarts_anything(
    before: list[dict[object, float]], silent_s: int, of: Condition
) -> None:
    """The daemon is away and its series take a while; the fault goes on as it was. Nobody must hear of it."""
    story = Story((of,))
    for at_s, rows in enumerate(before):
        story.at(at_s, rows)  # type: ignore[arg-type]  # keys are the two series above
    at_s, on = len(before), story.alerts.on
    story = restarted(story, at_s)
    for later_s in range(silent_s):
        story.at(at_s + later_s, {})
    assert story.changes == []
    kept = {alert.identity: alert.active_at_ns for alert in story.alerts.on}
    assert kept == {alert.identity: alert.active_at_ns for alert in on}


def test_the_shipped_conditions_say_nothing_of_an_empty_history() -> None:
    story = Story(CONDITIONS)
    assert story.at(0, {}) == ()
    assert story.transitions == []


def test_nothing_is_changed_in_place() -> None:
    story = Story((condition(series=Select(metric="gpufeed_gpu_health")),))
    story.at(0, ILL)
    before, copy = story.alerts, Alerts(on=story.alerts.on, evaluated_at_ns=dict(story.alerts.evaluated_at_ns))
    story.at(1, WELL)
    assert before == copy
    assert replace(condition(), threshold=2).threshold == 2
