# SPDX-License-Identifier: Apache-2.0
"""A storage server as its clients on this node find it: a rate they share, round trips, and others who also ask."""

from random import Random
from typing import Final

from gpufeed.simulate.pipeline.calendar import Calendar, Process
from gpufeed.simulate.pipeline.meter import Meter
from gpufeed.simulate.pipeline.sharing import Shared
from gpufeed.simulate.pipeline.stages import Speeds, Stage
from gpufeed.simulate.pipeline.workload import Storage

OPERATION_BYTES: Final = 1024 * 1024
"""Size of one READ or WRITE: rsize and wsize of the mount."""

_NS: Final = 1e9
_OUTSIDE: Final = ("object", "gds")
"""Neither a socket nor the GPU's own reads are waited for in uninterruptible sleep."""


class Server:
    """Shared by the ranks that read the same data."""

    def __init__(
        self, storage: Storage, bytes_per_s: float, calendar: Calendar, random: Random, speeds: Speeds
    ) -> None:
        self.storage = storage
        self.bytes_per_s = bytes_per_s
        self.blocks = int(storage.kind not in _OUTSIDE)  # tasks in state D for one reader
        self._calendar = calendar
        self._random = random
        self._is_free = speeds.is_free(Stage.STORAGE)
        self._writes_are_free = speeds.is_free(Stage.CHECKPOINT)
        speed = 1.0 if self._is_free else speeds.of(Stage.STORAGE)
        self._whole = bytes_per_s / _NS * speed
        window_bytes = storage.window * OPERATION_BYTES
        self.reads = Shared(calendar, self._whole, window_bytes / storage.rtt_s / _NS * speed)
        self.opens = Shared(calendar, storage.files_per_s / _NS * speed, speed / max(storage.file_s, 1e-9) / _NS)
        written = 1.0 if self._writes_are_free else speeds.of(Stage.CHECKPOINT)
        self.writes = Shared(calendar, storage.write_bytes_per_s / _NS * written)
        if storage.burst_s:
            calendar.start(self._others())

    def read(self, meter: Meter, size: float, effort: float) -> Process:
        """One reader gets so many bytes. `effort`: how much harder than usual it is for the server, and for it."""
        reads = meter.transfers_of(self.storage.kind, "read", self.reads, OPERATION_BYTES)
        if self._is_free:
            reads.add(size)
            return
        window = min(self.storage.window, max(1.0, size / OPERATION_BYTES))
        on_wire = min(1.0, self.storage.slots / ((self.reads.users + 1) * window))
        each, outstanding, queued = 1 / effort, window * on_wire, window * (1 - on_wire)
        reads.change(self._calendar.now, each, outstanding, queued)
        yield from self.reads.use(size * effort)
        reads.change(self._calendar.now, -each, -outstanding, -queued)

    def open(self, meter: Meter, files: int, effort: float) -> Process:
        """One reader looks so many files up, one after the other."""
        opens = meter.transfers_of(self.storage.kind, "open", self.opens, 1.0)
        if self._is_free:
            opens.add(files)
            return
        opens.change(self._calendar.now, 1 / effort, 1.0)
        yield from self.opens.use(files * effort)
        opens.change(self._calendar.now, -1 / effort, -1.0)

    def write(self, meter: Meter, size: float) -> Process:
        """One writer's bytes, until the server has them."""
        writes = meter.transfers_of(self.storage.kind, "write", self.writes, OPERATION_BYTES)
        if self._writes_are_free:
            writes.add(size)
            return
        writes.change(self._calendar.now, 1.0, self.storage.window)
        yield from self.writes.use(size)
        writes.change(self._calendar.now, -1.0, -self.storage.window)

    def _others(self) -> Process:
        storage = self.storage
        while True:
            yield int(self._random.expovariate(1 / storage.calm_s) * _NS)
            self.reads.set_whole(self._whole * storage.in_burst)
            yield int(self._random.expovariate(1 / storage.burst_s) * _NS)
            self.reads.set_whole(self._whole)
