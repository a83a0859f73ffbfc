# SPDX-License-Identifier: Apache-2.0
"""A history for tests of alerts: rings fed one moment at a time, and the evaluator run at each."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpufeed.alerting.define import Condition, Matcher, Select
from gpufeed.alerting.evaluator import Alert, Alerts, Transition, evaluate
from gpufeed.history.rings import Rings, SeriesKey
from gpufeed.model.frame import FrameTime
from gpufeed.units import NS_PER_S

START_S = 10_000
WALL_S = 1_700_000_000


def key(metric: str, **labels: str) -> SeriesKey:
    return (metric, tuple(labels.items()))


LOST = key("gpufeed_gpu_health", gpu="3", uuid="GPU-a", check="lost")
IN_USE = key("gpufeed_gpu_in_use_recently", gpu="3", uuid="GPU-a")


def condition(**changes: object) -> Condition:
    """A condition on a gauge, changed as a test needs it."""
    of: dict[str, object] = {
        "name": "GpuIll",
        "series": Select(metric="gpufeed_gpu_health", matchers=(Matcher("check", "=", "lost"),)),
        "threshold": 1,
        "severity": "page",
        "layer": "gpu",
        "action": "drain",
        "summary": "GPU {gpu} is ill",
        "description": "GPU {gpu} ({uuid}) is ill.",
    }
    return Condition(**(of | changes))  # type: ignore[arg-type]  # the tests say what


def time_at(at_s: float) -> FrameTime:
    at_ns = round((START_S + at_s) * NS_PER_S)
    return FrameTime(monotonic_ns=at_ns, boottime_ns=at_ns, wall_ns=at_ns + (WALL_S - START_S) * NS_PER_S)


@dataclass
class Story:
    """Moments in turn: what the series are, and what comes of it."""

    conditions: tuple[Condition, ...]
    alerts: Alerts = field(default_factory=Alerts)
    history: Rings = field(default_factory=Rings)
    transitions: list[Transition] = field(default_factory=list)

    def at(self, at_s: float, rows: Mapping[SeriesKey, float]) -> tuple[Alert, ...]:
        """The alerts that are on after these series were seen at `at_s`."""
        time = time_at(at_s)
        self.history.append(time.monotonic_ns, rows.items())
        self.alerts, changed = evaluate(self.alerts, self.conditions, time, self.history)
        self.transitions += changed
        return self.alerts.on

    @property
    def changes(self) -> list[str]:
        """What happened, in words."""
        return [transition.to for transition in self.transitions]
