# SPDX-License-Identifier: Apache-2.0
"""The rules file: what is in it, what is left out, and what a site makes of it."""

import argparse
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerting.histories import condition
from gpufeed.alerting import site
from gpufeed.alerting.conditions import CONDITIONS
from gpufeed.alerting.prometheus import fingerprint, rules_yaml
from gpufeed.catalogue import METRICS
from gpufeed.commands import rules as command
from gpufeed.config.load import parse
from gpufeed.config.schema import Config
from gpufeed.errors import ConfigError


def rules_of(text: str) -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(text)["groups"]
    assert isinstance(group["rules"], list)
    return group["rules"]


def names(text: str) -> set[str]:
    return {rule["alert"] for rule in rules_of(text)}


def test_a_condition_becomes_a_rule_with_all_its_parts() -> None:
    one = condition(for_s=60, keep_firing_for_s=300, summary="GPU {gpu}'s ill")
    assert rules_of(rules_yaml([one])) == [
        {
            "alert": "GpuIll",
            "expr": 'gpufeed_gpu_health{check="lost"} > 1',
            "for": "1m",
            "keep_firing_for": "5m",
            "labels": {"severity": "page", "layer": "gpu", "action": "drain", "gpu": ""},
            "annotations": {
                "summary": "GPU {{ $labels.gpu }}'s ill",
                "description": "GPU {{ $labels.gpu }} ({{ $labels.uuid }}) is ill.",
                "runbook": "rules/runbooks/GpuIll.md",
            },
        }
    ]


def test_severity_idle_becomes_a_second_rule_of_the_same_name() -> None:
    first, second = rules_of(rules_yaml([condition(in_use="gpu", severity_idle="info")]))
    assert [first["alert"], second["alert"]] == ["GpuIll", "GpuIll"]
    assert [first["labels"]["severity"], second["labels"]["severity"]] == ["page", "info"]
    assert first["expr"] != second["expr"]


def test_a_site_links_its_own_runbooks() -> None:
    (rule,) = rules_of(rules_yaml([condition()], runbook_base_url="https://wiki.example/runbooks/"))
    assert rule["annotations"]["runbook_url"] == "https://wiki.example/runbooks/GpuIll.md"
    assert "runbook" not in rule["annotations"]


def test_what_the_profile_has_no_series_for_is_a_comment() -> None:
    text = rules_yaml(CONDITIONS, profile="minimal")
    assert "GpuHwThermalSlowdown" not in names(text)
    assert "# Left out: GpuHwThermalSlowdown: profile minimal has no gpufeed_gpu_clock_event_seconds_total.\n" in text
    assert names(rules_yaml(CONDITIONS, profile="full")) == {one.name for one in CONDITIONS}


def test_what_the_site_drops_is_a_comment() -> None:
    text = rules_yaml(CONDITIONS, drop=frozenset({"gpufeed_sample_age_seconds"}))
    assert "ExporterStale" not in names(text)
    assert "# Left out: ExporterStale: the site drops gpufeed_sample_age_seconds.\n" in text


def test_what_the_node_evaluates_is_a_comment() -> None:
    text = rules_yaml([condition(evaluator="node")])
    assert rules_of(text) == []
    assert "# Left out: GpuIll: evaluated on the node itself.\n" in text
    assert names(rules_yaml([condition(evaluator="both")])) == {"GpuIll"}


def test_equal_rules_have_equal_hashes() -> None:
    text = rules_yaml(CONDITIONS)
    assert len(fingerprint(text)) == 12
    assert fingerprint(text) == fingerprint(rules_yaml(CONDITIONS))
    assert fingerprint(text) != fingerprint(rules_yaml(CONDITIONS, profile="minimal"))


def config(text: str) -> Config:
    return parse(text.encode(), "site.yml")


def test_a_site_s_configuration_is_in_its_rules() -> None:
    text = site.rules(
        config(
            """
exposition: {profile: minimal}
alerting:
  runbook_base_url: https://wiki.example/runbooks
  thresholds:
    GpuStarvedByStorage: {threshold: 0.2, for: 10m}
    ExporterStale: {enabled: false}
"""
        )
    )
    (starved,) = (rule for rule in rules_of(text) if rule["alert"] == "GpuStarvedByStorage")
    assert starved["expr"].endswith("> 0.2")
    assert starved["for"] == "10m"
    assert starved["annotations"]["runbook_url"].startswith("https://wiki.example/runbooks/")
    minimal = {name for name, metric in METRICS.items() if metric.profile == "minimal"}
    left = {one.name for one in CONDITIONS if minimal.issuperset(one.metrics)} - {"ExporterStale"}
    assert names(text) == left
    assert {"GpuLost", "GpuStarvedByStorage"} <= left


def test_every_wrong_threshold_of_a_site_is_named() -> None:
    wrong = config("alerting: {thresholds: {Nonsense: {threshold: 1}, GpuLost: {evaluator: node}}}")
    with pytest.raises(ConfigError) as error:
        site.rules(wrong)
    assert error.value.problems == (
        "alerting.thresholds.Nonsense: no such alert",
        "alerting.thresholds.GpuLost.evaluator: there is neither an alertmanager nor a webhook to send to",
    )


def test_with_an_alertmanager_events_leave_the_rules() -> None:
    alerting = config("alerting: {alertmanagers: [{url: 'http://127.0.0.1:9093'}]}").alerting
    owners = {one.name: one.evaluator for one in site.conditions(alerting)}
    assert owners["GpuLost"] == "node"
    assert owners["GpuStarvedByStorage"] == "prometheus"


def test_with_a_webhook_alone_events_stay_in_the_rules_too() -> None:
    alerting = config("alerting: {webhooks: [{url: 'http://127.0.0.1:1/x'}]}").alerting
    owners = {one.name: one.evaluator for one in site.conditions(alerting)}
    assert owners["GpuLost"] == "both"
    assert owners["GpuStarvedByStorage"] == "prometheus"


def test_the_command_prints_the_rules_of_a_site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(argparse.Namespace(config_file=None)) == 0
    assert names(capsys.readouterr().out) == {one.name for one in CONDITIONS}
    path = tmp_path / "site.yml"
    path.write_text("alerting: {thresholds: {Nonsense: {threshold: 1}}}", encoding="utf-8")
    with pytest.raises(ConfigError, match="Nonsense: no such alert"):
        command.run(argparse.Namespace(config_file=path))
