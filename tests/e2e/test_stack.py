# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus over real daemons: it scrapes them, evaluates the shipped rules, and every panel finds its data."""

import json
import string
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpufeed.palette import CAUSE_COLOURS
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


QUIET = {
    # what no simulated node does: an answer without a series is right, because the expression asks for trouble only
    ("fabric", "Port errors", "A"): "no simulated port has errors",
    ("fabric", "Transport events", "A"): "no simulated port has events",
    ("fabric", "NVLink errors", "A"): "no simulated link has errors",
    ("fabric", "Checks that are not ok", "A"): "no simulated port is ill here",
    ("gpufeed itself", "Read errors", "A"): "every simulated read goes well here",
    ("gpufeed itself", "Alerts sent", "A"): "no receiver is configured",
    ("gpufeed itself", "Series", "B"): "nothing has to be shed",
}


def expressions() -> dict[tuple[str, str, str], str]:
    """Every query of every panel, with All chosen everywhere, by dashboard, panel and query."""
    found = {}
    for path in sorted((ROOT / "grafana/dashboards").glob("*.json")):
        dashboard = json.loads(path.read_text(encoding="utf-8"))
        values = {one["name"]: one["allValue"] for one in dashboard["templating"]["list"] if "allValue" in one}
        values["__rate_interval"] = "8s"
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                name = dashboard["title"].removeprefix("gpufeed / ")
                text = string.Template(target["expr"]).substitute(values)
                found[name.lower() if name != "gpufeed itself" else name, panel["title"], target["refId"]] = text
    return found


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
    state = missing["node", "State of each GPU", "A"]
    assert set(missing) >= set(QUIET)

    def all_draw() -> bool:
        for key, expression in list(missing.items()):
            if server.query(expression):
                del missing[key]
        return all(key in QUIET for key in missing)

    try:
        poll(all_draw, 40, "data for every panel")
    except pytest.fail.Exception:
        told = [f"{key}: {text}" for key, text in missing.items() if key not in QUIET]
        pytest.fail("no data for:\n" + "\n".join(told))
    assert server.query('gpufeed_build_info{job="here", simulated="false"}')
    assert server.query('gpufeed_build_info{job="lost", simulated="true"}')
    expected = {("starved", "starved storage"), ("hot", "throttled"), ("lost", "fault"), ("lost", "busy tensor")}

    def states_drawn() -> set[tuple[str, str]]:
        """What most of the time goes to, by the name that the panel shows."""
        names = list(CAUSE_COLOURS)
        return {(one["metric"]["job"], names[int(one["value"][1]) - 1]) for one in server.query(state)}

    poll(lambda: states_drawn() >= expected, 40, "every node in the state that its scenario is about")
