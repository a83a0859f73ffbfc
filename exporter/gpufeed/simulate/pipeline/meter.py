# SPDX-License-Identifier: Apache-2.0
"""The host side of ranks: how many tasks wait for what, and how long any, or all, of a crowd of them did."""

from typing import Final, Literal

from gpufeed.simulate.pipeline.flows import Transfers
from gpufeed.simulate.pipeline.sharing import Shared

Kind = Literal["nfs", "disk", "object", "gds"]
Way = Literal["read", "write", "open"]

CALM_CPU_WAITING: Final = 0.01
"""Share of time in which some task of any busy rank waits for a processor."""
IDLE_TRAINER: Final = 0.15
"""Cores of a main thread that polls; from here on it works."""

STOPPED, SWAPPING, QUEUED, WORKING = 1, 2, 4, 8
_MASKS: Final = range(16)
_BITS: Final = (STOPPED, SWAPPING, QUEUED, WORKING)


class Pressed:
    """How long which of the four conditions held at once, for whom ever: pressure follows from that."""

    __slots__ = ("_spent_ns", "mask", "since_ns")

    def __init__(self) -> None:
        self.mask = 0
        self.since_ns = 0
        self._spent_ns = [0] * len(_MASKS)

    def settle(self, now_ns: int) -> None:
        """Add up to this instant."""
        self._spent_ns[self.mask] += now_ns - self.since_ns
        self.since_ns = now_ns

    @property
    def io_waiting_s(self) -> float:
        """Some task waits for input, output or memory."""
        return self._while(STOPPED)

    @property
    def io_stalled_s(self) -> float:
        """The same, and no task works."""
        return self._while(STOPPED, but=WORKING)

    @property
    def cpu_waiting_s(self) -> float:
        """Some task could run and has no processor."""
        return self._while(QUEUED)

    @property
    def memory_waiting_s(self) -> float:
        """Some task waits for memory."""
        return self._while(SWAPPING)

    @property
    def memory_stalled_s(self) -> float:
        """The same, and no task works."""
        return self._while(SWAPPING, but=WORKING)

    def _while(self, bit: int, *, but: int = 0) -> float:
        return sum(self._spent_ns[mask] for mask in _MASKS if mask & bit and not mask & but) / 1e9


class Crowd(Pressed):
    """Ranks of a job, or everybody on a node: a condition holds while it holds for any of them."""

    __slots__ = ("_counts", "_crowd")

    def __init__(self, crowd: "Crowd | None" = None) -> None:
        super().__init__()
        self._crowd = crowd  # that this one is part of
        self._counts = dict.fromkeys(_BITS, 0)

    def change(self, now_ns: int, before: int, after: int) -> None:
        """A condition of one of them has begun or ended."""
        old, new = self.mask, self.mask
        for bit in _BITS:
            if (before ^ after) & bit:
                self._counts[bit] += 1 if after & bit else -1
                new = new | bit if self._counts[bit] else new & ~bit
        if new != old:
            self.settle(now_ns)
            self.mask = new
            if self._crowd is not None:
                self._crowd.change(now_ns, old, new)


class Meter(Pressed):
    """One rank: counts of tasks that stand still between changes."""

    __slots__ = (
        "_blocked_ns", "_loader_ns", "_trainer_ns", "blocked", "crowd", "queued", "running", "swapping", "trainer",
        "transfers",
    )  # fmt: skip

    def __init__(self, crowd: Crowd | None = None) -> None:
        super().__init__()
        self.crowd = crowd
        self.blocked = 0  # tasks in uninterruptible sleep because of input or output
        self.swapping = 0  # the same because of memory
        self.running = 0.0  # loaders on a processor
        self.queued = 0  # loaders that could run and have no processor
        self.trainer = 0.0  # cores that the main thread, and its helpers, use
        self.transfers: dict[tuple[Kind, Way], Transfers] = {}
        self._trainer_ns = self._loader_ns = self._blocked_ns = 0.0

    @property
    def trainer_cpu_s(self) -> float:
        """Processor time of the main thread."""
        return self._trainer_ns / 1e9

    @property
    def loader_cpu_s(self) -> float:
        """Processor time of all loaders."""
        return self._loader_ns / 1e9

    @property
    def blocked_s(self) -> float:
        """Time of all tasks in uninterruptible sleep."""
        return self._blocked_ns / 1e9

    def move(self, now_ns: int, *, blocked: int = 0, running: float = 0, queued: int = 0, swapping: int = 0) -> None:
        """So many more, or fewer, tasks are in these states from now on."""
        self.settle(now_ns)
        self.blocked += blocked
        self.running += running
        self.queued += queued
        self.swapping += swapping
        self._look(now_ns)

    def set_trainer(self, now_ns: int, cores: float) -> None:
        """What the main thread uses from now on."""
        if cores != self.trainer:
            self.settle(now_ns)
            self.trainer = cores
            self._look(now_ns)

    def clear(self, now_ns: int) -> None:
        """All tasks have ended."""
        self.set_trainer(now_ns, 0.0)
        self.move(now_ns, blocked=-self.blocked, running=-self.running, queued=-self.queued, swapping=-self.swapping)

    def settle(self, now_ns: int) -> None:
        """Add up to this instant."""
        spent_ns = now_ns - self.since_ns
        if spent_ns:
            self.since_ns = now_ns
            self._spent_ns[self.mask] += spent_ns
            self._trainer_ns += self.trainer * spent_ns
            self._loader_ns += self.running * spent_ns
            self._blocked_ns += (self.blocked + self.swapping) * spent_ns

    def transfers_of(self, kind: Kind, way: Way, server: Shared, operation_bytes: float) -> Transfers:
        """Transfers of one kind of storage in one direction. A rank has one server of a kind."""
        found = self.transfers.get((kind, way))
        if found is None:
            found = self.transfers[kind, way] = Transfers(server, operation_bytes)
        return found

    def _look(self, now_ns: int) -> None:
        mask = 0
        if self.blocked:
            mask = STOPPED
        if self.swapping:
            mask |= STOPPED | SWAPPING
        if self.queued:
            mask |= QUEUED | WORKING
        elif self.running or self.trainer >= IDLE_TRAINER:
            mask |= WORKING
        if mask != self.mask:
            if self.crowd is not None:
                self.crowd.change(now_ns, self.mask, mask)
            self.mask = mask
