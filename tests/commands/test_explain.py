# SPDX-License-Identifier: Apache-2.0
"""`gpufeed explain` as a new user types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from running import Starter, free_port, poll

pytestmark = pytest.mark.slow


def gpufeed(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "gpufeed", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)
    return done.returncode, done.stdout + done.stderr


def test_a_demo_explains_itself_by_url_and_by_socket(starter: Starter, tmp_path: Path) -> None:
    file = tmp_path / "gpufeed.yml"
    file.write_text(f"paths: {{runtime: {tmp_path / 'run'}}}\n", encoding="utf-8")
    daemon = starter.gpufeed("demo", "--scenario=storage_starved", "--gpus=2", f"--config.file={file}")
    by_url = f"--url={daemon.url}"
    whole = "All 2 GPUs: waiting for storage"
    said = poll(lambda: (told := gpufeed("explain", by_url)[1]) and whole in told and told, 60, "why, of both GPUs")
    assert "(simulated: nothing of it exists)" in said.splitlines()[0]
    assert "slurm job" not in said
    assert "All 2 GPUs (slurm job 4242): waiting for storage" in gpufeed("explain", f"--config.file={file}")[1]
    assert gpufeed("explain", by_url, "--gpu=1")[1].startswith("GPU 1: waiting for storage")
    assert json.loads(gpufeed("explain", by_url, "--json")[1])["parts"][0]["cause"] == "storage"
    code, said = gpufeed("top", "--once", by_url)
    assert code == 0, said
    assert "starved storage" in said
    assert "simulated: storage_starved" in said
    assert gpufeed("top", "--once", f"--config.file={file}")[0] == 0
    code, said = gpufeed("explain", by_url, "--gpu=7")
    assert (code, said) == (2, "gpufeed explain: --gpu 7: there are GPU 0, GPU 1\n")


def test_what_cannot_be_answered_is_said() -> None:
    assert gpufeed("explain", "--window=2h")[0] == 2
    assert gpufeed("explain", "--window=soon")[0] == 2
    assert gpufeed("explain", "--url=file:///etc/passwd")[0] == 2
    assert gpufeed("top", "--once", "--url=file:///etc/passwd")[0] == 3
    code, said = gpufeed("explain", f"--url=http://127.0.0.1:{free_port()}")
    assert code == 3
    assert "is gpufeed running?" in said


def test_a_running_demo_can_be_recorded_and_replayed(starter: Starter, tmp_path: Path) -> None:
    file, case = tmp_path / "gpufeed.yml", tmp_path / "case"
    file.write_text(f"paths: {{runtime: {tmp_path / 'run'}}}\n", encoding="utf-8")
    daemon = starter.gpufeed("demo", "--scenario=storage_starved", "--gpus=2", f"--config.file={file}")
    poll(lambda: len(daemon.values("gpufeed_gpu_info")) == 2, 30, "who the GPUs are: said once a minute")
    code, said = gpufeed("record", str(case), "--for=8s", f"--config.file={file}")
    assert code == 0, said
    assert f"{case}: " in said
    assert "replaced: " in said
    code, said = gpufeed("replay", str(case))
    assert code == 0, said
    assert "of a simulated node: nothing of it exists" in said
    assert "All 2 GPUs" in said
    assert gpufeed("record", str(tmp_path / "none" / "case"), "--for=1s", f"--config.file={file}")[0] == 1
    assert gpufeed("record", str(case), "--for=1s", f"--socket={tmp_path / 'none.sock'}")[0] == 3
