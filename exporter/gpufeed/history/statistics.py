# SPDX-License-Identifier: Apache-2.0
"""One number for a window of samples, as Prometheus 2.42 computes it: the same series must give the same alert.

Windows are closed at both ends. `rate` and `increase` see counter resets, and extrapolate to the ends of the window as
Prometheus' extrapolatedRate does: no further than 1.1 sample distances, and never to before the counter was zero.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Literal

Statistic = Literal["last", "min", "max", "mean", "rate", "increase"]

EXTRAPOLATION_LIMIT: Final = 1.1
"""A window end further from its nearest sample than this many sample distances is not where the series goes on."""


def summarise(
    statistic: Literal["min", "max", "mean", "rate", "increase"],
    times_s: Sequence[float],
    values: Sequence[float],
    window_s: tuple[float, float],
) -> float | None:
    """`statistic` of the samples at `times_s`, all inside `window_s` (its start and end); None: too few samples."""
    if not values:
        return None
    if statistic == "min":
        return min(values)
    if statistic == "max":
        return max(values)
    if statistic == "mean":
        return sum(values) / len(values)
    return _increase(times_s, values, window_s, per_second=statistic == "rate")


def _increase(
    times_s: Sequence[float], values: Sequence[float], window_s: tuple[float, float], *, per_second: bool
) -> float | None:
    sampled_s = times_s[-1] - times_s[0]
    if sampled_s <= 0:
        return None
    increase = values[-1] - values[0]
    for earlier, later in pairwise(values):
        if later < earlier:  # a reset: what was counted before it is not lost
            increase += earlier
    to_start_s, to_end_s = times_s[0] - window_s[0], window_s[1] - times_s[-1]
    if increase > 0 and values[0] >= 0:
        to_start_s = min(to_start_s, sampled_s * (values[0] / increase))
    distance_s = sampled_s / (len(values) - 1)
    covered_s = sampled_s
    for gap_s in (to_start_s, to_end_s):
        covered_s += gap_s if gap_s < EXTRAPOLATION_LIMIT * distance_s else distance_s / 2
    factor = covered_s / sampled_s
    if per_second:  # in Prometheus' order of operations, for the last digit
        factor /= window_s[1] - window_s[0]
    return increase * factor
