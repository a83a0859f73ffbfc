# SPDX-License-Identifier: Apache-2.0
"""A condition that cannot be evaluated is refused where it is written."""

import pytest

from alerting.histories import condition
from gpufeed.alerting.conditions import CONDITIONS, Override, for_site, index
from gpufeed.alerting.define import Condition, Example, Inhibit, Matcher, Ratio, Select, Severity
from gpufeed.catalogue import METRICS

HEALTH = "gpufeed_gpu_health"
SECONDS = "gpufeed_gpu_state_seconds_total"
EVENTS = "gpufeed_gpu_clock_event_seconds_total"
ALL_GONE = ("gpu", "uuid", "gpu_instance", "compute_instance", "state", "cause")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({"series": Select(metric="gpufeed_nothing")}, "unknown metric gpufeed_nothing", id="metric"),
        pytest.param(
            {"series": Select(metric=HEALTH, matchers=(Matcher("lane", "=", "x"),))}, "has no label lane", id="matcher"
        ),
        pytest.param({"series": Select(metric=HEALTH, without=("lane",))}, "has no label lane", id="without"),
        pytest.param({"statistic": "median", "window_s": 60}, "unknown statistic median", id="statistic"),
        pytest.param({"statistic": "rate", "window_s": 60}, "rate of a gauge", id="rate of a gauge"),
        pytest.param({"series": Select(metric=EVENTS, without=("reason",))}, "last of a counter", id="raw counter"),
        pytest.param({"series": Select(metric="gpufeed_gpu_info")}, "last of a info", id="an info is not a number"),
        pytest.param(
            {"series": Select(metric="gpufeed_lane_stuck_seconds"), "summary": "x", "description": "y."},
            "label lane would change",
            id="identity",
        ),
        pytest.param({"statistic": "max"}, "every statistic but last has a window", id="no window"),
        pytest.param({"window_s": 60}, "every statistic but last has a window", id="window of last"),
        pytest.param(
            {"statistic": "max", "window_s": 3600, "evaluator": "both"}, "windows over 30 min", id="long window"
        ),
        pytest.param({"statistic": "max", "window_s": 3600, "is_event": True}, "windows over 30 min", id="long event"),
        pytest.param({"severity_idle": "ticket"}, "go together", id="idle without in-use"),
        pytest.param({"in_use": "gpu"}, "go together", id="in-use without idle"),
        pytest.param(
            {
                "series": Select(metric="gpufeed_sample_age_seconds", without=("collector",)),
                "in_use": "gpu",
                "severity_idle": "info",
                "summary": "x",
                "description": "y.",
            },
            "needs its uuid",
            id="in-use of which GPU",
        ),
        pytest.param({"action": "panic"}, "unknown action panic", id="action"),
        pytest.param({"summary": "{lane} is ill"}, "label that the alert has lost", id="text"),
        pytest.param({"summary": "{value:.3f}"}, "takes percent", id="form of the value"),
        pytest.param({"summary": "{gpu:percent}"}, "takes percent", id="form of a label"),
        pytest.param({"summary": "{gpu!r}"}, "takes percent", id="conversion"),
        pytest.param({"description": "Ill"}, "full sentences", id="no sentence"),
        pytest.param({"summary": ""}, "full sentences", id="no summary"),
        pytest.param({"name": "gpu_ill"}, "CamelCase", id="name"),
        pytest.param({"inhibits": (Inhibit(targets=("X",), equal=("uuid",)),)}, "match on instance", id="inhibition"),
        pytest.param(
            {
                "series": Ratio(numerator=Select(metric=SECONDS, without=ALL_GONE), denominator=Select(metric=EVENTS)),
                "statistic": "rate",
                "window_s": 60,
            },
            "same labels",
            id="ratio of unlike",
        ),
        pytest.param(
            {"examples": (Example(says="x", outcome="fires", series=(), at_s=0),)}, "has a severity", id="fires"
        ),
        pytest.param(
            {"examples": (Example(says="x", outcome="silent", severity="info", series=(), at_s=0),)},
            "a silent one has none",
            id="silent",
        ),
        pytest.param(
            {"examples": (Example(says="x", outcome="planned", severity="page", series=(), at_s=0),)},
            "must not page",
            id="planned",
        ),
        pytest.param(
            {"examples": (Example(says="x", outcome="silent", series=(), at_s=61),)}, "between samples", id="at"
        ),
    ],
)
def test_what_cannot_be_evaluated_or_acted_on_is_refused(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        condition(**changes)


@pytest.mark.parametrize(
    ("operator", "value", "matching", "other"),
    [
        ("=", "a", ["a"], ["b", "", "aa"]),
        ("!=", "a", ["b", "", "aa"], ["a"]),
        ("=~", "a|b+", ["a", "b", "bb"], ["", "ab", "c"]),
        ("!~", "a|b+", ["", "ab", "c"], ["a", "b", "bb"]),
    ],
)
def test_a_matcher_matches_whole_values_as_promql_does(
    operator: str, value: str, matching: list[str], other: list[str]
) -> None:
    matcher = Matcher("x", operator, value)  # type: ignore[arg-type]  # from a table
    assert [matcher.matches(one) for one in matching] == [True] * len(matching)
    assert [matcher.matches(one) for one in other] == [False] * len(other)


def test_two_conditions_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="GpuIll stands twice"):
        index([condition(), condition()])


