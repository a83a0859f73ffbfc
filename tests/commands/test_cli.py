# SPDX-License-Identifier: Apache-2.0
"""The command line without a daemon: help, versions, exit codes, and what is imported for what."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import gpufeed
from gpufeed.cli import main

ROOT = Path(__file__).parents[2]


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    for command in [
        "run",
        "demo",
        "once",
        "doctor",
        "capture",
        "check",
        "check-config",
        "rules",
        "metrics",
        "release",
        "maintenance",
        "ack",
        "forget",
    ]:
        assert f"  {command} " in said or f"  {command}\n" in said


def test_the_version_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"gpufeed {gpufeed.__version__}\n"


@pytest.mark.parametrize("arguments", [["doctr"], ["run", "--web.listen-adress=x"], ["run", "--web.listen"]])
def test_what_does_not_exist_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_check_config_says_ok_and_the_hash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gpufeed.yml"
    file.write_text("compat: {dcgm: '4.9'}\n", encoding="utf-8")
    assert main(["check-config", str(file)]) == 0
    said = capsys.readouterr().out
    assert "compat.dcgm: is right, but has no effect in this version" in said
    assert f"{file}: ok, hash " in said


def test_check_config_names_every_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gpufeed.yml"
    file.write_text("web: {uii: true}\npaths: {sysfs: sys}\n", encoding="utf-8")
    assert main(["check-config", str(file)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"gpufeed: {file}:1: web.uii: unknown key; did you mean web.ui?",
        f"gpufeed: {file}:2: paths.sysfs: expected an absolute path, found 'sys'",
    ]


def test_check_config_knows_metrics_and_alerts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gpufeed.yml"
    file.write_text(
        "exposition: {drop: [gpufeed_gpu_power_wats]}\nalerting: {thresholds: {GpuLots: {threshold: 1}}}\n",
        encoding="utf-8",
    )
    assert main(["check-config", str(file)]) == 2
    said = capsys.readouterr().err
    assert "exposition.drop.0: there is no metric gpufeed_gpu_power_wats; did you mean gpufeed_gpu_power_watts?" in said
    assert "alerting.thresholds.GpuLots: no such alert" in said


def test_the_reference_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-config", "--reference"]) == 0
    assert capsys.readouterr().out == (ROOT / "systemd/gpufeed.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--scenario=nothing"], "--scenario nothing: there are healthy"),
        (["--gpus=0"], "--gpus 0: expected 1 to 16"),
        (["--model=voodoo"], "--model voodoo: there are"),
        (["--layout=cloud"], "--layout cloud: there are slurm"),
    ],
)
def test_demo_says_which_nodes_there_are(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_checking_a_configuration_imports_no_web_server() -> None:
    code = (
        "import sys; from gpufeed.cli import main; main(['check-config', '--reference']);"
        "sys.stderr.write(' '.join({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=30)
    assert not {"aiohttp", "prometheus_client", "pynvml", "psutil"} & set(done.stderr.split())


@pytest.mark.slow
def test_once_as_json_has_every_row_with_its_labels() -> None:
    command = [sys.executable, "-m", "gpufeed", "once", "--format=json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=50)
    families = {family["name"]: family for family in json.loads(done.stdout)}
    assert families["gpufeed_build_info"]["rows"][0]["labels"]["simulated"] == "false"
    assert families["gpufeed_storage_read_bytes_total"]["type"] == "counter"
    assert "nvml is absent" in done.stderr or "gpufeed_gpu_info" in families


def test_a_closed_standard_output_is_no_traceback() -> None:
    command = f"{sys.executable} -m gpufeed metrics >&-"
    done = subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_disk_that_is_full_is_one_line_and_no_traceback() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gpufeed", "metrics"], check=False, stdout=full, stderr=subprocess.PIPE, timeout=30
        )
    assert done.returncode == 4
    assert done.stderr == b"gpufeed: what it prints cannot be written: No space left on device\n"
