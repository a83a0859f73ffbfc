# SPDX-License-Identifier: Apache-2.0
"""What a running daemon is told from this machine: check, maintenance, ack, forget."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from running import Starter, poll

pytestmark = pytest.mark.slow


def gpufeed(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "gpufeed", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)
    return done.returncode, done.stdout + done.stderr


def test_without_a_daemon_the_health_is_not_known(tmp_path: Path) -> None:
    code, said = gpufeed("check", f"--socket={tmp_path / 'none.sock'}")
    assert (code, said.count("\n")) == (3, 1)
    assert "unknown: " in said
    assert "is gpufeed running" in said
    assert json.loads(gpufeed("check", "--json", f"--socket={tmp_path / 'none.sock'}")[1])["level"] == "unknown"


def test_a_check_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "gpufeed.yml"
    file.write_text('check: {exclude: ["gpu.xidd"]}\n', encoding="utf-8")
    code, said = gpufeed("run", f"--config.file={file}")
    assert code == 2
    assert "check.exclude.0: there is no check gpu.xidd; did you mean gpu.xid?" in said


def test_a_lost_gpu_fails_the_node_until_it_is_forgotten(starter: Starter, tmp_path: Path) -> None:
    file = tmp_path / "gpufeed.yml"
    file.write_text(f"paths: {{runtime: {tmp_path / 'run'}, state: {tmp_path}}}\n", encoding="utf-8")
    here = f"--config.file={file}"
    daemon = starter.gpufeed("demo", "--scenario=gpu_lost", "--gpus=2", here)
    poll(lambda: gpufeed("check", here)[0] == 0, 10, "a healthy node")
    assert gpufeed("maintenance", "on", "--for=1h", here)[1].startswith("maintenance until 20")
    poll(lambda: daemon.value("gpufeed_maintenance") == 1, 10, "maintenance")
    poll(lambda: gpufeed("check", here)[0] == 2, 60, "the lost GPU")
    code, said = gpufeed("check", here)
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith("failed: GPU 1")
    assert said.endswith("(under maintenance)\n")
    told = json.loads(gpufeed("check", "--json", here)[1])
    assert told["level"] == "failed"
    assert "gpu.lost" in {one["check"] for one in told["troubles"]}
    assert "is in this node" in gpufeed("forget", "0", here)[1]
    assert gpufeed("ack", "1", here)[0] == 0
    assert daemon.stop() == 0
    again = starter.gpufeed("demo", "--gpus=2", here)
    poll(lambda: again.value("gpufeed_maintenance") == 1, 20, "maintenance over a restart")
    assert gpufeed("maintenance", "off", here) == (0, "maintenance has ended\n")
    poll(lambda: again.value("gpufeed_maintenance") == 0, 10, "the end of maintenance")
    assert gpufeed("maintenance", "off", here) == (0, "there was no maintenance\n")
    assert gpufeed("maintenance", "on", "--for=soon", here)[0] == 2
