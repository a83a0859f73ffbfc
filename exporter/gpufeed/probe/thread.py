# SPDX-License-Identifier: Apache-2.0
"""A lane's thread: waits until something is due, takes the lane's lock, does one job, gives the lock back."""

import logging
import threading
import time
from typing import Final

from gpufeed.clock import Clock
from gpufeed.probe.lane import LOGGER, Lane
from gpufeed.probe.lock import Holder, LaneLock
from gpufeed.probe.slots import Slots
from gpufeed.units import seconds

HELD_AGAIN_S: Final = 0.25
"""How soon a lane that another thread holds is asked for again."""


class LaneThread:
    """Drives one lane. A daemon thread: a call that never returns does not keep the process."""

    def __init__(self, lane: Lane, lock: LaneLock, clock: Clock, slots: Slots) -> None:
        self.lane = lane
        self._lock = lock
        self._clock = clock
        self._slots = slots
        self._ending = threading.Event()
        self._lock_problem = ""
        self._thread = threading.Thread(target=self._run, name=str(lane.plan.lane), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Take no further job, close the reader when the one outstanding is over. Returns at once."""
        self._ending.set()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread's end; False: it is still inside a call."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._ending.wait(self._pause_s()):
            if self._take_lock():
                self.lane.step(time.thread_time_ns)
                self._lock.release()
            else:
                self._ending.wait(HELD_AGAIN_S)
        if self.lane.is_open and self._take_lock():
            self.lane.close()
        self._lock.close()

    def _pause_s(self) -> float:
        return seconds(max(0, self.lane.due_ns() - self._clock.monotonic_ns()))

    def _take_lock(self) -> bool:
        """Whether the lane may work. Without a usable runtime directory it works unlocked, and says so once."""
        try:
            holder = self._lock.acquire(self._clock.monotonic_ns())
        except OSError as error:
            self._note_problem(str(error))
            return True
        if holder is None:
            return True
        self.lane.held_elsewhere(holder.began_ns, _called(holder))
        return False

    def _note_problem(self, problem: str) -> None:
        if problem != self._lock_problem:
            self._lock_problem = problem
            self._slots.log(logging.WARNING, LOGGER, f"lane={self.lane.plan.lane} locked=no reason={problem!r}")


def _called(holder: Holder) -> str:
    return f"a call of process {holder.pid}, thread {holder.tid}" if holder.pid else "a call of an unknown process"
