# SPDX-License-Identifier: Apache-2.0
"""Processes of end-to-end tests: the installed command, a real Prometheus, and how to wait for what they promise."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def poll(claim: Callable[[], Any], within_s: float, what: str) -> Any:
    """Ask until the answer is true; fail, naming what was waited for, when the deadline has passed."""
    deadline = time.monotonic() + within_s
    while True:
        answer = claim()
        if answer:
            return answer
        if time.monotonic() > deadline:
            pytest.fail(f"within {within_s} s not seen: {what}")
        time.sleep(0.1)


def fetch(url: str, timeout_s: float = 5) -> str:
    with urllib.request.urlopen(url, timeout=timeout_s) as response:
        text: str = response.read().decode()
        return text


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Process:
    """A process of ours, its log, and its end."""

    popen: subprocess.Popen[bytes]
    log: Path
    url: str = ""

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def series(self) -> Series:
        """Everything /metrics says now; an answer is due within 5 s whatever hangs behind it."""
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(fetch(self.url + "/metrics"))
            for sample in family.samples
        }

    def values(self, metric: str, **labels: str) -> dict[frozenset[tuple[str, str]], float]:
        return {
            key: value for (name, key), value in self.series().items() if name == metric and set(labels.items()) <= key
        }

    def value(self, metric: str, **labels: str) -> float | None:
        """The one value of a metric with these labels; None: there is none."""
        return next(iter(self.values(metric, **labels).values()), None)

    def stop(self, within_s: float = 10) -> int:
        """SIGTERM, and the exit code."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
        try:
            return self.popen.wait(within_s)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait(5)
            pytest.fail(f"still running {within_s} s after SIGTERM:\n{self.text()[-2000:]}")


@dataclass
class Starter:
    """Starts processes and ends what is left of them."""

    folder: Path
    running: list[Process] = field(default_factory=list)

    def start(self, *command: str, environment: dict[str, str] | None = None) -> Process:
        log = self.folder / f"{len(self.running)}.log"
        with log.open("wb") as output:
            popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        process = Process(popen, log)
        self.running.append(process)
        return process

    def gpufeed(
        self,
        command: str,
        *flags: str,
        port: int = 0,
        environment: dict[str, str] | None = None,
        descriptors: int | None = None,
    ) -> Process:
        """`gpufeed run` or `demo` on a loopback port; returns when it answers. `descriptors`: the most it may have."""
        limited = () if descriptors is None else ("prlimit", f"--nofile={descriptors}:{descriptors}")
        process = self.start(
            *limited,
            sys.executable,
            "-m",
            "gpufeed",
            command,
            f"--web.listen-address=127.0.0.1:{port}",
            *flags,
            environment=environment,
        )

        def address() -> str | None:
            if process.popen.poll() is not None:
                pytest.fail(f"gpufeed {command} ended with {process.popen.returncode}:\n{process.text()}")
            found = re.search(r"127\.0\.0\.1:(\d{2,5})\b", process.text())
            return f"http://127.0.0.1:{found[1]}" if found and found[1] != "0" else None

        process.url = poll(address, 20, f"the address gpufeed {command} listens on")
        poll(lambda: answers(process.url + "/-/healthy"), 10, "an answer of /-/healthy")
        return process


def answers(url: str) -> bool:
    try:
        fetch(url)
    except (urllib.error.URLError, OSError):
        return False
    return True


@dataclass
class Prometheus:
    """A real Prometheus on a loopback port."""

    process: Process

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Instant query: the result vector."""
        encoded = urllib.parse.urlencode({"query": expression})
        answer = json.loads(fetch(f"{self.process.url}/api/v1/query?{encoded}"))
        assert answer["status"] == "success", answer
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def firing(self) -> set[str]:
        """Names of alerts that fire."""
        answer = json.loads(fetch(f"{self.process.url}/api/v1/alerts"))
        return {alert["labels"]["alertname"] for alert in answer["data"]["alerts"] if alert["state"] == "firing"}
