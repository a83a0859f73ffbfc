# SPDX-License-Identifier: Apache-2.0
"""One number for a window of samples, as Prometheus 2.42 computes it: the same series must give the same alert.

Windows are closed at both ends. `rate` and `increase` see counter resets, and extrapolate to the ends of the window as
Prometheus' extrapolatedRate does: no further than 1.1 sample distances, and never to before the counter was zero.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

Statistic = Literal["last", "min", "max", "mean", "rate", "increase"]

EXTRAPOLATION_LIMIT: Final = 1.1
"""A window end further from its nearest sample than this many sample distances is not where the series goes on."""


class Run(NamedTuple):
    """The samples of a counter inside a window: where they begin and end, how many, what was counted between."""

    began_s: float
    ended_s: float
    samples: int
    first: float  # value of the first one
    increase: float  # from the first to the last, what was counted before a reset not lost


def summarise(statistic: Statistic, values: Sequence[float]) -> float | None:
    """`statistic`, one of min, max and mean, of the samples inside a window; None where there is none."""
    if not values:
        return None
    if statistic == "mean":
        return sum(values) / len(values)
    return min(values) if statistic == "min" else max(values)


def extrapolate(run: Run, window_s: tuple[float, float], *, per_second: bool) -> float | None:
    """Increase over a window (its start and end), or rate; None where there are fewer than two samples."""
    sampled_s = run.ended_s - run.began_s
    if sampled_s <= 0:
        return None
    to_start_s, to_end_s = run.began_s - window_s[0], window_s[1] - run.ended_s
    if run.increase > 0 and run.first >= 0:
        to_start_s = min(to_start_s, sampled_s * (run.first / run.increase))
    distance_s = sampled_s / (run.samples - 1)
    covered_s = sampled_s
    for gap_s in (to_start_s, to_end_s):
        covered_s += gap_s if gap_s < EXTRAPOLATION_LIMIT * distance_s else distance_s / 2
    factor = covered_s / sampled_s
    if per_second:  # in Prometheus' order of operations, for the last digit
        factor /= window_s[1] - window_s[0]
    return run.increase * factor
