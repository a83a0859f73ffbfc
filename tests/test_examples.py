# SPDX-License-Identifier: Apache-2.0
"""Examples for others' programs: well-formed, and of one mind with the unit and the daemon."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import gpufeed
from gpufeed.config.load import parse
from gpufeed.config.web import DEFAULT_PORT

PACKAGING = Path(__file__).parents[1] / "packaging"


def load(name: str) -> Any:
    return yaml.safe_load((PACKAGING / "kubernetes" / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("example", sorted((PACKAGING / "prometheus").glob("*.yml")), ids=lambda path: path.name)
def test_prometheus_takes_the_example(example: Path, tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    rules = PACKAGING.parent / "rules" / "node.yml"
    for source in (example, rules):
        shutil.copy(source, tmp_path)
    for name in ("gpufeed.password", "ca.pem"):
        (tmp_path / name).touch()
    command = ["promtool", "check", "config", "--syntax-only", str(tmp_path / example.name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_pod_holds_no_right_that_the_unit_does_not() -> None:
    pod = load("daemonset.yaml")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["ports"] == [{"name": "metrics", "containerPort": DEFAULT_PORT}]
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in pod["volumes"]}
    assert (mounts["root"]["readOnly"], mounts["root"]["mountPropagation"]) == (True, "HostToContainer")
    assert all(
        "httpGet" not in container[probe] for probe in ("livenessProbe", "readinessProbe")
    )  # a password may be set


def test_the_monitor_finds_the_pod() -> None:
    monitor, labels = load("podmonitor.yaml"), load("daemonset.yaml")["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert monitor["spec"]["podMetricsEndpoints"][0]["port"] == "metrics"


def test_the_pod_gives_flags_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    from gpufeed.cli import main

    (container,) = load("daemonset.yaml")["spec"]["template"]["spec"]["containers"]
    command, *flags = container["args"]
    with pytest.raises(SystemExit):
        main([command, "--help"])
    said = capsys.readouterr().out
    assert [flag for flag in flags if flag.partition("=")[0] not in said] == []


CHART = PACKAGING / "helm" / "gpufeed"
VALUE = re.compile(
    r"^(?P<before>.*)\{\{-? (?:(?P<yaml>toYaml) )?(?P<name>\.[A-Za-z.]+)(?: \| nindent (?P<by>\d+))? \}\}$"
)


def rendered(name: str, **changed: Any) -> Any:
    """A template with the chart's values, by the few forms that it uses. No helm here: what it would do by hand."""
    values = {**yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")), **changed}
    lines: list[str] = []
    text = (CHART / "templates" / name).read_text(encoding="utf-8")
    if text.startswith("{{- if .Values.podMonitor.enabled }}"):
        if not values["podMonitor"]["enabled"]:
            return None
        text = text.partition("\n")[2].replace("{{- end }}\n", "")
    for line in text.splitlines():
        found = VALUE.match(line)
        if found is None:
            assert "{{" not in line, line
            lines.append(line)
            continue
        value: Any = {"Values": values, "Release": {"Namespace": "monitoring"}}
        for part in found["name"].strip(".").split("."):
            value = value[part]
        if found["yaml"]:
            dumped = yaml.safe_dump(value, default_flow_style=False).rstrip("\n").splitlines()
            lines += [" " * int(found["by"]) + one for one in dumped]
        else:
            lines.append(found["before"] + str(value))
    return yaml.safe_load("\n".join(lines))


def test_the_chart_makes_the_daemon_set_of_the_example_with_a_configuration() -> None:
    made, example = rendered("daemonset.yaml"), load("daemonset.yaml")
    pod, plain = made["spec"]["template"]["spec"], example["spec"]["template"]["spec"]
    (container,), (one,) = pod["containers"], plain["containers"]
    assert [flag for flag in container["args"] if "config.file" not in flag] == one["args"]
    assert container["volumeMounts"].pop(0) == {"name": "config", "mountPath": "/etc/gpufeed", "readOnly": True}
    assert pod["volumes"].pop(0) == {"name": "config", "configMap": {"name": "gpufeed"}}
    assert rendered("config.yaml")["metadata"]["name"] == "gpufeed"
    container["args"] = one["args"]
    assert made == example


def test_the_charts_configuration_is_the_file_of_the_node() -> None:
    made = rendered("config.yaml", config={"sampling": {"fast_period": "200ms"}})
    assert parse(made["data"]["gpufeed.yml"].encode(), "x").sampling.fast_period.ns == 200_000_000


def test_the_chart_monitors_only_where_it_is_asked_to() -> None:
    assert rendered("podmonitor.yaml") == load("podmonitor.yaml")
    assert rendered("podmonitor.yaml", podMonitor={"enabled": False, "interval": "15s"}) is None


def test_the_charts_schema_knows_every_value_and_no_other() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert schema["properties"].keys() == values.keys() == set(schema["required"])
    assert schema["properties"]["podMonitor"]["properties"].keys() == values["podMonitor"].keys()
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == gpufeed.__version__
    assert values["image"].endswith(f":{gpufeed.__version__}")


def test_the_playbook_checks_a_configuration_before_a_node_gets_it() -> None:
    (play,) = yaml.safe_load((PACKAGING / "ansible" / "gpufeed.yml").read_text(encoding="utf-8"))
    written = next(task["ansible.builtin.copy"] for task in play["tasks"] if "validate" in str(task))
    assert written["validate"] == "gpufeed check-config %s"
    assert parse(play["vars"]["config"].encode(), "x").alerting.labels["instance"] == "{hostname}:9937"
    assert play["serial"] == "10%"
