# SPDX-License-Identifier: Apache-2.0
"""The helper in a job: what it measures is true, it needs nothing, and it never harms the loop."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gpufeed.report as told_by
from gpufeed.report import Report

HELPER = Path(told_by.__file__)
BATCHES = 40


def slow(truth: list[float]) -> Iterator[list[float]]:
    """A loader that takes its time, and knows how much it took."""
    for number in range(BATCHES):
        began = time.monotonic()
        time.sleep(0.02 + 0.01 * (number % 3))
        batch = [float(value) for value in range(20_000)]
        truth.append(time.monotonic() - began)
        yield batch


def train(batch: list[float]) -> float:
    """Real arithmetic on this machine's processor."""
    return sum(value * value for value in batch)


def said(folder: Path) -> dict[str, Any]:
    (file,) = folder.glob("*.json")
    told: dict[str, Any] = json.loads(file.read_bytes())
    return told


def test_a_loop_with_a_slow_loader_shows_its_data_wait_within_two_percent(tmp_path: Path) -> None:
    truth: list[float] = []
    report: Report[list[float]] = Report(str(tmp_path), flops_per_step=2.0 * 20_000)
    for batch in report.batches(slow(truth)):
        train(batch)
    told = said(tmp_path)
    assert abs(told["data_wait_s"] - sum(truth)) <= 0.02 * sum(truth)
    assert told["data_wait_s"] < told["elapsed_s"]
    assert (told["steps"], told["model_flops"]) == (BATCHES, BATCHES * 40_000)
    assert not list(tmp_path.glob("*.new"))


def test_it_tells_a_socket(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.settimeout(5)
        report: Report[int] = Report(str(tmp_path / "s"), every_s=0)
        report.step(flops=5, samples=2, tokens=7)
        told = json.loads(listening.recv(4096))
    assert (told["model_flops"], told["samples"], told["tokens"], told["steps"]) == (5, 2, 7, 1)


def test_a_loop_goes_on_where_nobody_listens_or_the_queue_is_full(tmp_path: Path) -> None:
    for to in (str(tmp_path / "none"), "/dev/null", "x" * 300, "a\0b"):
        report: Report[int] = Report(to, every_s=0)
        assert list(report.batches(range(3))) == [0, 1, 2]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(tmp_path / "s"))
        report = Report(str(tmp_path / "s"), every_s=0)
        assert len(list(report.batches(range(3000)))) == 3000


def test_an_error_of_the_loader_is_the_loops_own(tmp_path: Path) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    report: Report[int] = Report(str(tmp_path))
    with pytest.raises(ValueError, match="no more"):
        list(report.batches(broken()))
    assert report.steps == 1


def test_the_file_works_alone_and_imports_nothing_of_ours(tmp_path: Path) -> None:
    copy = tmp_path / "report.py"
    copy.write_bytes(HELPER.read_bytes())
    code = "import sys, report; report.Report().step(); assert not [m for m in sys.modules if m.startswith('gpufeed')]"
    subprocess.run([sys.executable, "-S", "-c", code], cwd=tmp_path, check=True, timeout=20)