def test_an_inhibition_of_what_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="GpuIll inhibits GpuWell"):
        index([condition(inhibits=(Inhibit(targets=("GpuWell",)),))])


def test_the_alerts_that_the_design_names_are_there() -> None:
    named = {
        "GpuLost", "NvmlHang", "XidGpuUnusable", "GpuStarvedByStorage", "GpuHwThermalSlowdown", "IbPortDown",
        "ExporterStale", "AttributionBlind",
    }  # fmt: skip
    assert named <= {condition.name for condition in CONDITIONS}
    assert len(CONDITIONS) <= 50


@pytest.mark.parametrize("name", ["RemapFailure", "SramThreshold", "MemoryWornOut", "XidRepeatedFatal"])
def test_what_says_that_a_board_must_be_replaced_is_never_silenced(name: str) -> None:
    silenced = {target for one in CONDITIONS for inhibit in one.inhibits for target in inhibit.targets}
    assert name not in silenced


def test_no_alert_silences_itself_and_no_two_silence_each_other() -> None:
    silences = {one.name: {target for inhibit in one.inhibits for target in inhibit.targets} for one in CONDITIONS}
    assert [name for name, targets in silences.items() if name in targets] == []
    assert [
        (name, target) for name, targets in silences.items() for target in targets if name in silences[target]
    ] == []


@pytest.mark.parametrize("one", CONDITIONS, ids=lambda one: one.name)
def test_an_alert_stands_on_series_of_the_default_profile(one: Condition) -> None:
    assert {METRICS[metric].profile for metric in one.metrics} <= {"minimal", "default"}


def test_every_condition_has_an_example_of_each_outcome() -> None:
    for one in CONDITIONS:
        assert {example.outcome for example in one.examples} == {"fires", "silent", "planned"}, one.name


def test_few_things_wake_a_person() -> None:
    assert sum(one.severity == "page" for one in CONDITIONS) == 5  # and some more of the cluster's: 12 in all


def test_the_index_of_a_gpu_never_labels_an_alert() -> None:
    assert all("gpu" not in one.labels for one in CONDITIONS)


def test_starvation_never_pages_and_is_never_the_node_s() -> None:
    starved = [one for one in for_site({}, events="node") if "Starved" in one.name]
    assert len(starved) == 3
    assert {(one.severity, one.evaluator) for one in starved} == {("ticket", "prometheus")}


def test_where_the_node_can_send_it_takes_over_the_events() -> None:
    owners = {one.name: one.evaluator for one in for_site({}, events="node")}
    events = {"XidGpuUnusable", "GpuLost", "NvmlHang", "IbPortDown"}
    assert {name for name, owner in owners.items() if owner == "node"} == events
    assert {one.evaluator for one in for_site({}, events="prometheus")} == {"prometheus"}


def test_a_site_changes_threshold_duration_and_owner() -> None:
    changes = {
        "GpuStarvedByStorage": Override(threshold=0.2, for_s=600),
        "GpuLost": Override(evaluator="both"),
        "ExporterStale": Override(is_enabled=False),
        "NvmlHang": Override(is_enabled=True),
    }
    by_name = {one.name: one for one in for_site(changes, events="node")}
    assert (by_name["GpuStarvedByStorage"].threshold, by_name["GpuStarvedByStorage"].for_s) == (0.2, 600)
    assert by_name["GpuLost"].evaluator == "both"
    assert "ExporterStale" not in by_name
    assert len(by_name) == len(CONDITIONS) - 1


def test_a_site_changes_a_severity_and_nothing_is_graver_where_nobody_is_hurt() -> None:
    def severities(word: Severity) -> tuple[tuple[Severity, bool | None], ...]:
        (lost,) = (
            one for one in for_site({"GpuLost": Override(severity=word)}, events="node") if one.name == "GpuLost"
        )
        return lost.severities()

    assert severities("page") == (("page", True), ("ticket", False))
    assert severities("ticket") == (("ticket", None),)
    assert severities("info") == (("info", None),)
    (hang,) = (
        one for one in for_site({"NvmlHang": Override(severity="page")}, events="node") if one.name == "NvmlHang"
    )
    assert hang.severities() == (("page", None),)


def test_every_wrong_override_is_named() -> None:
    long = condition(name="LongOne", statistic="max", window_s=3600)
    with pytest.raises(ValueError, match=r"Nonsense: no such alert\nLongOne: windows over 30 min"):
        for_site(
            {"Nonsense": Override(), "LongOne": Override(evaluator="node")}, events="prometheus", conditions=(long,)
        )
