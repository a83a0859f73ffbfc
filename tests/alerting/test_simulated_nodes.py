# SPDX-License-Identifier: Apache-2.0
"""Alerts of simulated nodes: a well node is silent for days, and of a fault its alert is heard and little else.

How long the well nodes are watched stands in GPUFEED_HEALTHY_MINUTES: `make healthy` takes seven days.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufeed.alerting import site
from gpufeed.alerting.evaluator import Alert
from gpufeed.clock import read_frame_time
from gpufeed.config.alerting import Alerting
from gpufeed.daemon.recent import Recent
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.probe.inline import InlineProbe
from gpufeed.signals.settings import Settings
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.step import initial, step
from gpufeed.units import NS_PER_S
from rules.test_inhibition import heard

STEP_NS = 2 * NS_PER_S
WATCHED_MINUTES = float(os.environ.get("GPUFEED_HEALTHY_MINUTES", "15"))


def fired(scenario: str, root: Path, minutes: float) -> Iterator[Alert]:
    """Every alert that began to fire on a node of two GPUs, whoever would evaluate it; windows of hours left out."""
    clock = SteppedClock()
    recent = Recent(site.conditions(Alerting()), ServerFacts)
    with SteppedNode(scenario, gpus=2, root=root, clock=clock) as simulated:
        probe = InlineProbe(simulated.config(), BUILTIN, clock, simulated.is_blocked)
        node = initial(Settings(), read_frame_time(clock))
        for _ in range(round(minutes * 60 * NS_PER_S / STEP_NS)):
            node = step(node, probe.tick())
            yield from (one.alert for one in recent.on_state(node.state) if one.to == "firing")
            simulated.advance(STEP_NS)


@pytest.mark.slow
@pytest.mark.timeout(0 if WATCHED_MINUTES > 60 else 240)
@pytest.mark.parametrize("scenario", ["healthy", "idle_free"])
def test_a_node_that_is_well_is_silent(scenario: str, tmp_path: Path) -> None:
    """But for notes: error counters of its ports have stood at their end since before it was watched."""
    begun = tuple(fired(scenario, tmp_path, WATCHED_MINUTES))
    assert [one.name for one in begun if one.severity != "info"] == []
    assert {one.name for one in begun} <= {"IbCounterSaturated"}


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("scenario", "minutes", "name"),
    [
        ("gpu_lost", 8, "GpuLost"),
        ("gpu_xid", 8, "XidGpuUnusable"),
        ("driver_hang", 8, "NvmlHang"),
        ("thermal_throttle", 20, "GpuHwThermalSlowdown"),
    ],
)
def test_of_a_fault_its_alert_is_heard_and_at_most_one_other(
    scenario: str, minutes: float, name: str, tmp_path: Path
) -> None:
    alerts = [
        {"alertname": one.name, "instance": "n1", **dict(one.labels)} for one in fired(scenario, tmp_path, minutes)
    ]
    of_one_gpu = {one.get("uuid") for one in alerts if one["alertname"] == name}
    told = [one for one in alerts if one.get("uuid") in {None, *sorted(of_one_gpu, key=str)[:1]}]
    left = heard(told)
    assert name in left
    assert len(left) <= 2, left
