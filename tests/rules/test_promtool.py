# SPDX-License-Identifier: Apache-2.0
"""Prometheus' own tool on our rules: it checks them, runs their examples, and judges our evaluator by theirs."""

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from alerting.histories import condition
from gpufeed.alerting.conditions import CONDITIONS
from gpufeed.alerting.define import Condition, Example, ExampleSeries, Matcher, Ratio, Select
from gpufeed.alerting.prometheus import rules_yaml
from gpufeed.alerting.promtool_tests import Case, cases, expand, replay, unit_tests
from gpufeed.errors import ParseError

ROOT = Path(__file__).parents[2]
RULES = ROOT / "rules"
EXAMPLES = [
    pytest.param(one, example, id=f"{one.name} {example.outcome}: {example.says}")
    for one in CONDITIONS
    for example in one.examples
]
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian package prometheus)")


def promtool(*arguments: str | Path) -> str:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *arguments], check=False, capture_output=True, text=True, timeout=60)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_committed_rules_are_what_the_table_gives() -> None:
    written = (RULES / "node.yml").read_text(encoding="utf-8")
    assert written == rules_yaml(CONDITIONS), "run: gpufeed rules > rules/node.yml"


@needs_promtool
@pytest.mark.parametrize(
    "path", [RULES / name for name in ("node.yml", "recording.yml", "cluster.yml")], ids=lambda path: path.name
)
def test_promtool_accepts_the_rules(path: Path) -> None:
    assert promtool("check", "rules", "--lint-fatal", path) == ""


@pytest.mark.parametrize(("one", "example"), EXAMPLES)
def test_our_evaluator_makes_of_an_example_what_its_author_says(one: Condition, example: Example) -> None:
    case = Case(says=example.says, series=example.series, looks_s=(example.at_s,))
    (firing,) = replay(one, case).values()
    assert [alert.severity for alert in firing] == ([example.severity] if example.severity else [])


@needs_promtool
@pytest.mark.parametrize("one", CONDITIONS, ids=lambda one: one.name)
def test_promtool_makes_of_every_example_what_we_do(one: Condition, tmp_path: Path) -> None:
    """By the rules of one alert, which stand in the committed file as they are: all of them take minutes."""
    (tmp_path / "one.yml").write_text(rules_yaml([one]), encoding="utf-8")
    path = tmp_path / "examples.yml"
    path.write_text(unit_tests(cases([one]), "one.yml"), encoding="utf-8")
    assert promtool("test", "rules", path) == ""


@needs_promtool
def test_promtool_runs_examples_against_the_committed_file(tmp_path: Path) -> None:
    shutil.copy(RULES / "node.yml", tmp_path)
    short = [one for one in CONDITIONS if max(example.at_s for example in one.examples) <= 1800]
    assert len(short) > len(CONDITIONS) / 2
    path = tmp_path / "examples.yml"
    path.write_text(unit_tests(cases(short), "node.yml"), encoding="utf-8")
    assert promtool("test", "rules", path) == ""


@needs_promtool
@pytest.mark.parametrize("one", CONDITIONS, ids=lambda one: one.name)
def test_no_data_fires_nothing(one: Condition, tmp_path: Path) -> None:
    shutil.copy(RULES / "node.yml", tmp_path)
    path = tmp_path / "silence.yml"
    silence = Case(says="nothing", series=(ExampleSeries(metric="up", values="1x120"),), looks_s=(3600,))
    path.write_text(unit_tests([(one, silence)], "node.yml"), encoding="utf-8")
    assert "exp_alerts: []" in path.read_text(encoding="utf-8")
    assert promtool("test", "rules", path) == ""


# Parity: conditions of every form, over series that reset, flap at the threshold and have gaps.

SECONDS = "gpufeed_gpu_state_seconds_total"
GONE = ("gpu", "uuid", "gpu_instance", "compute_instance", "state", "cause")
AGE = Select(metric="gpufeed_sample_age_seconds", without=("collector",))
WORDS = {"summary": "{value:number}", "description": "{value:percent} {value:duration}."}
STEP_S, STEPS, SETS = 15, 80, 19  # of eleven forms: 209 sets


def share(state: str) -> Select:
    return Select(metric=SECONDS, matchers=(Matcher("state", "=", state),), without=GONE)


