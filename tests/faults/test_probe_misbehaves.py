# SPDX-License-Identifier: Apache-2.0
"""Probes that are not what they should be: another build, another protocol, nonsense, deaf, inside a driver call."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from gpufeed.clock import SystemClock
from gpufeed.wire.life import Patience
from gpufeed.wire.supervisor import ProbeSupervisor
from probing import Watch, copy_package, install_source, only_extra, supervised

pytestmark = [pytest.mark.slow, pytest.mark.fault]

OTHER = """
import os, signal, socket, sys, time
from gpufeed.clock import SystemClock, read_frame_time
from gpufeed.model.frame import Frame, LaneStatus
from gpufeed.wire.build_id import build_id
from gpufeed.wire.framing import encode
from gpufeed.wire.messages import *

def main():
    link = socket.socket(fileno=int(sys.argv[1]))
    behave(link)

def say(link, message):
    link.sendall(encode(message))

def frame(*lanes):
    return Frame(sequence=1, time=read_frame_time(SystemClock()), lanes=lanes, probe_pid=os.getpid())
"""

NONSENSE = (
    OTHER
    + """
def behave(link):
    say(link, frame())
    link.sendall(b"\\x00\\x00\\x00\\x03abc")
    time.sleep(60)
"""
)

FOREIGN = (
    OTHER
    + """
def behave(link):
    say(link, Hello(protocol=99, build_id=build_id(), pid=os.getpid()))
    time.sleep(60)
"""
)

DEAF = (
    OTHER
    + """
def behave(link):
    while True:
        say(link, frame())
        time.sleep(0.1)
"""
)

MUTE = (
    OTHER
    + """
def behave(link):
    time.sleep(60)
"""
)

IN_A_CALL = (
    OTHER
    + """
def behave(link):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    lane = LaneStatus(lane="gpu0", collector="nvml", busy_since_ns=1, late_after_ns=1, stuck_after_ns=1, call=CALL)
    say(link, frame(lane))
    while True:
        time.sleep(0.1)
        if link.recv(65536) == b"":
            time.sleep(60)
"""
)

SOON = Patience(first_frame_s=2, frame_s=1, echo_s=1, terminate_s=0.3, kill_s=0.5)


@pytest.fixture(autouse=True)
def _unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of the package are not what coverage is about."""
    for name in ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def use(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.syspath_prepend(str(copy_package(folder / "other", probe__main=program)))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param(NONSENSE, "nonsense", id="nonsense"),
        pytest.param(FOREIGN, "speaks protocol 99", id="another protocol"),
        pytest.param(DEAF, "configuration 1 was not applied", id="deaf"),
        pytest.param(MUTE, "no first frame", id="mute"),
        pytest.param("raise SystemExit(3)", "the probe ended", id="ends at once"),
    ],
)
async def test_a_probe_that_is_none_is_replaced_and_the_reason_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, program: str, said: str
) -> None:
    use(tmp_path, monkeypatch, program)
    async with supervised(only_extra(tmp_path / "run"), SOON) as (_, watch):
        await watch.until(lambda: len(watch.started) >= 2, 25, "a second probe")
        assert said in caplog.text
        with pytest.raises(ProcessLookupError):
            os.kill(watch.started[0], 0)


async def test_a_probe_of_another_build_means_an_upgrade_and_serves_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_source(tmp_path / "packages")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    other = copy_package(tmp_path / "other")
    os.utime(other / "gpufeed" / "units.py", ns=(1, 1))
    monkeypatch.syspath_prepend(str(other))
    async with supervised(only_extra(tmp_path / "run")) as (_, watch):
        await watch.reads("one")
        assert len(watch.upgrades) == 1


async def test_a_probe_inside_a_driver_call_is_never_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(tmp_path, monkeypatch, f"CALL = 'nvmlDeviceGetPowerUsage'{IN_A_CALL}")
    async with supervised(only_extra(tmp_path / "run"), SOON) as (_, watch):
        await watch.until(lambda: len(watch.started) >= 2, 25, "a successor")
        os.kill(watch.started[0], 0)
    for pid in watch.started:
        os.kill(pid, signal.SIGKILL)


async def test_a_probe_outside_a_driver_call_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(tmp_path, monkeypatch, f"CALL = '/sys/class/infiniband/mlx5_0/ports/1/rate'{IN_A_CALL}")
    async with supervised(only_extra(tmp_path / "run"), SOON) as (_, watch):
        await watch.until(lambda: len(watch.started) >= 2, 25, "a successor")
        with pytest.raises(ProcessLookupError):
            os.kill(watch.started[0], 0)


async def test_stopping_a_probe_that_cannot_be_killed_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(tmp_path, monkeypatch, f"CALL = 'nvmlDeviceGetPowerUsage'{IN_A_CALL}")
    watch = Watch()
    supervisor = ProbeSupervisor(only_extra(tmp_path / "run"), watch.listener(), SystemClock())
    supervisor.start()
    await watch.until(lambda: watch.frames, 25, "its frame")
    async with asyncio.timeout(10):
        assert not await supervisor.stop(2)
    os.kill(watch.started[0], signal.SIGKILL)


async def test_an_interpreter_that_cannot_be_started_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sys.executable", "/no/such/python")
        watch = Watch()
        supervisor = ProbeSupervisor(only_extra(tmp_path / "run"), watch.listener(), SystemClock())
        supervisor.start()
        await watch.until(lambda: "/no/such/python" in caplog.text, 10, "the reason in the log")
    await watch.until(lambda: watch.frames and not watch.frames[-1].gap, 25, "a frame")
    assert await supervisor.stop(5)
