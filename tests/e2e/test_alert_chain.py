# SPDX-License-Identifier: Apache-2.0
"""The whole chain: daemon and Prometheus as owners of different alerts, and two Alertmanagers that know each other."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from running import Process, Prometheus, Starter, answers, fetch, free_port, poll

ALERTMANAGER = shutil.which("prometheus-alertmanager")
HELD_UP_S = 60
Heard = list[dict[str, Any]]


class Alertmanagers:
    """A pair over one storage folder each, which tell one another what they have notified."""

    def __init__(self, starter: Starter, folder: Path, webhook: str) -> None:
        if ALERTMANAGER is None:
            pytest.skip("Alertmanager is not installed (Debian: apt-get install prometheus-alertmanager)")
        config = {
            "route": {"receiver": "hook", "group_wait": "0s", "group_interval": "1s", "group_by": ["..."]},
            "receivers": [{"name": "hook", "webhook_configs": [{"url": webhook, "send_resolved": True}]}],
        }
        (folder / "am.yml").write_text(json.dumps(config), encoding="utf-8")
        self._starter, self._folder = starter, folder
        self.ports = (free_port(), free_port())
        self._gossip = (free_port(), free_port())
        self.running: list[Process] = []

    @property
    def addresses(self) -> list[str]:
        return [f"127.0.0.1:{port}" for port in self.ports]

    def start(self) -> None:
        for number, port in enumerate(self.ports):
            process = self._starter.start(
                str(ALERTMANAGER), f"--config.file={self._folder / 'am.yml'}",
                f"--storage.path={self._folder / f'am{number}'}", f"--web.listen-address=127.0.0.1:{port}",
                f"--cluster.listen-address=127.0.0.1:{self._gossip[number]}",
                f"--cluster.peer=127.0.0.1:{self._gossip[1 - number]}", "--cluster.peer-timeout=3s",
                "--cluster.settle-timeout=5s", "--cluster.gossip-interval=50ms",
            )  # fmt: skip
            process.url = f"http://127.0.0.1:{port}"
            self.running.append(process)
        for process in self.running:
            poll(lambda process=process: answers(process.url + "/-/ready"), 60, "a ready Alertmanager")  # type: ignore[misc]

    def stop(self) -> None:
        for process in self.running:
            process.popen.terminate()
            process.popen.wait(20)
        self.running.clear()

    def known(self) -> list[set[str]]:
        """Names of the alerts that each of them has."""
        return [
            {one["labels"]["alertname"] for one in json.loads(fetch(process.url + "/api/v2/alerts"))}
            for process in self.running
        ]


@pytest.fixture
def pair(starter: Starter, tmp_path: Path, told: tuple[str, Heard]) -> Alertmanagers:
    return Alertmanagers(starter, tmp_path, told[0])


def site(pair: Alertmanagers, state: Path, target: str, **on: str) -> str:
    """A site at which these alerts hold as long as they stand here: every verdict is above -1."""
    thresholds = {name: {"threshold": -1, "for": for_} for name, for_ in on.items()}
    return json.dumps(
        {
            "paths": {"state": str(state)},
            "alerting": {
                "alertmanagers": [{"url": f"http://{address}"} for address in pair.addresses],
                "labels": {"job": "gpufeed", "instance": target},
                "thresholds": thresholds,
            },
        }
    )


def told_of(heard: Heard, name: str) -> list[str]:
    return [one["status"] for one in heard if one["labels"]["alertname"] == name]


def rules(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gpufeed", "rules", "--config.file", path], check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_each_owner_s_alert_is_told_once_and_events_need_no_prometheus(
    starter: Starter,
    prometheus: Callable[..., Prometheus],
    pair: Alertmanagers,
    told: tuple[str, Heard],
    tmp_path: Path,
) -> None:
    heard, port = told[1], free_port()
    target, path, state = f"127.0.0.1:{port}", tmp_path / "site.yml", tmp_path / "state"
    state.mkdir()
    path.write_text(site(pair, state, target, XidGpuUnusable="0s", GpuDriverError="0s"), encoding="utf-8")
    pair.start()
    daemon = starter.gpufeed("demo", f"--config.file={path}", "--gpus", "1", port=port)
    started = time.monotonic()
    poll(lambda: told_of(heard, "XidGpuUnusable"), 15, "the node's own alert, within five times three seconds")
    assert time.monotonic() - started < 15 + 1
    evaluating = prometheus({"gpufeed": target}, rules(path), pair.addresses)
    poll(lambda: told_of(heard, "GpuDriverError"), 60, "the alert that is Prometheus'")
    poll(lambda: all({"XidGpuUnusable", "GpuDriverError"} <= names for names in pair.known()), 30, "both at both")

    evaluating.process.popen.kill()
    evaluating.process.popen.wait(10)
    on = {"XidGpuUnusable": "0s", "GpuLost": "0s"}
    path.write_text(site(pair, state, target, **on), encoding="utf-8")
    daemon.popen.send_signal(1)
    poll(lambda: told_of(heard, "GpuLost"), 15, "an event, with Prometheus dead")

    assert daemon.stop() == 0
    again = starter.gpufeed("demo", f"--config.file={path}", "--gpus", "1", port=port)
    poll(lambda: len(again.values("gpufeed_alert_sends_total", outcome="delivered")) == 2, 30, "sends after a restart")
    path.write_text(site(pair, state, target), encoding="utf-8")
    again.popen.send_signal(1)
    poll(lambda: len(told_of(heard, "GpuLost")) == 2, 60, "the end of the event")
    poll(lambda: len(told_of(heard, "XidGpuUnusable")) == 2, 60, "the end of the node's own alert")
    for name in ("GpuLost", "XidGpuUnusable"):
        assert told_of(heard, name) == ["firing", "resolved"]
    assert told_of(heard, "GpuDriverError") == ["firing"]
    assert again.stop() == 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_fires_and_ends_while_no_alertmanager_is_there_is_told_afterwards_and_memory_stays(
    starter: Starter, pair: Alertmanagers, told: tuple[str, Heard], tmp_path: Path
) -> None:
    heard, path, state = told[1], tmp_path / "site.yml", tmp_path / "state"
    state.mkdir()
    pair.start()
    path.write_text(site(pair, state, "node1:9937", XidGpuUnusable="0s"), encoding="utf-8")
    daemon = starter.gpufeed("demo", f"--config.file={path}", "--gpus", "1")
    poll(lambda: told_of(heard, "XidGpuUnusable"), 30, "an alert")
    pair.stop()
    before = resident(daemon)
    path.write_text(site(pair, state, "node1:9937", GpuLost="0s"), encoding="utf-8")
    daemon.popen.send_signal(1)
    poll(lambda: daemon.value("gpufeed_alert_queue_length"), 30, "alerts that wait")
    time.sleep(HELD_UP_S)
    assert resident(daemon) - before < 20_000_000
    pair.start()
    poll(lambda: told_of(heard, "GpuLost") == ["firing"], 90, "the alert that began meanwhile")
    poll(lambda: told_of(heard, "XidGpuUnusable") == ["firing", "resolved"], 90, "the end that came meanwhile")
    poll(lambda: not daemon.value("gpufeed_alert_queue_length"), 30, "nothing that waits")
    assert sum(daemon.values("gpufeed_alert_notifications_dropped_total").values()) == 0
    assert daemon.stop() == 0


def resident(process: Process) -> int:
    pages = Path(f"/proc/{process.popen.pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
