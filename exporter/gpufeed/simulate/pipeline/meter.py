# SPDX-License-Identifier: Apache-2.0
"""The host side of a rank, or of a whole job: how many tasks wait for what, and what that adds up to."""

from typing import Final, Literal

from gpufeed.simulate.pipeline.flows import Transfers
from gpufeed.simulate.pipeline.sharing import Shared

Kind = Literal["nfs", "disk", "object", "gds"]
Way = Literal["read", "write", "open"]

CALM_CPU_WAITING: Final = 0.01
"""Share of time in which some task of any busy rank waits for a processor."""

IDLE_TRAINER: Final = 0.15
"""Cores of a main thread that polls; from here on it works."""


class Meter:
    """Counts of tasks that stand still between changes. A rank's changes are its job's too."""

    __slots__ = (
        "blocked", "blocked_s", "cpu_waiting_s", "io_stalled_s", "io_waiting_s", "job", "loader_cpu_s",
        "memory_stalled_s", "memory_waiting_s", "queued", "running", "since_ns", "swapping", "trainer", "trainer_cpu_s",
        "transfers",
    )  # fmt: skip

    def __init__(self, job: "Meter | None" = None) -> None:
        self.job = job
        self.blocked = 0  # tasks in uninterruptible sleep because of input or output
        self.swapping = 0  # the same because of memory
        self.running = 0.0  # loaders on a processor
        self.queued = 0  # loaders that could run and have no processor
        self.trainer = 0.0  # cores that main threads, and their helpers, use
        self.trainer_cpu_s = self.loader_cpu_s = self.blocked_s = 0.0
        self.io_waiting_s = self.io_stalled_s = self.cpu_waiting_s = 0.0
        self.memory_waiting_s = self.memory_stalled_s = 0.0
        self.transfers: dict[tuple[Kind, Way], Transfers] = {}
        self.since_ns = 0

    def move(self, now_ns: int, *, blocked: int = 0, running: float = 0, queued: int = 0, swapping: int = 0) -> None:
        """So many more, or fewer, tasks are in these states from now on."""
        if self.since_ns != now_ns:
            self.settle(now_ns)
        self.blocked += blocked
        self.running += running
        self.queued += queued
        self.swapping += swapping
        if self.job is not None:
            self.job.move(now_ns, blocked=blocked, running=running, queued=queued, swapping=swapping)

    def set_trainer(self, now_ns: int, cores: float) -> None:
        """What the main thread uses from now on."""
        if cores == self.trainer:
            return
        if self.since_ns != now_ns:
            self.settle(now_ns)
        if self.job is not None:
            if self.job.since_ns != now_ns:
                self.job.settle(now_ns)
            self.job.trainer += cores - self.trainer
        self.trainer = cores

    def clear(self, now_ns: int) -> None:
        """All tasks have ended."""
        self.set_trainer(now_ns, 0.0)
        self.move(now_ns, blocked=-self.blocked, running=-self.running, queued=-self.queued, swapping=-self.swapping)

    def settle(self, now_ns: int) -> None:
        """Add up to this instant."""
        spent_s = (now_ns - self.since_ns) * 1e-9
        self.since_ns = now_ns
        self.trainer_cpu_s += self.trainer * spent_s
        self.loader_cpu_s += self.running * spent_s
        if self.queued:
            self.cpu_waiting_s += spent_s
        stopped = self.blocked + self.swapping
        if stopped:
            works = self.running or self.queued or self.trainer >= IDLE_TRAINER
            self.blocked_s += stopped * spent_s
            self.io_waiting_s += spent_s
            if not works:
                self.io_stalled_s += spent_s
            if self.swapping:
                self.memory_waiting_s += spent_s
                if not works:
                    self.memory_stalled_s += spent_s

    def transfers_of(self, kind: Kind, way: Way, server: Shared, operation_bytes: float) -> Transfers:
        """Transfers of one kind of storage in one direction. A rank has one server of a kind."""
        found = self.transfers.get((kind, way))
        if found is None:
            found = self.transfers[kind, way] = Transfers(server, operation_bytes)
        return found
