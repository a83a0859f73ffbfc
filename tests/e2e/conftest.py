# SPDX-License-Identifier: Apache-2.0
"""The installed command as a process of its own, and a real Prometheus beside it."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from running import Prometheus, Starter, answers, free_port, poll


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    """Processes of this test; all of them end with it."""
    starting = Starter(tmp_path)
    yield starting
    for process in reversed(starting.running):
        if process.popen.poll() is None:
            process.popen.terminate()
    for process in reversed(starting.running):
        try:
            process.popen.wait(10)
        except subprocess.TimeoutExpired:
            process.popen.kill()
            process.popen.wait(5)


@pytest.fixture
def prometheus(starter: Starter, tmp_path: Path) -> Callable[[dict[str, str], str], Prometheus]:
    """Start Prometheus over targets {job: host:port} with the text of a rule file; skip where it is not installed."""
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed (Debian: apt-get install prometheus)")

    def start(targets: dict[str, str], rules: str) -> Prometheus:
        (tmp_path / "rules.yml").write_text(rules, encoding="utf-8")
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [
                {"job_name": job, "static_configs": [{"targets": [address]}]} for job, address in targets.items()
            ],
        }
        (tmp_path / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
        port = free_port()
        process = starter.start(
            "prometheus",
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
        )
        process.url = f"http://127.0.0.1:{port}"
        poll(lambda: answers(process.url + "/-/ready"), 20, f"a ready Prometheus:\n{process.text()}")
        return Prometheus(process)

    return start