def forms() -> Iterator[Condition]:
    yield condition(name="Last", series=AGE, threshold=4, for_s=30, **WORDS)
    yield condition(name="LastKept", series=AGE, threshold=4, keep_firing_for_s=60, **WORDS)
    yield condition(name="LastLow", series=AGE, threshold=2, comparison="<=", for_s=15, **WORDS)
    yield condition(name="Least", series=AGE, statistic="min", window_s=60, threshold=3, comparison=">=", **WORDS)
    yield condition(name="Most", series=AGE, statistic="max", window_s=45, threshold=6, comparison="<", **WORDS)
    yield condition(name="Average", series=AGE, statistic="mean", window_s=45, threshold=4, for_s=15, **WORDS)
    ratio = Ratio(numerator=share("starved"), denominator=share("busy"))
    yield condition(name="Share", series=ratio, statistic="rate", window_s=240, threshold=0.5, for_s=30, **WORDS)
    yield condition(
        name="ShareTwice", series=ratio, statistic="increase", window_s=240, short_window_s=60, threshold=0.25, **WORDS
    )
    busy = Select(metric=SECONDS, without=GONE)
    yield condition(name="Rate", series=busy, statistic="rate", window_s=120, threshold=0.25, for_s=15, **WORDS)
    yield condition(name="Growth", series=busy, statistic="increase", window_s=60, threshold=16, **WORDS)
    yield condition(name="Gated", in_use="gpu", severity_idle="ticket", for_s=30)


def gauge(chance: random.Random) -> str:
    """Values around the thresholds, with gaps: a series that is not in a scrape is stale at once."""
    return " ".join(chance.choice(["stale", "1", "2", "3", "4", "4", "5", "6", "8"]) for _ in range(STEPS))


def flags(chance: random.Random, *values: str) -> str:
    """Runs of the same value."""
    return " ".join(word for _ in range(STEPS // 4) for word in [chance.choice(values)] * 4)


def counter(chance: random.Random) -> str:
    """Growth in quarters of a step, with gaps and resets."""
    value, words = chance.choice([0.0, 0.0, 1024.0]), []
    pace = chance.choice([0.0, 3.75, 7.5, 15.0])
    for _ in range(STEPS):
        pace = chance.choice([pace, pace, pace, 0.0, 3.75, 7.5, 15.0])
        value = 0.0 if chance.random() < 0.04 else value + pace
        words.append("stale" if chance.random() < 0.08 else f"{value}")
    return " ".join(words)


def series_of(one: Condition, chance: random.Random) -> tuple[ExampleSeries, ...]:
    gpus = [(("gpu", str(index)), ("uuid", f"GPU-{index}")) for index in range(2)]
    if one.in_use:
        return tuple(
            series
            for gpu in gpus
            for series in (
                ExampleSeries(
                    metric="gpufeed_gpu_health",
                    labels=(*gpu, ("check", "lost")),
                    values=flags(chance, "0", "1", "2", "2", "stale"),
                ),
                ExampleSeries(
                    metric="gpufeed_gpu_in_use_recently", labels=gpu, values=flags(chance, "0", "1", "1", "stale")
                ),
            )
        )
    if one.selects[0].metric == AGE.metric:
        return tuple(
            ExampleSeries(metric=AGE.metric, labels=(("collector", name),), values=gauge(chance))
            for name in ("nvml", "nfs")[: chance.choice([1, 2])]
        )
    return tuple(
        ExampleSeries(metric=SECONDS, labels=(*gpu, ("state", state), ("cause", "")), values=counter(chance))
        for gpu in gpus
        for state in ("busy", "starved")
    )


@needs_promtool
@pytest.mark.parametrize("one", tuple(forms()), ids=lambda one: one.name)
def test_our_evaluator_fires_exactly_when_prometheus_does(one: Condition, tmp_path: Path) -> None:
    chance = random.Random(one.name)  # noqa: S311  # the same series on every run
    looks_s = tuple(range(0, STEPS * STEP_S, STEP_S))
    made = [
        Case(says=f"set {number}", series=series_of(one, chance), looks_s=looks_s, step_s=STEP_S)
        for number in range(SETS)
    ]
    firing = [bool(alerts) for case in made for alerts in replay(one, case).values()]
    assert any(firing)
    assert not all(firing)
    (tmp_path / "rules.yml").write_text(rules_yaml([one]), encoding="utf-8")
    path = tmp_path / "parity.yml"
    path.write_text(unit_tests(((one, case) for case in made), "rules.yml", STEP_S), encoding="utf-8")
    assert promtool("test", "rules", path) == ""


@pytest.mark.parametrize(
    ("text", "samples"),
    [
        ("1", [1]),
        ("1x2", [1, 1, 1]),
        ("0+2x3", [0, 2, 4, 6]),
        ("5-0.5x2", [5, 4.5, 4]),
        ("-1x1", [-1, -1]),
        ("_ _x2 stale 7", [None, None, None, None, 7]),
    ],
)
def test_values_are_read_as_promtool_reads_them(text: str, samples: list[float | None]) -> None:
    assert expand(text) == samples


@pytest.mark.parametrize("text", ["x3", "1+", "_+1x2", "a", "1x", "1.2.3"])
def test_values_that_promtool_would_not_read_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        expand(text)
