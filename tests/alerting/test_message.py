# SPDX-License-Identifier: Apache-2.0
"""What receivers are sent, when, and what waits for them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from alerting.histories import IN_USE, LOST, WALL_S, Story, condition, time_at
from gpufeed.alerting.evaluator import Alert, restore, save
from gpufeed.alerting.message import Message, for_alertmanager, for_webhook, message
from gpufeed.alerting.outbox import Outbox
from gpufeed.alerting.repeats import Repeats
from gpufeed.units import NS_PER_S

ILL = condition()
SITE = {"job": "gpufeed", "instance": "n1:9937", "severity": "mine"}


def firing(**changes: object) -> Alert:
    of: dict[str, object] = {
        "name": "GpuIll",
        "severity": "page",
        "labels": (("check", "lost"), ("uuid", "GPU-a")),
        "text": (("gpu", "3"),),
        "value": 2.0,
        "active_at_ns": 0,
        "fired_at_ns": 0,
        "fired_wall_ns": WALL_S * NS_PER_S,
    }
    return Alert(**(of | changes))  # type: ignore[arg-type]  # the tests say what


def named(name: str, value: int = 0) -> Message:
    return Message(labels=(("alertname", name),), annotations=(("n", str(value)),), starts_wall_ns=0)


def test_an_alert_carries_its_own_labels_before_those_of_the_site() -> None:
    made = message(ILL, firing(), SITE, "https://wiki/r/")
    assert dict(made.labels) == {
        "alertname": "GpuIll", "severity": "page", "layer": "gpu", "action": "drain", "check": "lost",
        "uuid": "GPU-a", "job": "gpufeed", "instance": "n1:9937",
    }  # fmt: skip
    assert dict(made.annotations) == {
        "summary": "GPU 3 is ill",
        "description": "GPU 3 (GPU-a) is ill.",
        "runbook_url": "https://wiki/r/GpuIll.md",
    }


def test_a_firing_alert_ends_four_minutes_from_now_by_the_receivers_clock() -> None:
    made = message(ILL, firing(), {}, None)
    (posted,) = json.loads(for_alertmanager([made], (WALL_S + 10) * NS_PER_S, 600 * NS_PER_S))
    # 1700000000 is 22:13:20; ten seconds passed, the receiver is ten minutes ahead
    assert posted["startsAt"] == "2023-11-14T22:23:20.000Z"
    assert posted["endsAt"] == "2023-11-14T22:27:30.000Z"


def test_an_ended_alert_ends_when_it_did_and_never_before_its_start() -> None:
    ended = message(ILL, firing(resolved_wall_ns=(WALL_S + 5) * NS_PER_S), {}, None)
    (posted,) = json.loads(for_alertmanager([ended], (WALL_S + 90) * NS_PER_S, 0))
    assert posted["endsAt"] == "2023-11-14T22:13:25.000Z"
    clock_set_back = message(ILL, firing(resolved_wall_ns=(WALL_S - 500) * NS_PER_S), {}, None)
    (posted,) = json.loads(for_alertmanager([clock_set_back], WALL_S * NS_PER_S, 0))
    assert posted["endsAt"] == posted["startsAt"]


def test_a_webhook_gets_alertmanagers_own_form() -> None:
    both = [message(ILL, firing(), {}, None), message(ILL, firing(labels=(("uuid", "GPU-b"),)), {}, None)]
    told = json.loads(for_webhook(both, 0))
    assert (told["version"], told["status"], len(told["alerts"])) == ("4", "firing", 2)
    assert told["commonLabels"] == {"alertname": "GpuIll", "severity": "page", "layer": "gpu", "action": "drain"}
    assert told["alerts"][0]["fingerprint"] != told["alerts"][1]["fingerprint"]
    ended = message(ILL, firing(resolved_wall_ns=(WALL_S + 5) * NS_PER_S), {}, None)
    told = json.loads(for_webhook([ended], 0))
    assert told["status"] == told["alerts"][0]["status"] == "resolved"


def test_an_alert_is_sent_at_once_every_minute_and_its_end_for_fifteen() -> None:
    story, repeats, sent = Story((ILL,)), Repeats(), list[tuple[int, bool]]()
    for at_s in range(1_200):
        story.at(at_s, {LOST: 2 if 10 <= at_s < 100 else 0, IN_USE: 1})
        for alert in repeats.due(story.alerts, time_at(at_s).monotonic_ns):
            sent.append((at_s, alert.resolved_wall_ns is not None))
    ends = [(100 + 60 * number, True) for number in range(15)]
    assert sent == [(10, False), (70, False), *ends]


def test_the_end_of_an_alert_outlives_a_restart_and_gives_way_to_a_new_beginning() -> None:
    story = Story((ILL,))
    story.at(0, {LOST: 2})
    story.at(1, {LOST: 0})
    (ended,) = story.alerts.ended
    again = restore(save(story.alerts, time_at(1), "b"), time_at(31), "b")
    assert again.ended == (ended,)
    story.alerts = again
    story.at(32, {LOST: 2})
    assert story.alerts.ended == ()


def test_a_newer_message_replaces_the_one_that_waits() -> None:
    outbox = Outbox(max_waiting=2)
    outbox.put([named("A", 1), named("B", 1), named("A", 2)])
    batch = outbox.batch()
    assert [dict(one.annotations)["n"] for one in batch] == ["1", "2"]
    outbox.put([named("A", 3)])
    outbox.done(batch)
    assert [dict(one.annotations)["n"] for one in outbox.batch()] == ["3"]


@given(st.lists(st.text("abcdef", min_size=1, max_size=2), max_size=60))
def test_the_queue_never_grows_and_counts_what_it_drops(names: list[str]) -> None:
    outbox = Outbox(max_waiting=5)
    for name in names:
        outbox.put([named(name)])
        assert len(outbox) <= 5
    waiting = {dict(one.labels)["alertname"] for one in outbox.batch()}
    newest = list(dict.fromkeys(reversed(names)))[:5]
    assert waiting == set(newest)
    assert (outbox.dropped == 0) == (len(set(names)) <= 5)
