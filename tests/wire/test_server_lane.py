# SPDX-License-Identifier: Apache-2.0
"""The server's blocking work: off the loop, in order, and never queued behind what hangs."""

import asyncio
import threading

import pytest

from gpufeed.errors import LaneStuck
from gpufeed.wire.server_lane import ServerLane


async def test_work_runs_on_one_thread_that_is_not_the_loops() -> None:
    lane = ServerLane("test")
    threads = {await lane.run(threading.get_ident, timeout_s=5) for _ in range(3)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


async def test_what_the_work_raises_reaches_whoever_asked() -> None:
    lane = ServerLane("test")
    with pytest.raises(ValueError, match="invalid literal"):
        await lane.run(int, "seven", timeout_s=5)
    assert await lane.run(int, "7", timeout_s=5) == 7


async def test_jobs_are_done_in_order() -> None:
    lane, done = ServerLane("test"), list[int]()
    await asyncio.gather(*(lane.run(done.append, number, timeout_s=5) for number in range(5)))
    assert done == [0, 1, 2, 3, 4]


async def test_a_job_that_hangs_times_out_and_later_ones_fail_at_once() -> None:
    lane, come_back = ServerLane("dns"), threading.Event()
    with pytest.raises(TimeoutError):
        await lane.run(come_back.wait, timeout_s=0.05)
    with pytest.raises(LaneStuck, match=r"dns: Event\.wait has not come back"):
        await lane.run(int, "7", timeout_s=60)
    come_back.set()
    assert await eventually(lane) == 7


async def eventually(lane: ServerLane) -> int:
    async with asyncio.timeout(5):
        while True:
            try:
                return await lane.run(int, "7", timeout_s=5)
            except LaneStuck:
                await asyncio.sleep(0.01)


async def test_a_job_that_waited_in_vain_is_not_done_later() -> None:
    lane, come_back, done = ServerLane("test"), threading.Event(), list[int]()
    first = asyncio.create_task(lane.run(come_back.wait, timeout_s=30))
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await lane.run(done.append, 1, timeout_s=0.05)
    come_back.set()
    assert await first
    await lane.run(done.append, 2, timeout_s=5)
    assert done == [2]


def test_a_result_for_a_loop_that_is_gone_hurts_nobody() -> None:
    lane, come_back = ServerLane("test"), threading.Event()

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await lane.run(come_back.wait, timeout_s=0.02)

    asyncio.run(give_up())
    come_back.set()
    assert asyncio.run(eventually(lane)) == 7
