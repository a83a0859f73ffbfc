# SPDX-License-Identifier: Apache-2.0
"""Work beside the jobs: it has no GPU, and its processes, mounts and disks are its own."""

from typing import Final

from gpufeed.simulate.pipeline.calendar import Calendar, Process
from gpufeed.simulate.pipeline.chance import source
from gpufeed.simulate.pipeline.meter import Meter
from gpufeed.simulate.pipeline.server import OPERATION_BYTES
from gpufeed.simulate.pipeline.workload import Neighbour

ROUND_TRIP_S: Final = 0.004
_NS: Final = 1e9


class NeighbourWork:
    """Busy and quiet by turns."""

    def __init__(self, of: Neighbour, calendar: Calendar, meter: Meter, seed: str) -> None:
        self.of = of
        self.meter = meter
        self._calendar = calendar
        self._random = source(seed, "neighbour")
        self._busy_ns = 0
        self._busy_since_ns: int | None = None
        calendar.start(self._run())

    def sums(self) -> dict[str, float]:
        """Since the start, by name: another NFS mount, local disk, the Ethernet card."""
        of, now_ns = self.of, self._calendar.now
        running_ns = 0 if self._busy_since_ns is None else now_ns - self._busy_since_ns
        busy_s = (self._busy_ns + running_ns) / _NS
        reads = of.nfs_read_bytes_per_s * busy_s / OPERATION_BYTES
        return {
            "nfs_read_bytes": of.nfs_read_bytes_per_s * busy_s,
            "nfs_reads": reads,
            "nfs_read_rtt_s": reads * ROUND_TRIP_S,
            "nfs_read_queue_s": 0.0,
            "disk_read_bytes": of.disk_read_bytes_per_s * busy_s,
            "disk_write_bytes": of.disk_write_bytes_per_s * busy_s,
            "net_receive_bytes": of.net_receive_bytes_per_s * busy_s,
        }

    def _run(self) -> Process:
        of, random = self.of, self._random
        while True:
            self._busy_since_ns = self._calendar.now
            self.meter.set_trainer(self._calendar.now, of.cores)
            self.meter.move(self._calendar.now, blocked=of.blocked)
            yield int(random.expovariate(1 / of.on_s) * _NS)
            self._busy_ns += self._calendar.now - self._busy_since_ns
            self._busy_since_ns = None
            self.meter.set_trainer(self._calendar.now, 0.0)
            self.meter.move(self._calendar.now, blocked=-of.blocked)
            if of.off_s:
                yield int(random.expovariate(1 / of.off_s) * _NS)
