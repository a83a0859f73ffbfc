# SPDX-License-Identifier: Apache-2.0
"""Examples for others' programs: well-formed, and of one mind with the unit and the daemon."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

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
