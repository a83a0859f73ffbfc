# SPDX-License-Identifier: Apache-2.0
"""Alerts on their way: to receivers that are slow, wrong, away, or of another time."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from alerting.histories import condition
from alerting.receiving import RecordedReceiver
from gpufeed.alerting.evaluator import Alert, Alerts, Transition
from gpufeed.alerting.notifier import Notifier
from gpufeed.alerting.resolver import LaneResolver, is_link_local
from gpufeed.clock import SystemClock
from gpufeed.config.alerting import Alerting, BasicAuth, Receiver
from gpufeed.daemon.loop import new_event_loop
from gpufeed.wire.server_lane import ServerLane

CLOCK = SystemClock()
ILL = condition(evaluator="node")


async def seen(claim: Callable[[], object], within_s: float = 10) -> None:
    async with asyncio.timeout(within_s):
        while not claim():  # noqa: ASYNC110 what is waited for happens in another's objects
            await asyncio.sleep(0.02)


def alert(uuid: str = "GPU-a", *, is_ended: bool = False) -> Alert:
    now_ns = CLOCK.wall_ns()
    return Alert(
        name="GpuIll",
        severity="page",
        labels=(("check", "lost"), ("uuid", uuid)),
        text=(("gpu", "3"),),
        value=2.0,
        active_at_ns=0,
        fired_at_ns=0,
        fired_wall_ns=now_ns,
        resolved_at_ns=CLOCK.monotonic_ns() if is_ended else None,
        resolved_wall_ns=now_ns if is_ended else None,
    )


def at_once(notifier: Notifier, *alerts: Alert) -> None:
    on = tuple(one for one in alerts if one.resolved_wall_ns is None)
    ended = tuple(one for one in alerts if one.resolved_wall_ns is not None)
    changes = [Transition(to="firing", alert=one, wall_ns=0) for one in on]
    changes += [Transition(to="resolved", alert=one, wall_ns=0) for one in ended]
    notifier.tell(Alerts(on=on, ended=ended), changes, CLOCK.monotonic_ns())


@pytest.fixture
async def receiver() -> AsyncIterator[RecordedReceiver]:
    one = RecordedReceiver()
    await one.start()
    yield one
    await one.stop()


@pytest.fixture
async def notifier() -> AsyncIterator[Notifier]:
    one = Notifier(CLOCK)
    yield one
    await one.stop()


def time_of(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_an_alert_reaches_every_alertmanager_and_its_end_too(
    receiver: RecordedReceiver, notifier: Notifier
) -> None:
    other = RecordedReceiver()
    await other.start()
    notifier.use(Alerting(alertmanagers=(Receiver(url=receiver.url), Receiver(url=other.url + "/"))), [ILL])
    at_once(notifier, alert())
    await seen(lambda: receiver.alerts and other.alerts)
    assert {request.path for one in (receiver, other) for request in one.requests} == {"/api/v2/alerts"}
    (posted,) = receiver.alerts
    assert posted["startsAt"].endswith("Z")
    assert timedelta(minutes=3) < time_of(posted["endsAt"]) - datetime.now(UTC) < timedelta(minutes=5)
    at_once(notifier, alert(is_ended=True))
    await seen(lambda: len(receiver.alerts) == 2)
    assert time_of(receiver.alerts[1]["endsAt"]) <= datetime.now(UTC)
    await seen(lambda: [one.sends["delivered"] for one in notifier.facts()] == [2, 2])
    facts = notifier.facts()
    assert {one.waiting for one in facts} == {0}
    await other.stop()


async def test_what_prometheus_evaluates_is_not_sent(receiver: RecordedReceiver, notifier: Notifier) -> None:
    theirs, ours = condition(), condition(name="GpuWorse", evaluator="both")
    notifier.use(Alerting(alertmanagers=(Receiver(url=receiver.url),)), [theirs, ours])
    worse = Alert(name="GpuWorse", severity="page", labels=(), value=1, active_at_ns=0, fired_at_ns=0, fired_wall_ns=1)
    at_once(notifier, alert(), worse)
    await seen(lambda: receiver.alerts)
    assert [one["labels"]["alertname"] for one in receiver.alerts] == ["GpuWorse"]


async def test_an_alertmanager_that_was_away_hears_of_it_afterwards(
    receiver: RecordedReceiver, notifier: Notifier
) -> None:
    away = RecordedReceiver()
    await away.start()
    port = int(away.url.rpartition(":")[2])
    await away.stop()
    notifier.use(Alerting(alertmanagers=(Receiver(url=f"http://127.0.0.1:{port}"), Receiver(url=receiver.url))), [ILL])
    at_once(notifier, alert())
    await seen(lambda: receiver.alerts and notifier.facts()[0].sends["failed"])
    assert notifier.facts()[0].waiting == 1
    await away.start(port)
    await seen(lambda: away.alerts)
    assert notifier.facts()[0].waiting == 0
    await away.stop()


async def test_one_that_ended_while_nobody_listened_is_sent_as_ended(
    receiver: RecordedReceiver, notifier: Notifier
) -> None:
    receiver.answer = lambda _: (503, {})
    notifier.use(Alerting(alertmanagers=(Receiver(url=receiver.url),)), [ILL])
    at_once(notifier, alert())
    await seen(lambda: receiver.requests)
    at_once(notifier, alert(is_ended=True))
    receiver.answer = lambda _: (200, {})
    await seen(lambda: receiver.alerts)
    assert [time_of(one["endsAt"]) <= datetime.now(UTC) for one in receiver.alerts] == [True]


@pytest.mark.parametrize("ahead_min", [10, -10])
async def test_a_clock_that_is_wrong_by_minutes_is_corrected(
    receiver: RecordedReceiver, notifier: Notifier, ahead_min: int
) -> None:
    receiver.ahead = timedelta(minutes=ahead_min)
    notifier.use(Alerting(alertmanagers=(Receiver(url=receiver.url),)), [ILL])
    at_once(notifier, alert())
    await seen(lambda: receiver.alerts)
    theirs = datetime.now(UTC) + receiver.ahead
    (posted,) = receiver.alerts
    assert abs(time_of(posted["startsAt"]) - theirs) < timedelta(seconds=5)
    assert timedelta(minutes=3) < time_of(posted["endsAt"]) - theirs < timedelta(minutes=5)
    assert notifier.facts()[0].clock_offset_s == pytest.approx(ahead_min * 60, abs=2)


async def test_a_clock_that_steps_between_two_sends_is_noticed_and_the_alert_sent_again(
    receiver: RecordedReceiver, notifier: Notifier
) -> None:
    notifier.use(Alerting(alertmanagers=(Receiver(url=receiver.url),)), [ILL])
    at_once(notifier, alert())
    await seen(lambda: receiver.alerts)
    receiver.ahead = timedelta(minutes=10)
    at_once(notifier, alert("GPU-b"))
    await seen(lambda: len(receiver.alerts) >= 3)
    starts = [time_of(one["startsAt"]) for one in receiver.alerts if one["labels"]["uuid"] == "GPU-b"]
    assert starts[-1] - starts[0] == pytest.approx(timedelta(minutes=10), abs=timedelta(seconds=3))


async def test_one_bad_alert_is_found_and_left_out(
    receiver: RecordedReceiver, notifier: Notifier, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answer = lambda sent: (400 if any(one["labels"]["uuid"] == "GPU-b" for one in sent) else 200, {})
    receiver.body = "bad label"
    notifier.use(Alerting(alertmanagers=(Receiver(url=receiver.url),)), [ILL])
    at_once(notifier, alert(), alert("GPU-b"), alert("GPU-c"))
    await seen(lambda: notifier.facts()[0].waiting == 0)
    assert {one["labels"]["uuid"] for one in receiver.alerts} == {"GPU-a", "GPU-c"}
    assert notifier.facts()[0].sends["refused"] == 1
    asked = len(receiver.requests)
    at_once(notifier, alert(), alert("GPU-b"), alert("GPU-c"))
    assert len(receiver.requests) == asked
    assert "a receiver refuses an alert" in [record.getMessage() for record in caplog.records]


async def test_a_redirect_is_not_followed(receiver: RecordedReceiver, notifier: Notifier) -> None:
    other = RecordedReceiver()
    await other.start()
    receiver.answer = lambda _: (307, {"Location": other.url})
    notifier.use(Alerting(alertmanagers=(Receiver(url=receiver.url),)), [ILL])
    at_once(notifier, alert())
    await seen(lambda: notifier.facts()[0].sends["failed"])
    assert other.requests == []
    await other.stop()


async def test_an_answer_of_any_length_costs_little(receiver: RecordedReceiver, notifier: Notifier) -> None:
    receiver.body = "x" * 10_000_000
    notifier.use(Alerting(alertmanagers=(Receiver(url=receiver.url),)), [ILL])
    at_once(notifier, alert())
    await seen(lambda: notifier.facts()[0].sends["delivered"] == 1)


async def test_secrets_are_read_anew_for_every_request_and_never_logged(
    receiver: RecordedReceiver, notifier: Notifier, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token, password = tmp_path / "token", tmp_path / "password"
    token.write_text("tok-1\n", encoding="utf-8")
    password.write_text("pass-1\n", encoding="utf-8")
    named = BasicAuth(username="node", password_file=str(password))
    notifier.use(
        Alerting(
            alertmanagers=(Receiver(url=receiver.url, bearer_token_file=str(token)),),
            webhooks=(Receiver(url=receiver.url + "/hook", basic_auth=named),),
        ),
        [ILL],
    )
    at_once(notifier, alert())
    await seen(lambda: receiver.alerts and any(isinstance(post, dict) for post in receiver.posts))
    token.write_text("tok-2\n", encoding="utf-8")
    at_once(notifier, alert("GPU-b"))
    await seen(lambda: len(receiver.alerts) == 2)
    said = {request.headers["Authorization"] for request in receiver.requests}
    assert said == {"Bearer tok-1", "Bearer tok-2", "Basic bm9kZTpwYXNzLTE="}
    receiver.answer = lambda _: (401, {})
    at_once(notifier, alert("GPU-c"))
    await seen(lambda: notifier.facts()[0].sends["failed"])
    assert not any(secret in caplog.text for secret in ("tok-", "pass-1", "bm9kZ"))


async def test_a_secret_that_cannot_be_read_is_named_and_the_alert_waits(
    receiver: RecordedReceiver, notifier: Notifier, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = tmp_path / "token"
    notifier.use(Alerting(alertmanagers=(Receiver(url=receiver.url, bearer_token_file=str(token)),)), [ILL])
    at_once(notifier, alert())
    await seen(lambda: notifier.facts()[0].sends["failed"])
    assert str(token) in str([getattr(record, "fields", {}) for record in caplog.records])
    token.write_text("t", encoding="utf-8")
    await seen(lambda: receiver.alerts)


async def test_a_webhook_is_told_of_changes_only(receiver: RecordedReceiver, notifier: Notifier) -> None:
    notifier.use(Alerting(webhooks=(Receiver(url=receiver.url + "/hook"),)), [ILL])
    notifier.tell(Alerts(on=(alert("GPU-old"),)), (), CLOCK.monotonic_ns())
    at_once(notifier, alert())
    await seen(lambda: receiver.posts)
    at_once(notifier, alert(is_ended=True))
    await seen(lambda: len(receiver.posts) == 2)
    assert [post["status"] for post in receiver.posts] == ["firing", "resolved"]
    assert [one["labels"]["uuid"] for post in receiver.posts for one in post["alerts"]] == ["GPU-a", "GPU-a"]


async def test_a_reload_keeps_receivers_that_stay_and_tells_new_ones_what_fires(
    receiver: RecordedReceiver, notifier: Notifier
) -> None:
    other, first = RecordedReceiver(), Receiver(url=receiver.url)
    await other.start()
    notifier.use(Alerting(alertmanagers=(first,)), [ILL])
    at_once(notifier, alert())
    await seen(lambda: receiver.alerts)
    notifier.use(Alerting(alertmanagers=(first, Receiver(url=other.url))), [ILL])
    assert notifier.facts()[0].sends["delivered"] == 1
    at_once(notifier, alert())
    await seen(lambda: other.alerts)
    notifier.use(Alerting(), [ILL])
    assert notifier.facts() == ()
    await other.stop()


async def test_two_receivers_on_one_host_have_two_names(receiver: RecordedReceiver, notifier: Notifier) -> None:
    same = Receiver(url=receiver.url)
    notifier.use(Alerting(alertmanagers=(same,), webhooks=(same, Receiver(url=receiver.url + "/b"))), [ILL])
    name = receiver.url.removeprefix("http://")
    assert [one.receiver for one in notifier.facts()] == [name, f"{name}#2", f"{name}#3"]


async def test_the_local_link_is_never_asked(notifier: Notifier) -> None:
    notifier.use(Alerting(webhooks=(Receiver(url="http://169.254.169.254/latest"),)), [ILL])
    at_once(notifier, alert())
    await seen(lambda: notifier.facts()[0].sends["failed"])


@pytest.mark.parametrize(
    ("host", "is_local"),
    [("169.254.169.254", True), ("fe80::1%eth0", True), ("::ffff:169.254.1.1", True), ("10.0.0.1", False),
     ("::1", False), ("localhost", False)],
)  # fmt: skip
def test_addresses_of_the_local_link_are_known(host: str, is_local: bool) -> None:
    assert is_link_local(host) == is_local


async def test_a_name_that_does_not_exist_is_an_error_and_no_more() -> None:
    with pytest.raises(OSError, match=r"nowhere|Name|resolution|known"):
        await LaneResolver(ServerLane("dns")).resolve("nowhere.invalid", 80)


def test_sending_needs_no_pool_of_threads() -> None:
    async def send() -> None:
        one, notifier = RecordedReceiver(), Notifier(CLOCK)
        await one.start()
        localhost = one.url.replace("127.0.0.1", "localhost")
        notifier.use(Alerting(alertmanagers=(Receiver(url=localhost),)), [ILL])
        at_once(notifier, alert())
        await seen(lambda: one.alerts)
        await notifier.stop()
        await one.stop()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(send())


async def test_an_alert_that_the_site_gives_up_is_sent_as_ended(receiver: RecordedReceiver, notifier: Notifier) -> None:
    alerting = Alerting(alertmanagers=(Receiver(url=receiver.url),))
    notifier.use(alerting, [ILL])
    at_once(notifier, alert())
    await seen(lambda: receiver.alerts)
    notifier.use(alerting, [])
    at_once(notifier, alert(is_ended=True))
    await seen(lambda: len(receiver.alerts) == 2)
    assert time_of(receiver.alerts[1]["endsAt"]) <= datetime.now(UTC)
