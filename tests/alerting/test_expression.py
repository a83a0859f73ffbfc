# SPDX-License-Identifier: Apache-2.0
"""Conditions as PromQL: texts written by hand here, and the parser's word that they are PromQL."""

import promql_parser
import pytest

from alerting.histories import condition
from gpufeed.alerting.conditions import CONDITIONS
from gpufeed.alerting.define import Matcher, Ratio, Select
from gpufeed.alerting.expression import duration, expression, selector

GONE = ("gpu", "uuid", "gpu_instance", "compute_instance", "state", "cause")


def test_a_threshold_on_the_last_value() -> None:
    assert expression(condition(), used=None) == 'gpufeed_gpu_health{check="lost"} > 1'


def test_in_use_decides_between_two_rules() -> None:
    gated = condition(in_use="gpu", severity_idle="ticket")
    assert expression(gated, used=True).endswith("\nand on (instance, uuid) gpufeed_gpu_in_use_recently == 1")
    assert expression(gated, used=False).endswith("\nunless on (instance, uuid) gpufeed_gpu_in_use_recently == 1")
    hosted = condition(in_use="host", severity_idle="ticket")
    assert expression(hosted, used=True).endswith("\nand on (instance) gpufeed_host_in_use_recently == 1")


@pytest.mark.parametrize(("comparison", "worst"), [(">", "max"), (">=", "max"), ("<", "min"), ("<=", "min")])
def test_the_worst_of_what_is_aggregated_away_decides(comparison: str, worst: str) -> None:
    one = condition(
        series=Select(metric="gpufeed_sample_age_seconds", without=("collector",)),
        statistic="mean",
        window_s=300,
        comparison=comparison,
        summary="x",
        description="y.",
    )
    assert expression(one, used=None) == (
        f"{worst} without (collector) (avg_over_time(gpufeed_sample_age_seconds[5m])) {comparison} 1"
    )


def test_a_ratio_over_two_windows() -> None:
    seconds = Select(metric="gpufeed_gpu_state_seconds_total", without=GONE)
    one = condition(
        series=Ratio(numerator=seconds, denominator=seconds),
        statistic="increase",
        window_s=3600,
        short_window_s=300,
        threshold=0.25,
        summary="x",
        description="y.",
    )
    total = "sum without (gpu, uuid, gpu_instance, compute_instance, state, cause) (increase(gpufeed_gpu_state_seconds"
    assert (
        expression(one, used=None).split()
        == (
            f"( {total}_total[1h])) / {total}_total[1h])) ) > 0.25 and "
            f"( {total}_total[5m])) / {total}_total[5m])) ) > 0.25"
        ).split()
    )


def test_values_are_quoted() -> None:
    assert selector("x", (Matcher("a", "=~", 'b\\d"\n'),)) == 'x{a=~"b\\\\d\\"\\n"}'


@pytest.mark.parametrize(("length_s", "text"), [(0, "0s"), (90, "90s"), (120, "2m"), (5400, "90m"), (86400, "1d")])
def test_durations_are_written_in_their_largest_whole_unit(length_s: int, text: str) -> None:
    assert duration(length_s) == text


@pytest.mark.parametrize("one", CONDITIONS, ids=lambda one: one.name)
def test_every_condition_is_promql(one: object) -> None:
    assert isinstance(one, type(CONDITIONS[0]))
    for _, used in one.severities():
        assert promql_parser.parse(expression(one, used=used))
