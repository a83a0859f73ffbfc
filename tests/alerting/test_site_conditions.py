# SPDX-License-Identifier: Apache-2.0
"""Alerts of a site's own: the rules they become, and every mistake named with its line and key."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufeed.alerting import site
from gpufeed.alerting.conditions import CONDITIONS
from gpufeed.alerting.prometheus import rules_yaml
from gpufeed.config.schema import Config
from gpufeed.daemon.configuration import read
from gpufeed.errors import ConfigError

OWN = """
alerting:
  conditions:
    - alert: GpuHot
      metric: gpufeed_gpu_temperature_celsius
      labels: {sensor: gpu}
      statistic: mean
      window: 10m
      threshold: 83.5
      comparison: ">="
      for: 5m
      keep_firing_for: 2m
      severity: info
      layer: gpu
      action: tune
      summary: "GPU {gpu} is {value} degrees hot"
      runbook_url: https://wiki.example/hot
"""
PROMTOOL = shutil.which("promtool")


def config(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "site.yml"
    path.write_text(text, encoding="utf-8")
    return read(path)


def own_rules(tmp_path: Path, text: str) -> list[dict[str, Any]]:
    rules = yaml.safe_load(site.rules(config(tmp_path, text)))["groups"][0]["rules"]
    shipped = {rule["alert"] for rule in yaml.safe_load(rules_yaml(CONDITIONS))["groups"][0]["rules"]}
    return [rule for rule in rules if rule["alert"] not in shipped]


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        config(tmp_path, text)
    return [problem.removeprefix(f"{tmp_path}/") for problem in error.value.problems]


def test_a_site_s_own_alert_becomes_a_rule_like_those_that_ship(tmp_path: Path) -> None:
    assert own_rules(tmp_path, OWN) == [
        {
            "alert": "GpuHot",
            "expr": 'max without (sensor) (avg_over_time(gpufeed_gpu_temperature_celsius{sensor="gpu"}[10m])) >= 83.5',
            "for": "5m",
            "keep_firing_for": "2m",
            "labels": {"severity": "info", "layer": "gpu", "action": "tune", "gpu": ""},
            "annotations": {
                "summary": 'GPU {{ $labels.gpu }} is {{ $value | printf "%.4g" }} degrees hot',
                "description": 'GPU {{ $labels.gpu }} is {{ $value | printf "%.4g" }} degrees hot (limit: >= 83.5).',
                "runbook_url": "https://wiki.example/hot",
            },
        }
    ]


def test_of_a_ratio_both_sums_are_left_with_the_labels_they_share(tmp_path: Path) -> None:
    text = """
alerting:
  conditions:
    - alert: SlowReads
      metric: gpufeed_storage_read_seconds_total
      over: {metric: gpufeed_storage_reads_total}
      statistic: rate
      window: 2h
      threshold: 0.25
