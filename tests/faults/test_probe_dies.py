# SPDX-License-Identifier: Apache-2.0
"""The probe is killed, crashes, stops, hangs or is asked to end: what the server sees, and what comes after."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from gpufeed.units import NS_PER_S
from probing import install_source, only_extra, supervised

pytestmark = [pytest.mark.slow, pytest.mark.fault]


@pytest.fixture(autouse=True)
def _source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_source(tmp_path / "packages")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_probe_runs_what_is_desired_and_nothing_of_the_servers_world(tmp_path: Path) -> None:
    async with supervised(only_extra(tmp_path / "run")) as (supervisor, watch):
        await watch.reads("one")
        await watch.reads("two")
        await watch.until(lambda: watch.applied == [1], 10, "the echo")
        assert watch.value("servers_modules", "one") == 0
        assert watch.frames[-1].probe_pid == supervisor.pid
        assert watch.frames[-1].cost is not None
        assert watch.frames[-1].cost.resident_bytes > 1_000_000
        assert watch.upgrades == []
        sequences = [frame.sequence for frame in watch.frames]
        assert sequences == list(range(1, len(sequences) + 1))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV], ids=lambda number: number.name)
async def test_a_probe_that_dies_is_followed_by_another(tmp_path: Path, number: signal.Signals) -> None:
    async with supervised(only_extra(tmp_path / "run")) as (supervisor, watch):
        await watch.reads("one")
        old = supervisor.pid
        assert old is not None
        os.kill(old, number)
        await watch.until(lambda: watch.frames[-1].probe_pid not in {0, old}, 25, "a frame of another probe")
        await watch.reads("two")
        assert supervisor.starts == 2
        assert not is_there(old)


async def test_a_probe_that_stands_still_is_a_gap_and_is_replaced(tmp_path: Path) -> None:
    async with supervised(only_extra(tmp_path / "run")) as (supervisor, watch):
        await watch.reads("one")
        old = supervisor.pid
        assert old is not None
        os.kill(old, signal.SIGSTOP)
        await watch.until(watch.gaps, 15, "a gap frame")
        gap = next(frame for frame in watch.frames if frame.gap)
        assert (gap.readings, gap.lanes, gap.probe_pid) == ((), (), 0)
        await watch.until(lambda: watch.frames[-1].probe_pid not in {0, old}, 25, "a frame of another probe")
        assert not is_there(old)


async def test_a_lane_that_hangs_says_so_and_the_other_goes_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    async with supervised(only_extra(run)) as (supervisor, watch):
        await watch.reads("one")
        (run / "hang-one").touch()

        def is_stuck() -> bool:
            lane = watch.lane("one")
            now_ns = watch.frames[-1].time.monotonic_ns
            return lane is not None and lane.busy_since_ns is not None and now_ns - lane.busy_since_ns > NS_PER_S // 2

        await watch.until(is_stuck, 10, "lane one busy")
        stuck = watch.lane("one")
        assert stuck is not None
        assert stuck.call == "test_read"
        since = len(watch.frames)
        await watch.reads("two")
        assert watch.value("asked", "one", since) is None
        (run / "hang-one").unlink()
        await watch.reads("one")
        assert supervisor.starts == 1


async def test_stopping_closes_readers_and_leaves_no_process(tmp_path: Path) -> None:
    run = tmp_path / "run"
    async with supervised(only_extra(run)) as (supervisor, watch):
        await watch.reads("two")
        pid = supervisor.pid
        assert pid is not None
        assert await supervisor.stop(10)
        assert not is_there(pid)
        assert (run / "closed-one").exists()
        assert (run / "closed-two").exists()


async def test_stopping_with_a_lane_that_hangs_is_bounded(tmp_path: Path) -> None:
    run = tmp_path / "run"
    async with supervised(only_extra(run)) as (supervisor, watch):
        await watch.reads("one")
        (run / "hang-one").touch()
        await watch.reads("two")
        pid = supervisor.pid
        assert pid is not None
        async with asyncio.timeout(20):
            assert await supervisor.stop(4)
        assert not is_there(pid)
        assert (run / "closed-two").exists()
        assert not (run / "closed-one").exists()


async def test_a_probe_whose_server_is_gone_ends_by_itself(tmp_path: Path) -> None:
    async with supervised(only_extra(tmp_path / "run")) as (supervisor, watch):
        await watch.reads("one")
        life = supervisor._life
        assert life is not None
        life.link.close()
        await watch.until(lambda: life.child.poll() is not None, 10, "the end of the probe")
        assert life.child.poll() == 0
        supervisor._life = None


async def test_sigterm_from_outside_ends_a_probe_in_order_and_another_comes(tmp_path: Path) -> None:
    run = tmp_path / "run"
    async with supervised(only_extra(run)) as (supervisor, watch):
        await watch.reads("one")
        old = supervisor.pid
        assert old is not None
        os.kill(old, signal.SIGTERM)
        await watch.until(lambda: watch.frames[-1].probe_pid not in {0, old}, 25, "a frame of another probe")
        assert (run / "closed-one").exists()


async def test_reload_keeps_what_is_equal_and_echoes_the_generation(tmp_path: Path) -> None:
    run = tmp_path / "run"
    async with supervised(only_extra(run)) as (supervisor, watch):
        await watch.reads("one")
        assert supervisor.apply(only_extra(run, slow_period_ns=3 * NS_PER_S)) == 2
        await watch.until(lambda: watch.applied == [1, 2], 25, "the echo of generation 2")
        assert supervisor.apply(only_extra(run, extra_sources=())) == 3
        await watch.until(lambda: watch.lane("one") is None, 25, "lane one gone")
        withdrawn = [lane for frame in watch.frames for lane in frame.withdrawn]
        assert {"one", "two", "extra:ruled"} <= set(withdrawn)
        assert supervisor.starts == 1


async def test_a_driver_that_changed_asks_for_a_new_process(tmp_path: Path) -> None:
    run = tmp_path / "run"
    async with supervised(only_extra(run)) as (supervisor, watch):
        await watch.reads("one")
        old = supervisor.pid
        (run / "event-driver_changed").touch()
        await watch.until(lambda: supervisor.pid not in {None, old}, 25, "another probe")
        (run / "event-driver_changed").unlink()
        assert [getattr(event, "kind", "") for event in watch.events()] == ["driver_changed"]
        await watch.until(lambda: watch.frames[-1].probe_pid not in {0, old}, 25, "a frame of another probe")


async def test_release_is_seen_by_readers_and_taken_back_by_time(tmp_path: Path) -> None:
    async with supervised(only_extra(tmp_path / "run")) as (supervisor, watch):
        await watch.reads("one")
        assert watch.value("released", "one") == 0
        supervisor.release(watch.frames[-1].time.monotonic_ns + 60 * NS_PER_S)
        await watch.until(lambda: watch.value("released", "one") == 1, 10, "released")
        supervisor.resume()
        await watch.until(lambda: watch.value("released", "one") == 0, 10, "resumed")
        supervisor.release(watch.frames[-1].time.monotonic_ns + NS_PER_S)
        await watch.until(lambda: watch.value("released", "one") == 1, 10, "released again")
        await watch.until(lambda: watch.value("released", "one") == 0, 15, "taken back by time")


async def test_a_second_event_comes_at_once_not_with_the_next_tick(tmp_path: Path) -> None:
    run = tmp_path / "run"
    async with supervised(only_extra(run, tick_ns=2 * NS_PER_S)) as (_, watch):
        await watch.reads("one")
        for name in ("a", "b"):
            (run / f"event-{name}").touch()
            await watch.until(lambda name=name: name in str(watch.events()), 5, f"event {name}")  # type: ignore[misc] # bound at once
        spacings = [
            after.time.monotonic_ns - before.time.monotonic_ns
            for before, after in zip(watch.frames, watch.frames[1:], strict=False)
            if after.events
        ]
        assert all(spacing < 2 * NS_PER_S for spacing in spacings)


async def test_a_reader_that_exits_ends_its_read_and_nothing_else(tmp_path: Path) -> None:
    run = tmp_path / "run"
    async with supervised(only_extra(run)) as (supervisor, watch):
        await watch.reads("one")
        (run / "raise-one").write_text("SystemExit", encoding="utf-8")
        await watch.until(lambda: any(frame.failures for frame in watch.frames), 10, "a failure")
        await watch.reads("two")
        (run / "raise-one").unlink()
        await watch.reads("one")
        assert supervisor.starts == 1


async def test_a_thread_that_ends_ends_the_probe_and_another_comes(tmp_path: Path) -> None:
    run = tmp_path / "run"
    async with supervised(only_extra(run)) as (supervisor, watch):
        await watch.reads("one")
        (run / "raise-one").write_text("KeyboardInterrupt", encoding="utf-8")
        await watch.until(lambda: supervisor.starts >= 2, 25, "another probe")
        (run / "raise-one").unlink()
        await watch.reads("one")


async def test_without_a_usable_runtime_directory_lanes_work_unlocked_and_say_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = only_extra(tmp_path / "run")
    (tmp_path / "run" / "lanes").touch()  # where the locks' directory belongs
    async with supervised(config) as (_, watch):
        await watch.reads("two")
        await watch.until(lambda: "lane=two locked=no" in caplog.text, 10, "a line in the log")
        assert caplog.text.count("lane=two locked=no") == 1
