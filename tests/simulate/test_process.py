# SPDX-License-Identifier: Apache-2.0
"""The truth process: it is there when the block is, its time is real, and it ends with whoever started it."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpufeed.simulate.block import BlockReader
from gpufeed.simulate.faults import decode
from gpufeed.wire.spawn import Child, spawn_python

DEADLINE_S = 20.0
Start = Callable[..., tuple[Child, int]]


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S  # liveness is about real time
    while not is_so():
        assert time.monotonic() < deadline, is_so
        time.sleep(0.02)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    children: list[Child] = []
    ends: list[int] = []

    def run(*more: str) -> tuple[Child, int]:
        theirs, ours = os.pipe()
        ends.append(ours)
        arguments = ["--root", str(tmp_path), "--truth", str(tmp_path / "truth"), "--gpus", "1"]
        child = spawn_python(
            "gpufeed.simulate.process", [*arguments, "--lifeline", str(theirs), *more], pass_fds=[theirs]
        )
        os.close(theirs)
        children.append(child)
        wait_until((tmp_path / "truth").exists)
        return child, ours

    yield run
    for end in ends:
        os.close(end)
    for child in children:
        wait_until(lambda child=child: child.poll() is not None)  # type: ignore[misc]  # bound now, not later


def test_time_in_the_block_is_real(start: Start, tmp_path: Path) -> None:
    start("--scenario", "idle_free", "--model", "a100", "--driver-version", "580.95.05")
    reader = BlockReader(str(tmp_path / "truth"))
    first = reader.read(0)
    wait_until(lambda: reader.read(0).header.now_ns > first.header.now_ns + 500_000_000)
    last = reader.read(0)
    passed_s = (last.header.now_ns - first.header.now_ns) / 1e9
    assert last.value("energy_j") - first.value("energy_j") == pytest.approx(52.0 * passed_s)
    assert abs(time.monotonic_ns() - last.header.now_ns) < DEADLINE_S * 1e9
    assert (last.header.model, last.header.driver_version) == ("a100", "580.95.05")
    assert (tmp_path / "sys/class/infiniband/mlx5_0").exists()


def test_it_ends_with_its_lifeline(start: Start, tmp_path: Path) -> None:
    child, lifeline = start()
    os.write(lifeline, b"still here")
    reader = BlockReader(str(tmp_path / "truth"))
    now_ns = reader.read().header.now_ns
    wait_until(lambda: reader.read().header.now_ns > now_ns + 200_000_000)
    assert child.poll() is None
    os.dup2(os.open(os.devnull, os.O_WRONLY), lifeline)
    wait_until(lambda: child.poll() is not None)
    assert child.poll() == 0


def test_it_ends_when_asked_to(start: Start) -> None:
    child, _ = start()
    os.kill(child.pid, signal.SIGTERM)
    wait_until(lambda: child.poll() is not None)
    assert child.poll() == 0


def test_faults_in_a_file_stand_while_they_are_there(start: Start, tmp_path: Path) -> None:
    start()
    reader = BlockReader(str(tmp_path / "truth"))
    path = tmp_path / "faults.json"
    path.write_text("[half")
    new = tmp_path / "faults.new"
    new.write_text(json.dumps([{"effect": "hang", "gpu": 0}]))
    new.replace(path)
    wait_until(lambda: [fault.effect for fault in decode(reader.read().faults)] == ["hang"])
    path.unlink()
    wait_until(lambda: reader.read().faults == b"")
