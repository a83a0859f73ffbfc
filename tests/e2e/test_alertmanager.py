# SPDX-License-Identifier: Apache-2.0
"""A real Alertmanager: the daemon alone tells it, over restarts of either, and somebody is told once of each change."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from running import Process, Starter, answers, fetch, free_port, poll

ALERTMANAGER = shutil.which("prometheus-alertmanager")

SITE = """
paths: {{state: {state}}}
alerting:
  alertmanagers: [{{url: "http://127.0.0.1:{port}"}}]
  labels: {{job: gpufeed, instance: "node1:9937"}}
  thresholds: {{GpuLost: {{threshold: -1, for: 0s}}}}
"""
"""Of this site every GPU counts as lost: a simulated one that is, would be back after a restart of its node."""


@pytest.fixture
def alertmanager(starter: Starter, tmp_path: Path, told: tuple[str, list[dict[str, Any]]]) -> Callable[[int], Process]:
    """Start Alertmanager on a port, over the state of the one before; skip where it is not installed."""
    if ALERTMANAGER is None:
        pytest.skip("Alertmanager is not installed (Debian: apt-get install prometheus-alertmanager)")
    config = {
        "route": {"receiver": "hook", "group_wait": "0s", "group_interval": "1s", "group_by": ["..."]},
        "receivers": [{"name": "hook", "webhook_configs": [{"url": told[0], "send_resolved": True}]}],
    }
    (tmp_path / "am.yml").write_text(json.dumps(config), encoding="utf-8")

    def start(port: int) -> Process:
        process = starter.start(
            str(ALERTMANAGER),
            f"--config.file={tmp_path / 'am.yml'}",
            f"--storage.path={tmp_path / 'am'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        )
        process.url = f"http://127.0.0.1:{port}"
        poll(lambda: answers(process.url + "/-/ready"), 20, f"a ready Alertmanager:\n{process.text()}")
        return process

    return start


def known(process: Process) -> list[dict[str, Any]]:
    alerts: list[dict[str, Any]] = json.loads(fetch(process.url + "/api/v2/alerts"))
    return alerts


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_lost_gpu_is_told_once_over_restarts_of_both_and_its_end_once(
    starter: Starter,
    alertmanager: Callable[[int], Process],
    told: tuple[str, list[dict[str, Any]]],
    tmp_path: Path,
) -> None:
    port, heard = free_port(), told[1]
    (tmp_path / "state").mkdir()
    site = tmp_path / "site.yml"
    site.write_text(SITE.format(state=tmp_path / "state", port=port), encoding="utf-8")
    flags = (f"--config.file={site}", "--gpus", "1")

    daemon = starter.gpufeed("demo", *flags)
    poll(lambda: daemon.value("gpufeed_alert_queue_length"), 60, "an alert that waits: nobody listens yet")
    receiver = alertmanager(port)
    poll(lambda: heard, 60, "the alert, once there is an Alertmanager")
    assert (heard[0]["status"], heard[0]["labels"]["alertname"]) == ("firing", "GpuLost")
    assert heard[0]["labels"]["instance"] == "node1:9937"
    poll(lambda: daemon.value("gpufeed_alert_queue_length") == 0, 10, "nothing that waits")
    starts_at = known(receiver)[0]["startsAt"]

    assert daemon.stop() == 0
    again = starter.gpufeed("demo", *flags)
    poll(lambda: again.value("gpufeed_alert_sends_total", outcome="delivered"), 60, "what fires is sent again")
    assert [(one["startsAt"], one["status"]["state"]) for one in known(receiver)] == [(starts_at, "active")]

    ill = known(receiver)[0]["labels"]["uuid"]
    site.write_text(
        site.read_text(encoding="utf-8").replace("{threshold: -1, for: 0s}", "{enabled: false}"), encoding="utf-8"
    )
    again.popen.send_signal(1)
    poll(lambda: not known(receiver), 30, "no alert in Alertmanager once the site has switched it off")
    poll(lambda: len(heard) == 2, 30, "the end of the alert")
    assert [(one["status"], one["labels"]["uuid"]) for one in heard] == [("firing", ill), ("resolved", ill)]
    assert again.stop() == 0
