# SPDX-License-Identifier: Apache-2.0
"""The installed command as a process of its own, and a real Prometheus beside it."""

import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

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
def prometheus(starter: Starter, tmp_path: Path) -> Callable[..., Prometheus]:
    """Start Prometheus over targets {job: host:port} with the text of a rule file; skip where it is not installed."""
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed (Debian: apt-get install prometheus)")

    def start(targets: dict[str, str], rules: str, alertmanagers: Sequence[str] = ()) -> Prometheus:
        (tmp_path / "rules.yml").write_text(rules, encoding="utf-8")
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": list(alertmanagers)}]}]},
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


@pytest.fixture
def told() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A webhook behind Alertmanager: its address, and every alert it was told of."""
    heard: list[dict[str, Any]] = []

    class Webhook(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.extend(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 as it is declared
            """Keep quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", heard
    server.shutdown()
    server.server_close()
    thread.join()
