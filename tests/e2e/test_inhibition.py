# SPDX-License-Identifier: Apache-2.0
"""rules/alertmanager-inhibit.yml on a real Alertmanager: a lost GPU silences alerts of its own node, and no other."""

import json
import shutil
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from running import Starter, answers, fetch, free_port, poll

ALERTMANAGER = shutil.which("prometheus-alertmanager")
INHIBIT = Path(__file__).parents[2] / "rules" / "alertmanager-inhibit.yml"


def alert(name: str, instance: str, **labels: str) -> dict[str, Any]:
    ends = datetime.now(UTC) + timedelta(minutes=10)
    return {"labels": {"alertname": name, "instance": instance, **labels}, "endsAt": ends.isoformat()}


@pytest.mark.slow
def test_one_node_s_lost_gpu_silences_nothing_of_another_node(starter: Starter, tmp_path: Path) -> None:
    if ALERTMANAGER is None:
        pytest.skip("Alertmanager is not installed (Debian: apt-get install prometheus-alertmanager)")
    head = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"
    (tmp_path / "am.yml").write_text(head + INHIBIT.read_text(encoding="utf-8"), encoding="utf-8")
    port = free_port()
    process = starter.start(
        ALERTMANAGER, f"--config.file={tmp_path / 'am.yml'}", f"--storage.path={tmp_path / 'am'}",
        f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=",
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    poll(lambda: answers(url + "/-/ready"), 20, f"a ready Alertmanager:\n{process.text()}")
    alerts = [
        alert("GpuLost", "n1", uuid="GPU-1"),
        alert("NvlinkDown", "n1", uuid="GPU-1"),
        alert("GpuHeldIdle", "n1", uuid="GPU-3"),
        alert("RemapFailure", "n1", uuid="GPU-1"),
        alert("NvlinkDown", "n1", uuid="GPU-2"),
        alert("NvlinkDown", "n2", uuid="GPU-1"),
        alert("GpuHeldIdle", "n2", uuid="GPU-3"),
        alert("NodeUnderMaintenance", "n3"),
        alert("IbPortDown", "n3", device="mlx5_0", port="1"),
    ]
    request = urllib.request.Request(  # loopback
        url + "/api/v2/alerts", json.dumps(alerts).encode(), {"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=10).close()

    def inhibited() -> set[tuple[str, str, str]]:
        known = json.loads(fetch(url + "/api/v2/alerts"))
        return {
            (one["labels"]["alertname"], one["labels"]["instance"], one["labels"].get("uuid", ""))
            for one in known
            if one["status"]["inhibitedBy"]
        }

    expected = {("NvlinkDown", "n1", "GPU-1"), ("GpuHeldIdle", "n1", "GPU-3"), ("IbPortDown", "n3", "")}
    poll(lambda: len(inhibited()) >= len(expected), 10, f"{len(expected)} alerts to be inhibited")
    assert inhibited() == expected
