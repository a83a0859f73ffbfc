# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus over real daemons: it scrapes them, evaluates the shipped rules, and every panel finds its data."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from running import Prometheus, Starter, poll

ROOT = Path(__file__).parents[2]
AT_ONCE = """
alerting:
  thresholds:
    GpuLost: {for: 0s}
"""
"""The shipped rule waits a minute before it pages; the site here does not."""


def rules(config: Path) -> str:
    command = [sys.executable, "-m", "gpufeed", "rules", f"--config.file={config}"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout


def expressions() -> list[str]:
    dashboard = json.loads((ROOT / "grafana/dashboards/node.json").read_text(encoding="utf-8"))
    targets = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    for variable in ("$job", "$instance", "$gpu"):
        targets = [target.replace(variable, ".+") for target in targets]
    return [target.replace("$__rate_interval", "8s") for target in targets]


@pytest.mark.timeout(150)
def test_prometheus_scrapes_alerts_and_draws(
    starter: Starter, prometheus: Callable[[dict[str, str], str], Prometheus], tmp_path: Path
) -> None:
    site = tmp_path / "site.yml"
    site.write_text(AT_ONCE, encoding="utf-8")
    daemons = {
        "here": starter.gpufeed("run"),
        "starved": starter.gpufeed("demo", "--scenario", "storage_starved", "--gpus", "2"),
        "hot": starter.gpufeed("demo", "--scenario", "thermal_throttle", "--gpus", "2"),
        "lost": starter.gpufeed("demo", "--scenario", "gpu_lost", "--gpus", "2"),
        "faulty": starter.gpufeed("demo", "--scenario", "gpu_xid", "--gpus", "2"),
    }
    server = prometheus({job: daemon.url.removeprefix("http://") for job, daemon in daemons.items()}, rules(site))
    poll(lambda: len(server.query("up == 1")) == len(daemons), 30, "every target up")
    poll(lambda: {"GpuLost", "XidGpuUnusable"} <= server.firing(), 90, "the alerts of a lost and of a faulty GPU")

    missing = expressions()
    assert missing

    def all_draw() -> bool:
        missing[:] = [expression for expression in missing if not server.query(expression)]
        return not missing

    deadline_text = "data for every panel"
    try:
        poll(all_draw, 40, deadline_text)
    except pytest.fail.Exception:
        pytest.fail("no data for:\n" + "\n".join(missing))
    assert server.query('gpufeed_build_info{job="here", simulated="false"}')
    assert server.query('gpufeed_build_info{job="lost", simulated="true"}')
