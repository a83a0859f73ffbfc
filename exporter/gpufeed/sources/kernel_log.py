# SPDX-License-Identifier: Apache-2.0
"""XIDs from the kernel log: of a GPU that fell off its bus, or of a driver that hangs, NVML says nothing.

The log is read without waiting. What stood there when it was opened carries the log's own time; what comes after is
as old as the look that finds it, because the log's clock drifts away from ours by seconds a week.
"""

import errno
import os
from typing import Final

from gpufeed.errors import Denied, ParseError, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputStatus, XidEvent
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.parse.kernel_log import Record, parse_record, parse_xid
from gpufeed.sources.contract import Desk, Group, LanePlan, NoSpec, Outcome
from gpufeed.sources.files import refuse
from gpufeed.sources.gathering import Statuses, state_of

LOG: Final = GroupName("xid.log")

_INPUT: Final = "kernel_log"
_PATH: Final = "dev/kmsg"
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_READ_BYTES: Final = 16_384
"""Greater than any record, which the kernel gives one a read and never in pieces."""

_MAX_READS: Final = 4096
"""Of one look: a storm is read over several."""

_MAX_RECORD_BYTES: Final = 65_536
_FIX: Final = "give the probe CAP_SYSLOG and let it read /dev/kmsg: the drop-in 10-kernel-log.conf does"


class KernelLogSource:
    """Plans the lane `kernel-log`."""

    name = "kernel_log"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One lane, or none where XIDs are not looked for."""
        if not config.options("xid").enabled:
            return ()
        group = Group(name=LOG, collector="xid", period_ns=config.period_ns(LOG))
        return (LanePlan(lane=LaneId("kernel-log"), groups=(group,), open=open_log),)


def open_log(_spec: NoSpec, desk: Desk) -> "KernelLogReader":
    """A reader of the log below the configured root. Opens it at the first read."""
    return KernelLogReader(desk)


class KernelLogReader:
    """Follows the log from its oldest record."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._path = f"{desk.config.rootfs.rstrip('/')}/{_PATH}"
        self._statuses = Statuses()
        self._descriptor: int | None = None
        self._rest = b""  # of a line that was not read to its end
        self._is_live = False  # whether all that was there at the beginning has been read

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """An event for each XID since the last look. Never raises: a log that cannot be read is no failure of a GPU."""
        self._desk.call = self._path
        self._desk.counts.file_reads += 1
        try:
            lines, is_drained = self._lines()
        except SourceError as error:
            self.close()
            fix = _FIX if isinstance(error, Denied) else ""
            return Outcome(inputs=self._statuses.news(InputStatus(_INPUT, "", state_of(error), str(error), fix)))
        events = tuple(event for line in lines if (event := self._event(line)) is not None)
        self._is_live = self._is_live or is_drained
        return Outcome(events=events, inputs=self._statuses.news(InputStatus(_INPUT, "", "available")))

    def close(self) -> None:
        """Let go of the log; the next read begins with its oldest record again."""
        descriptor, self._descriptor = self._descriptor, None
        self._rest, self._is_live = b"", False
        if descriptor is not None:
            os.close(descriptor)

    def _lines(self) -> tuple[list[bytes], bool]:
        """Whole lines that have come, and whether none is left. Raises SourceError."""
        lines: list[bytes] = []
        for _ in range(_MAX_READS):
            piece = self._piece()
            if not piece:
                return lines, True
            *whole, self._rest = (self._rest + piece).split(b"\n")
            lines += whole
            self._rest = self._rest[:_MAX_RECORD_BYTES]
        return lines, False

    def _piece(self) -> bytes:
        """What the next read gives; nothing where all has been read. Raises SourceError."""
        while True:
            try:
                if self._descriptor is None:
                    self._descriptor = os.open(self._path, _FLAGS)
                return os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                return b""
            except OSError as error:
                if error.errno != errno.EPIPE:  # else records were overwritten before we came: go on with the oldest
                    refuse(error, self._path)

    def _event(self, line: bytes) -> XidEvent | None:
        try:
            record = parse_record(line)
        except ParseError:
            return None  # a line of properties below its record
        said = parse_xid(record.text)
        if said is None:
            return None
        return XidEvent(
            at_ns=self._at_ns(record),
            xid=said.xid,
            uuid=None,
            pci_bus_id=said.pci_bus_id,
            origin="kernel_log",
            text=said.text,
            sequence=record.sequence,
        )

    def _at_ns(self, record: Record) -> int:
        clock = self._desk.clock
        now_ns = clock.monotonic_ns()
        if self._is_live:
            return now_ns
        suspended_ns = clock.boottime_ns() - now_ns
        return min(record.at_ns - suspended_ns, now_ns)
