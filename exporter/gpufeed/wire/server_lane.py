# SPDX-License-Identifier: Apache-2.0
"""The server's own blocking work (DNS, bcrypt, files) on one thread beside the event loop.

No executor: its threads are joined at exit, and a call that hangs would hold the process. Nothing queues behind a
call that has outlived its own time: whoever asks meanwhile is told at once.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, TypeVarTuple, cast

from gpufeed.errors import LaneStuck

R = TypeVar("R")
Ts = TypeVarTuple("Ts")


class ServerLane:
    """One daemon thread, one job at a time, in the order they were asked for."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._overdue: _Job | None = None
        self._thread: threading.Thread | None = None

    async def run(self, work: Callable[[*Ts], R], *arguments: *Ts, timeout_s: float) -> R:
        """What `work(*arguments)` returns or raises, on the lane's thread.

        Raises TimeoutError after `timeout_s`, whether the work had begun or waited for its turn; LaneStuck at once
        while a job that timed out has still not come back.
        """
        if self._overdue is not None and not self._overdue.is_over:
            raise LaneStuck(f"{self._name}: {self._overdue.called} has not come back")
        self._overdue = None
        self._start()
        job = _Job(lambda: work(*arguments), getattr(work, "__qualname__", repr(work)))
        self._jobs.put(job)
        try:
            async with asyncio.timeout(timeout_s):
                return cast("R", await job.future)
        except TimeoutError:
            if job.has_begun:
                self._overdue = job
            raise

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=f"server-{self._name}", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while True:
            self._jobs.get().carry_out()


class _Job:
    """One call, and the future of whoever waits for it on the loop."""

    def __init__(self, work: Callable[[], Any], called: str) -> None:
        self.called = called
        self.has_begun = False
        self.is_over = False
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._work = work

    def carry_out(self) -> None:
        """Do it, unless nobody waits any more."""
        if self.future.cancelled():
            return
        self.has_begun = True
        with self:
            self._settle(self.future.set_result, self._work())

    def __enter__(self) -> None:
        """The work begins."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """The work is over: what it raised goes to whoever waits, whatever it is, and the thread goes on."""
        self.is_over = True
        if error is not None:
            self._settle(self.future.set_exception, error)
        return True

    def _settle(self, settle: Callable[[Any], None], value: object) -> None:
        def unless_given_up() -> None:
            if not self.future.done():
                settle(value)

        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            self.future.get_loop().call_soon_threadsafe(unless_given_up)
