# SPDX-License-Identifier: Apache-2.0
"""What worked examples are written with. Samples and evaluations are a minute apart."""

from typing import Final

from gpufeed.alerting.define import Example, ExampleSeries, Severity

MINUTE_S: Final = 60
HOUR_S: Final = 3600

GPU: Final = {"gpu": "3", "uuid": "GPU-5a"}
"""The GPU that examples are about."""
PORT: Final = {"device": "mlx5_2", "port": "1"}
"""The fabric port that examples are about."""
NFS: Final = {"kind": "nfs", "target": "/data"}
"""The storage that examples are about."""


def series(metric: str, values: str, **labels: str) -> ExampleSeries:
    """A series of ours; `metric` without the prefix."""
    return ExampleSeries(metric=f"gpufeed_{metric}", values=values, labels=tuple(labels.items()))


def gpu_check(check: str, values: str) -> ExampleSeries:
    """The verdict of one check on the GPU."""
    return series("gpu_health", values, **GPU, check=check)


def gpu_in_use(values: str) -> ExampleSeries:
    """Whether somebody lately used the GPU."""
    return series("gpu_in_use_recently", values, **GPU)


def host_in_use(values: str) -> ExampleSeries:
    """Whether somebody lately used any GPU of the node."""
    return series("host_in_use_recently", values)


def fires(says: str, severity: Severity, *given: ExampleSeries, at_s: int) -> Example:
    """At `at_s` there is one alert, of this severity."""
    return Example(says=says, outcome="fires", severity=severity, series=given, at_s=at_s)


def silent(says: str, *given: ExampleSeries, at_s: int) -> Example:
    """At `at_s` there is no alert."""
    return Example(says=says, outcome="silent", series=given, at_s=at_s)


def planned(says: str, *given: ExampleSeries, at_s: int, severity: Severity | None = None) -> Example:
    """What people do on purpose: at `at_s` there is no alert, or one that wakes nobody."""
    return Example(says=says, outcome="planned", severity=severity, series=given, at_s=at_s)
