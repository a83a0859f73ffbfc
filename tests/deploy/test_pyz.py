# SPDX-License-Identifier: Apache-2.0
"""`make pyz`: one file that runs, whoever built it and wherever."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpufeed
from container import why_not
from packaging_run import build

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pyz")
    build(folder, "pyz")
    return folder / "gpufeed.pyz"


def run(pyz: Path, *arguments: str, home: Path) -> str:
    environment = {**os.environ, "SHIV_ROOT": str(home), "PYTHONPATH": ""}
    command = [sys.executable, "-I", str(pyz), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, env=environment).stdout


def test_it_says_its_version_and_collects_once_with_a_probe_of_its_own(pyz: Path, tmp_path: Path) -> None:
    assert run(pyz, "--version", home=tmp_path) == f"gpufeed {gpufeed.__version__}\n"
    found = json.loads(run(pyz, "once", "--format=json", home=tmp_path))
    assert {"gpufeed_build_info", "gpufeed_host_cpu_seconds_total"} <= {family["name"] for family in found}


def test_building_it_twice_gives_the_same_bytes(pyz: Path, tmp_path: Path) -> None:
    build(tmp_path, "pyz")
    assert (tmp_path / "gpufeed.pyz").read_bytes() == pyz.read_bytes()
