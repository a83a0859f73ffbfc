# SPDX-License-Identifier: Apache-2.0
"""What a condition says of the history."""

from collections.abc import Mapping
from math import inf, isnan

import pytest

from alerting.histories import IN_USE, LOST, condition, key, time_at
from gpufeed.alerting.conditions import CONDITIONS
from gpufeed.alerting.define import Condition, Matcher, Ratio, Select
from gpufeed.alerting.measure import Measurement, measure, wanted
from gpufeed.history.rings import Rings, SeriesKey

GONE = ("gpu", "uuid", "gpu_instance", "compute_instance", "state", "cause")
AGES = Select(metric="gpufeed_sample_age_seconds", without=("collector",))


def seconds(*matchers: Matcher) -> Select:
    return Select(metric="gpufeed_gpu_state_seconds_total", matchers=matchers, without=GONE)


def spent(state: str) -> SeriesKey:
    return key("gpufeed_gpu_state_seconds_total", gpu="0", uuid="GPU-a", state=state, cause="")


def measured(of: Condition, *moments: Mapping[SeriesKey, float], step_s: int = 60) -> list[Measurement]:
    history = Rings()
    for number, rows in enumerate(moments):
        history.append(time_at(number * step_s).monotonic_ns, rows.items())
    return list(measure(of, history))


def test_every_thing_with_a_value_is_measured_whether_it_holds_or_not() -> None:
    other = key("gpufeed_gpu_health", gpu="4", uuid="GPU-b", check="lost")
    unasked = key("gpufeed_gpu_health", gpu="4", uuid="GPU-b", check="xid")
    found = measured(condition(), {LOST: 2, other: 0, unasked: 2})
    assert {(dict(one.labels)["uuid"], one.value, one.holds) for one in found} == {
        ("GPU-a", 2, True),
        ("GPU-b", 0, False),
    }


def test_a_series_without_enough_samples_is_not_measured() -> None:
    assert measured(condition(), {LOST: 2}, {}) == []


@pytest.mark.parametrize(
    ("comparison", "value", "holds"),
    [(">", 90, True), (">=", 90, True), ("<", 1, False), ("<=", 1, True)],
)
def test_of_what_is_aggregated_away_the_worst_counts(comparison: str, value: float, holds: bool) -> None:
    threshold = 1 if comparison.startswith("<") else 60
    one = condition(series=AGES, threshold=threshold, comparison=comparison, summary="x", description="y.")
    rows = {key(AGES.metric, collector=name): age for name, age in (("nvml", 1.0), ("nfs", 90.0))}
    assert measured(one, rows) == [Measurement(labels=(), value=value, holds=holds)]


def share(**changes: object) -> Condition:
    ratio = Ratio(numerator=seconds(Matcher("state", "=", "starved")), denominator=seconds())
    of = {"series": ratio, "statistic": "rate", "window_s": 120, "threshold": 0.25, "summary": "x", "description": "y."}
    return condition(**(of | changes))


def test_a_ratio_is_of_sums() -> None:
    moments = [{spent("starved"): 30.0 * n, spent("busy"): 30.0 * n} for n in range(3)]
    assert measured(share(), *moments) == [Measurement(labels=(), value=0.5, holds=True)]


def test_nothing_over_nothing_holds_never() -> None:
    (one,) = measured(share(), *[{spent("starved"): 1.0, spent("busy"): 1.0}] * 3)
    assert isnan(one.value)
    assert not one.holds


def test_something_over_nothing_is_infinite() -> None:
    backwards = Ratio(numerator=seconds(), denominator=seconds(Matcher("state", "=", "starved")))
    moments = [{spent("starved"): 1.0, spent("busy"): 30.0 * n} for n in range(3)]
    (one,) = measured(share(series=backwards), *moments)
    assert one.value == inf


def test_a_ratio_needs_both_sums() -> None:
    assert measured(share(), *[{spent("busy"): 30.0 * n} for n in range(3)]) == []


def test_both_windows_must_hold() -> None:
    both = share(short_window_s=60)
    waiting = [{spent("starved"): 60.0 * n, spent("busy"): 0.0} for n in range(3)]
    over = [*waiting[:2], {spent("starved"): 60.0, spent("busy"): 60.0}]
    assert [one.holds for one in measured(both, *waiting)] == [True]
    assert [one.holds for one in measured(both, *over)] == [False]
    assert [one.holds for one in measured(share(), *over)] == [True]


@pytest.mark.parametrize(
    ("rows", "used"),
    [
        pytest.param({LOST: 2.0, IN_USE: 1.0}, True, id="used"),
        pytest.param({LOST: 2.0, IN_USE: 0.0}, False, id="idle"),
        pytest.param({LOST: 2.0}, None, id="not known"),
        pytest.param({LOST: 2.0, key(IN_USE[0], gpu="4", uuid="GPU-b"): 1.0}, None, id="another GPU's"),
    ],
)
def test_in_use_is_of_the_same_gpu(rows: dict[SeriesKey, float], used: bool | None) -> None:
    (one,) = measured(condition(in_use="gpu", severity_idle="ticket"), rows)
    assert one.used is used


def test_in_use_of_the_host_is_of_any() -> None:
    gated = condition(in_use="host", severity_idle="ticket")
    (one,) = measured(gated, {LOST: 2, key("gpufeed_host_in_use_recently"): 1})
    assert one.used is True


def test_only_what_some_condition_reads_is_wanted() -> None:
    is_wanted = wanted(CONDITIONS)
    assert is_wanted(LOST)
    assert is_wanted(IN_USE)
    assert is_wanted(spent("starved"))
    assert not is_wanted(spent("idle_free"))
    assert not is_wanted(key("gpufeed_gpu_health", gpu="3", uuid="GPU-a", check="hung"))
    assert not is_wanted(key("gpufeed_gpu_power_watts", gpu="3", uuid="GPU-a"))