"""
    (rule,) = own_rules(tmp_path, text)
    assert " ".join(rule["expr"].split()) == (
        "( sum(rate(gpufeed_storage_read_seconds_total[2h])) / sum(rate(gpufeed_storage_reads_total[2h])) ) > 0.25"
    )
    assert rule["annotations"]["runbook"] == "alerting.conditions of this site's configuration"


def test_a_limit_keeps_all_its_digits(tmp_path: Path) -> None:
    text = "alerting: {conditions: [{alert: Big, metric: gpufeed_gpu_memory_used_bytes, threshold: 12345678901}]}"
    assert own_rules(tmp_path, text)[0]["expr"].endswith("> 12345678901.0")


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian package prometheus)")
def test_promtool_takes_what_a_site_writes_however_odd_its_words(tmp_path: Path) -> None:
    odd = """it's "odd" \\ {{not a template}} # : {value:percent}"""
    text = OWN.replace('"GPU {gpu} is {value} degrees hot"', json.dumps(odd))
    (tmp_path / "rules.yml").write_text(site.rules(config(tmp_path, text)), encoding="utf-8")
    done = subprocess.run(
        [str(PROMTOOL), "check", "rules", "--lint-fatal", tmp_path / "rules.yml"],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param(
            "metric: gpufeed_gpu_powr_watts",
            "site.yml:4: alerting.conditions.0.metric: "
            "there is no metric gpufeed_gpu_powr_watts; did you mean gpufeed_gpu_power_watts?",
            id="metric",
        ),
        pytest.param(
            "metric: gpufeed_gpu_temperature_celsius, labels: {senser: gpu}",
            "site.yml:4: alerting.conditions.0.labels.senser: "
            "gpufeed_gpu_temperature_celsius has no label senser; did you mean sensor?",
            id="label",
        ),
        pytest.param(
            "metric: gpufeed_gpu_power_watts, without: [x]",
            "site.yml:4: alerting.conditions.0.without.0: gpufeed_gpu_power_watts has no label x",
            id="without",
        ),
        pytest.param(
            "metric: gpufeed_gpu_power_watts, over: {metric: nothing}",
            "site.yml:4: alerting.conditions.0.over.metric: there is no metric nothing",
            id="divisor",
        ),
        pytest.param(
            "metric: gpufeed_gpu_power_watts, statistic: rate",
            "site.yml:4: alerting.conditions.0: rate of a gauge (gpufeed_gpu_power_watts)",
            id="statistic that does not fit",
        ),
        pytest.param(
            "metric: gpufeed_gpu_power_watts, statistic: median",
            "site.yml:4: alerting.conditions.0.statistic: expected one of increase, last, max, mean, min, rate"
            "; did you mean mean?, found 'median'",
            id="statistic that does not exist",
        ),
        pytest.param(
            "metric: gpufeed_gpu_power_watts, summary: '{node}'",
            "site.yml:4: alerting.conditions.0: a text names a label that the alert has lost",
            id="text",
        ),
        pytest.param(
            "metric: gpufeed_gpu_power_watts, summary: 'all} wrong'",
            "site.yml:4: alerting.conditions.0.summary: "
            "braces that do not fit: Single '}' encountered in format string",
            id="braces",
        ),
        pytest.param(
            "metric: gpufeed_gpu_power_watts, evaluator: node",
            "site.yml:4: alerting.conditions.0.evaluator: there is neither an alertmanager nor a webhook to send to",
            id="nobody to send to",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line_and_key(fields: str, problem: str, tmp_path: Path) -> None:
    text = f"alerting:\n  conditions:\n    -\n      {{alert: Own, threshold: 1, {fields}}}\n"
    assert problems(tmp_path, text) == [problem]


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    one = "{alert: GpuLost, metric: gpufeed_gpu_power_watts, threshold: 1}"
    two = one.replace("GpuLost", "Own")
    text = f"alerting:\n  conditions:\n  - {one}\n  - {two}\n  - {two}\n"
    assert problems(tmp_path, text) == [
        "site.yml:3: alerting.conditions.0.alert: there is an alert GpuLost already",
        "site.yml:5: alerting.conditions.2.alert: there is an alert Own already",
    ]


def test_a_threshold_for_no_alert_is_named_with_its_line(tmp_path: Path) -> None:
    text = "alerting:\n  thresholds:\n    GpuLostt: {threshold: 1}\n"
    assert problems(tmp_path, text) == [
        "site.yml:3: alerting.thresholds.GpuLostt: no such alert; did you mean GpuLost?"
    ]


def test_a_long_window_cannot_be_the_node_s(tmp_path: Path) -> None:
    text = """alerting:
  alertmanagers: [{url: "http://127.0.0.1:9093"}]
  thresholds:
    GpuHeldIdle: {evaluator: node}
"""
    assert problems(tmp_path, text) == [
        "site.yml:4: alerting.thresholds.GpuHeldIdle: windows over 30 min are Prometheus' alone"
    ]


@pytest.mark.parametrize("name", ["alertname", "uuid", "gpu", "severity", "__name__", "a-b", "layer", ""])
def test_a_label_that_alerts_set_themselves_or_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, f"alerting:\n  labels:\n    {json.dumps(name)}: x\n")
    assert problem.startswith("site.yml:3: alerting.labels")


def test_a_placeholder_that_nobody_fills_is_refused(tmp_path: Path) -> None:
    assert problems(tmp_path, "alerting:\n  labels:\n    instance: '{host}:9937'\n") == [
        "site.yml:3: alerting.labels.instance: no such placeholder {host}; known are {hostname} and {fqdn}"
    ]
