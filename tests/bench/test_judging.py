# SPDX-License-Identifier: Apache-2.0
"""The bench as a whole on a slice of it: who is right passes, who is not fails, and nothing is done twice."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from bench.accuracy.__main__ import main
from bench.accuracy.live import run
from bench.accuracy.plans import (
    CI_SEEDS,
    FULL_SEEDS,
    HEALTHY,
    MISSING,
    TUNING_SEED,
    Shard,
    View,
    ci,
    ci_scenarios,
    full,
)
from bench.accuracy.pool import results
from bench.accuracy.standard import Standard
from bench.accuracy.summary import bars, quantile, rows_of
from bench.accuracy.verdicts import rights_of
from gpufeed.simulate.pipeline.scenarios import JUDGED

TOGETHER = {"link", "peer", "shared"}
VIEWS = (View("all", 500), View("no_gpm", 500))
SLICE = tuple(
    Shard(scenario=name, seed=TUNING_SEED, views=VIEWS, seconds=60, gpus=2)
    for name in ("compute_bound", "storage_50", "cpu_8_workers", "exposed_exchange", "held_idle")
)


def judged(classifier: str, folder: Path) -> dict[str, bool]:
    rows = rows_of(run(shard, classifier, folder) for shard in SLICE)
    return {bar.name: bar.is_met for bar in bars(rows, Standard.load())}


@pytest.mark.parametrize("classifier", ["always_busy", "threshold"])
def test_a_bad_classifier_fails(classifier: str, tmp_path: Path) -> None:
    met = judged(classifier, tmp_path)
    assert not met["all inputs, 500 ms: share error, median"]
    assert not met["no GPM, 500 ms: share error, 95 %"]


def test_a_threshold_gives_wrong_causes(tmp_path: Path) -> None:
    assert not judged("threshold", tmp_path)["all inputs, 500 ms: wrong cause of starved"]


def test_an_oracle_meets_every_bar(tmp_path: Path) -> None:
    assert all(judged("oracle", tmp_path).values())


def test_a_hang_is_waiting_in_vain_and_may_be_said_to_be_a_peers(tmp_path: Path) -> None:
    shard = Shard(scenario="hung_collective", seed=TUNING_SEED, views=VIEWS[:1], seconds=200, gpus=2)
    found = run(shard, "oracle", tmp_path)["views"][0]["gpus"]
    assert all(gpu["starved"] > 60 and gpu["wrong"] < 0.1 and gpu["unknown"] == 0 for gpu in found)


def test_the_product_conserves_time_and_is_right_where_it_is_easy(tmp_path: Path) -> None:
    shard = Shard(scenario="storage_50", seed=TUNING_SEED, views=VIEWS[:1], seconds=60, gpus=2)
    view = run(shard, "step", tmp_path)["views"][0]
    assert view["is_conserving"]
    assert max(error for gpu in view["gpus"] for error in gpu["errors"]) < 0.1


def test_what_was_found_is_not_found_again_and_half_a_file_is_as_none(tmp_path: Path) -> None:
    said: list[str] = []
    first = {result["name"]: result for result in results(SLICE[:2], "oracle", tmp_path, 1, said.append)}
    assert "0 of 2 shards were there, 2 ahead on 1 processes" in said
    kept = sorted((tmp_path / "runs").rglob("*.json"))
    assert len(kept) == 2
    kept[0].write_text(kept[0].read_text()[:100])
    said.clear()
    again = {result["name"]: result for result in results(SLICE[:2], "oracle", tmp_path, 1, said.append)}
    assert "1 of 2 shards were there, 1 ahead on 1 processes" in said
    assert json.loads(json.dumps(again)) == json.loads(json.dumps(first))


def test_shards_are_spread_over_processes(tmp_path: Path) -> None:
    said: list[str] = []
    found = list(results(SLICE[:3], "always_busy", tmp_path, 2, said.append))
    assert {result["name"] for result in found} == {shard.name for shard in SLICE[:3]}
    assert said[-1].startswith("3/3 100 %")


def command(folder: Path, *arguments: str) -> int:
    scenarios = ("--scenario", "storage_50", "--scenario", "compute_bound")
    usual = ("--seconds", "60", "--gpus", "2", "--workers", "1", "--folder", str(folder))
    return main([*scenarios, *usual, *arguments])


def test_the_command_fails_below_the_standard_only_when_asked_to_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(tmp_path, "--classifier", "always_busy") == 0
    assert command(tmp_path, "--classifier", "always_busy", "--judge") == 1
    assert command(tmp_path, "--classifier", "oracle", "--judge") == 0
    shown = capsys.readouterr().out
    assert "MISSED  all inputs, 500 ms: share error, 95 %" in shown
    assert "storage_50" in shown


def test_the_command_leaves_numbers_and_pictures(tmp_path: Path) -> None:
    command(tmp_path, "--classifier", "threshold", "--inputs", "all", "--period", "1000")
    report = tmp_path / "report-threshold"
    numbers: dict[str, Any] = json.loads((report / "numbers.json").read_text())
    assert {row["scenario"] for row in numbers["rows"]} == {"storage_50", "compute_bound"}
    root = ET.fromstring((report / "confusion-all-1000.svg").read_text())  # noqa: S314  # it is our own
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"all inputs, 1000 ms", "starved/storage", "busy"} <= set(words)


def test_healthy_days_are_held_to_what_healthy_nodes_are_held_to_and_no_more(tmp_path: Path) -> None:
    day = Shard(
        scenario="tensor_parallel", seed=TUNING_SEED, views=(View("all", 1000),), seconds=60, gpus=2, is_day=True
    )
    found = bars(rows_of([run(day, "always_busy", tmp_path)]), Standard.load())
    assert [bar.title.removeprefix("all inputs, 1000 ms, healthy days: ") for bar in found] == [
        "false starvation, each, tensor_parallel",
        "alerts on healthy nodes",
        "time that was lost or counted twice",
    ]
    assert all(bar.is_met for bar in found)


def test_the_slice_of_ci_has_what_it_promises() -> None:
    shards = ci()
    days = [shard for shard in shards if shard.is_day]
    assert len(ci_scenarios()) >= 30
    assert {JUDGED[name].family for name in ci_scenarios()} == {scenario.family for scenario in JUDGED.values()}
    assert all(shard.views == VIEWS and shard.seconds == 600 for shard in shards if not shard.is_day)
    assert sum(shard.seconds * shard.gpus for shard in days) == 5 * 86_400
    assert {JUDGED[shard.scenario].family for shard in days} <= set(HEALTHY)


def test_the_full_run_has_what_it_promises() -> None:
    shards = full()
    runs = [shard for shard in shards if not shard.is_day]
    seen = {(shard.scenario, shard.seed, view) for shard in runs for view in shard.views}
    for name in JUDGED:
        for view in (*VIEWS, View("all", 1000), View("no_gpm", 1000)):
            assert len({seed for scenario, seed, of in seen if (scenario, of) == (name, view)}) >= 10
        assert {of.inputs for scenario, _, of in seen if scenario == name and of.period_ms == 200} == {"all", "no_gpm"}
        assert {of.inputs for scenario, _, of in seen if scenario == name} >= set(MISSING)
        assert {shard.gpus for shard in runs if shard.scenario == name} >= {2, 8} or JUDGED[name].family in TOGETHER
    assert sum(shard.seconds * shard.gpus for shard in shards if shard.is_day) == 100 * 86_400
    assert len({shard.name for shard in shards}) == len(shards)


def test_nobody_is_judged_by_the_seeds_that_rules_are_tuned_on() -> None:
    assert TUNING_SEED < 1000 < min(CI_SEEDS)
    assert max(CI_SEEDS) < min(FULL_SEEDS)


def test_bars_are_half_as_strict_again_at_a_second() -> None:
    standard = Standard.load()
    assert standard.factor(500) == 1.0
    assert standard.factor(1000) == 1.5
    assert standard.with_gpm.scaled(1.5).share_error_p95 == pytest.approx(0.12)


def test_a_quantile_is_a_value_that_was_there() -> None:
    assert quantile([], 0.95) == 0.0
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([float(value) for value in range(100)], 0.95) == 95.0


def test_on_a_chain_whatever_would_cure_the_waiting_is_right_not_only_its_last_part(tmp_path: Path) -> None:
    rights = rights_of("serial_loader", TUNING_SEED, 60, "h100", 2, tmp_path)
    assert all(right.sufficient == {"storage", "host_cpu"} for right in rights)
    assert rights_of("serial_loader", TUNING_SEED, 60, "h100", 2, tmp_path) == rights
    assert len(list(tmp_path.iterdir())) == 1
