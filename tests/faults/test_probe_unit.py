# SPDX-License-Identifier: Apache-2.0
"""The probe as a unit of its own: the server reaches it through a socket, and outlives it as it outlives a child."""

import contextlib
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from gpufeed.probe.host import EXIT_NOT_BOUND
from gpufeed.wire.start import unit_probe
from probing import install_source, only_extra, supervised

pytestmark = [pytest.mark.slow, pytest.mark.fault]


class Unit:
    """`gpufeed probe`, as systemd would run it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "probe.sock"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> int:
        path = os.pathsep.join([str(self._folder / "packages"), *filter(None, sys.path)])
        command = [sys.executable, "-m", "gpufeed", "probe", "--socket", str(self.path)]
        self.process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})
        return self.process.pid

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(15)

    def probes(self) -> list[int]:
        assert self.process is not None
        return [child.pid for child in psutil.Process(self.process.pid).children()]


@pytest.fixture
async def unit(tmp_path: Path) -> AsyncIterator[Unit]:
    install_source(tmp_path / "packages")
    made = Unit(tmp_path)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
        made.process.wait()


async def test_a_server_without_rights_reads_through_the_unit(tmp_path: Path, unit: Unit) -> None:
    unit.start()
    async with supervised(only_extra(tmp_path / "run"), start=unit_probe(unit.path)) as (supervisor, watch):
        await watch.reads("one")
        assert stat.S_IMODE(unit.path.stat().st_mode) == 0o600
        assert [supervisor.pid] == [unit.process and unit.process.pid]
        supervisor.apply(only_extra(tmp_path / "run"))
        await watch.until(lambda: watch.applied == [1, 2], 25, "the echo of a new configuration")
        assert len(unit.probes()) == 1
    assert unit.stop() == 0
    assert not unit.path.exists()


@pytest.mark.parametrize("whom", ["the unit", "its probe"])
async def test_what_is_killed_there_is_reached_again(tmp_path: Path, unit: Unit, whom: str) -> None:
    first = unit.start()
    async with supervised(only_extra(tmp_path / "run"), start=unit_probe(unit.path)) as (_, watch):
        await watch.reads("one")
        (probe,) = unit.probes()
        if whom == "the unit" and unit.process is not None:
            os.kill(first, signal.SIGKILL)
            unit.process.wait()
        os.kill(probe, signal.SIGKILL)  # as systemd does with what a unit leaves behind
        if whom == "the unit":
            unit.start()
        await watch.until(lambda: watch.frames[-1].probe_pid not in {0, probe}, 40, "a frame of another probe")


async def test_a_probe_that_stands_still_there_is_left_and_another_is_started(tmp_path: Path, unit: Unit) -> None:
    unit.start()
    async with supervised(only_extra(tmp_path / "run"), start=unit_probe(unit.path)) as (_, watch):
        await watch.reads("one")
        (still,) = unit.probes()
        os.kill(still, signal.SIGSTOP)
        try:
            await watch.until(lambda: watch.frames[-1].probe_pid not in {0, still}, 40, "a frame of another probe")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(still, signal.SIGCONT)


async def test_without_the_unit_the_server_says_what_is_missing(tmp_path: Path) -> None:
    async with supervised(only_extra(tmp_path / "run"), start=unit_probe(tmp_path / "gone.sock")) as (_, watch):
        await watch.until(watch.gaps, 25, "a gap frame")
        assert "is gpufeed-probe.service running?" in watch.gaps()[-1]


async def test_a_stopped_unit_leaves_no_process(tmp_path: Path, unit: Unit) -> None:
    unit.start()
    async with supervised(only_extra(tmp_path / "run"), start=unit_probe(unit.path)) as (_, watch):
        await watch.reads("one")
        (probe,) = unit.probes()
        assert unit.stop() == 0
        assert not psutil.pid_exists(probe)


def test_a_socket_that_cannot_be_had_is_said_with_its_path(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gpufeed", "probe", "--socket", str(tmp_path / "no" / "probe.sock")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "no/probe.sock: No such file" in done.stderr) == (EXIT_NOT_BOUND, True)


def test_a_file_where_the_units_socket_is_to_be_is_not_deleted(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    command = [sys.executable, "-m", "gpufeed", "probe", "--socket", str(precious)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "is no socket" in done.stderr) == (EXIT_NOT_BOUND, True)
    assert precious.read_text() == "precious"
