# SPDX-License-Identifier: Apache-2.0
"""A storage server as its clients on this node find it: first come, first served, at a rate others also use."""

from random import Random
from typing import Final, NamedTuple

from gpufeed.simulate.pipeline.calendar import Calendar, Process
from gpufeed.simulate.pipeline.stages import Speeds, Stage
from gpufeed.simulate.pipeline.workload import Storage

OPERATION_BYTES: Final = 1024 * 1024
_NS: Final = 1e9


class Fetch(NamedTuple):
    """One reader's or writer's transfer: how long it takes, and its shares of READINGS per nanosecond."""

    opening_ns: int  # before the first byte: files are looked up
    opening_rates: tuple[float, ...]
    moving_ns: int
    rates: tuple[float, ...]


NOTHING: Final = Fetch(0, (), 0, ())


class Server:
    """Shared by the ranks that read the same data."""

    def __init__(
        self, storage: Storage, bytes_per_s: float, calendar: Calendar, random: Random, speeds: Speeds
    ) -> None:
        self.storage = storage
        self.bytes_per_s = bytes_per_s
        self._calendar = calendar
        self._random = random
        self._speeds = speeds
        self._read_free_ns = self._write_free_ns = self._open_free_ns = 0
        self._share = 1.0  # of its speed that others leave
        self._readers = 0
        if storage.burst_s:
            calendar.start(self._others())

    def read(self, size: float, files: int, noise: float, *, slow: float = 1.0, far: float = 1.0) -> Fetch:
        """What a reader who comes now gets. `slow` and `far`: shares of rate and of nearness that are left."""
        speed = self._speeds.of(Stage.STORAGE)
        if size < 1 and not files:
            return NOTHING
        if self._speeds.is_free(Stage.STORAGE):
            return self._at_once(size, files)
        storage, now = self.storage, self._calendar.now
        opening_ns = self._open(files, speed * far) if files else 0
        operations = size / OPERATION_BYTES
        alone_s = operations / storage.window * storage.rtt_s * noise / far
        begins_ns = max(now + opening_ns, self._read_free_ns)
        self._read_free_ns = begins_ns + int(size / (self.bytes_per_s * self._share * slow) * _NS / speed)
        moving_ns = max(int(alone_s * _NS / speed), self._read_free_ns - now - opening_ns, 1)
        return Fetch(opening_ns, (0.0, *_operations(files, opening_ns)), moving_ns, self._rates(size, moving_ns))

    def write(self, size: float) -> Fetch:
        """What a writer who comes now gets."""
        now, speed = self._calendar.now, self._speeds.of(Stage.CHECKPOINT)
        begins_ns = max(now, self._write_free_ns)
        self._write_free_ns = begins_ns + int(size / self.storage.write_bytes_per_s * _NS / speed)
        moving_ns = max(self._write_free_ns - now, 1)
        return Fetch(0, (), moving_ns, self._rates(size, moving_ns))

    def began(self) -> None:
        """A reader has requests outstanding."""
        self._readers += 1

    def ended(self) -> None:
        """It has none any more."""
        self._readers -= 1

    def _open(self, files: int, speed: float) -> int:
        """One after the other, each a few round trips; all readers together no faster than the server looks up."""
        alone_ns = int(files * self.storage.file_s * _NS / speed)
        begins_ns = max(self._calendar.now, self._open_free_ns)
        self._open_free_ns = begins_ns + int(files / self.storage.files_per_s * _NS / speed)
        return max(alone_ns, self._open_free_ns - self._calendar.now)

    def _rates(self, size: float, moving_ns: int) -> tuple[float, ...]:
        """A window of operations is outstanding throughout; what the client has no slot for waits in its queue."""
        wanted = (self._readers + 1) * self.storage.window
        on_wire = min(1.0, self.storage.slots / wanted)
        outstanding = min(self.storage.window, max(1.0, size / OPERATION_BYTES))
        operations = max(1.0, size / OPERATION_BYTES)
        return (
            size / moving_ns,
            operations / moving_ns,
            outstanding * on_wire / _NS,
            outstanding * (1 - on_wire) / _NS,
        )

    def _at_once(self, size: float, files: int) -> Fetch:
        """Bytes still move, in no time that matters."""
        return Fetch(0, (0.0, files, 0.0, 0.0), 1, (size, max(1.0, size / OPERATION_BYTES), 0.0, 0.0))

    def _others(self) -> Process:
        storage = self.storage
        while True:
            yield int(self._random.expovariate(1 / storage.calm_s) * _NS)
            self._share = storage.in_burst
            yield int(self._random.expovariate(1 / storage.burst_s) * _NS)
            self._share = 1.0


def _operations(files: int, opening_ns: int) -> tuple[float, float, float]:
    """READINGS but bytes of looking files up: one is outstanding throughout."""
    return (files / opening_ns, 1 / _NS, 0.0) if opening_ns else (0.0, 0.0, 0.0)
