# SPDX-License-Identifier: Apache-2.0
"""A probe that comes after another: what the old one still holds, what it cannot hold any more, what it had saved."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpufeed.model.frame import LaneStatus
from gpufeed.model.ids import LaneId
from gpufeed.probe.lock import LaneLock, format_holder, parse_holder
from probing import Watch, install_source, only_extra, supervised
from running import poll

pytestmark = [pytest.mark.slow, pytest.mark.fault]
LANE_FREE = LaneStatus(lane=LaneId("one"), collector="extra", busy_since_ns=None, late_after_ns=1, stuck_after_ns=1)
FUSE_SERVER = Path(__file__).parents[1] / "e2e" / "fuse_server.py"


@pytest.fixture(autouse=True)
def _source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_source(tmp_path / "packages")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))


@pytest.fixture
def held(tmp_path: Path) -> Iterator[LaneLock]:
    """Lane one, held by a call of this very thread."""
    lock = LaneLock(str(tmp_path / "run"), LaneId("one"))
    assert lock.acquire(4711) is None
    yield lock
    lock.close()


def is_held(watch: Watch) -> bool:
    lane = watch.lane("one")
    return lane is not None and lane.busy_since_ns == 4711


async def test_a_lane_that_another_process_holds_is_busy_since_then_and_starts_when_it_is_free(
    tmp_path: Path, held: LaneLock
) -> None:
    async with supervised(only_extra(tmp_path / "run")) as (_, watch):
        await watch.reads("two")
        await watch.until(lambda: is_held(watch), 10, "lane one held elsewhere")
        lane = watch.lane("one")
        assert lane is not None
        assert lane.reads == 0
        assert str(os.getpid()) in lane.call
        held.release()
        await watch.reads("one")


async def test_a_lock_whose_thread_is_gone_does_not_hold_a_lane(tmp_path: Path, held: LaneLock) -> None:
    tids: list[int] = []
    thread = threading.Thread(target=lambda: tids.append(threading.get_native_id()))
    thread.start()
    thread.join()
    holder = parse_holder(held.path.read_bytes())
    assert holder is not None
    held.path.write_bytes(format_holder(replace(holder, tid=tids[0])))
    async with supervised(only_extra(tmp_path / "run")) as (_, watch):
        await watch.reads("one")


async def test_a_reload_while_a_lane_hangs_starts_no_second_one_beside_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    async with supervised(only_extra(run)) as (supervisor, watch):
        await watch.reads("one")
        (run / "hang-one").touch()
        await watch.until(lambda: (watch.lane("one") or LANE_FREE).busy_since_ns, 10, "lane one busy")
        supervisor.apply(only_extra(run, fast_period_ns=60_000_000))
        await watch.until(lambda: "a call of process" in (watch.lane("one") or LANE_FREE).call, 10, "lane one held")
        (run / "hang-one").unlink()
        await watch.reads("one")


async def test_blobs_outlive_the_probe_and_the_server(tmp_path: Path) -> None:
    config = only_extra(tmp_path / "run", state_dir=str(tmp_path / "state"))
    async with supervised(config) as (supervisor, watch):
        supervisor.load("node")
        supervisor.save("alerts", b"pending")
        await watch.until(lambda: watch.blobs == {"node": None}, 25, "nothing to load")
        await watch.until(lambda: watch.saved == {"alerts": ""}, 25, "alerts saved")
        supervisor.save("node", b"just before the end")
    async with supervised(config) as (supervisor, watch):
        supervisor.load("node")
        supervisor.load("alerts")
        wanted = {"node": b"just before the end", "alerts": b"pending"}
        await watch.until(lambda: watch.blobs == wanted, 25, "both blobs")


async def test_an_order_that_no_probe_answered_is_repeated_to_the_next(tmp_path: Path) -> None:
    config = only_extra(tmp_path / "run", state_dir=str(tmp_path / "state"))
    async with supervised(config) as (supervisor, watch):
        await watch.reads("one")
        assert supervisor.pid is not None
        os.kill(supervisor.pid, signal.SIGKILL)
        supervisor.save("node", b"in between")
        await watch.until(lambda: watch.saved == {"node": ""}, 25, "node saved")


@pytest.fixture
def hanging_file(tmp_path: Path) -> Iterator[Path]:
    """A file below the runtime directory that lane one reads, and whose reader never comes back."""
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip("mounting needs root and /dev/fuse")
    path = tmp_path / "run" / "read-one"
    path.parent.mkdir()
    path.touch()
    command = [sys.executable, str(FUSE_SERVER), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        said = server.stdout.readline()
        if said != "mounted\n":
            pytest.skip(f"FUSE cannot be mounted here: {said.strip()}")
        yield path
        server.stdin.close()


async def test_a_probe_that_survives_sigkill_in_the_kernel_is_left_behind_and_costs_one_lane(
    hanging_file: Path,
) -> None:
    run = hanging_file.parent
    old = await kill_in_the_kernel(run)
    async with supervised(only_extra(run)) as (_, watch):
        await watch.reads("two")
        await watch.until(lambda: str(old) in (watch.lane("one") or LANE_FREE).call, 10, "lane one held")
        assert "D" in thread_states(old)


async def kill_in_the_kernel(run: Path) -> int:
    """Run a probe until a lane sits in the kernel, kill it, see the next one work, and stop; the pid of the first."""
    async with supervised(only_extra(run)) as (supervisor, watch):
        await watch.reads("two")
        await watch.until(lambda: (watch.lane("one") or LANE_FREE).busy_since_ns, 10, "lane one busy")
        old = supervisor.pid
        assert old is not None
        os.kill(old, signal.SIGKILL)
        # whoever waits in the kernel cannot be killed, and keeps every descriptor and lock of the process
        poll(lambda: "D" in thread_states(old), 10, "a thread of the killed probe in state D")
        await watch.until(lambda: watch.frames[-1].probe_pid not in {0, old}, 40, "a frame of another probe")
        await watch.until(lambda: str(old) in (watch.lane("one") or LANE_FREE).call, 10, "lane one held")
        await watch.reads("two")
        await supervisor.stop(8)
    return old


def thread_states(pid: int) -> set[str]:
    """The states of all threads of a process: its first one may be a zombie while another sits in the kernel."""
    states: set[str] = set()
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            found = re.search(r"^State:\t(\w)", status.read_text(encoding="utf-8"), re.MULTILINE)
        except OSError:
            continue
        states.update(found.groups() if found else ())
    return states
