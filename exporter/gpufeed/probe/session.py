# SPDX-License-Identifier: Apache-2.0
"""One life of a probe: hello, what is desired, frames, and the end."""

import os
import select
import socket
from collections import deque
from typing import Final, Literal

from gpufeed.clock import Clock
from gpufeed.errors import WireError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import Event, Frame, GpuEvent
from gpufeed.model.ids import LaneId
from gpufeed.probe.cost import Balance
from gpufeed.probe.lane import Lane
from gpufeed.probe.lock import LaneLock
from gpufeed.probe.reconcile import Roster
from gpufeed.probe.report import Reporter
from gpufeed.probe.slots import Slots
from gpufeed.probe.state_lane import Mailbox
from gpufeed.probe.thread import LaneThread
from gpufeed.probe.usage import used
from gpufeed.probe.writer import Writer
from gpufeed.sources.builtin import BUILTIN
from gpufeed.sources.contract import LanePlan
from gpufeed.units import seconds
from gpufeed.wire.build_id import build_id
from gpufeed.wire.framing import Decoder
from gpufeed.wire.messages import PROTOCOL_VERSION, Applied, Blob, Desired, Hello, Message, Release, Resume, Shutdown
from gpufeed.wire.policy import has_driver_call

GOODBYE_S: Final = 2.0
"""What a healthy probe needs at most to close its readers."""

DRIVER_GOODBYE_S: Final = 60.0
"""A process that ends inside a driver call is killed inside it, whoever kills it: that has frozen GPUs. It waits."""

_LAST_WORDS_S: Final = 0.3
_TURN_S: Final = 1.0
_READ_BYTES: Final = 1 << 16

Reason = Literal["stop", "replace", "driver_changed", "server_gone"]


class Session:
    """The main thread's work. Never blocks but in `select`."""

    def __init__(self, link: socket.socket, clock: Clock) -> None:
        link.settimeout(0)
        self._link = link
        self._clock = clock
        self._decoder = Decoder()
        self._reason: Reason | None = None
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._found: deque[tuple[LaneId, tuple[LanePlan, ...]]] = deque()
        self._threads: list[LaneThread] = []
        self._released_until_ns: int | None = None
        self._slots = Slots(self._wake_writer)
        self._mailbox = Mailbox(self._send)
        self._roster = Roster((*BUILTIN, self._mailbox), clock, self._slots, self._drive)
        self._roster.tell(self._tell)
        self._balance = Balance(clock)
        self._reporter = Reporter(clock, self._slots, os.getpid(), used)
        self._writer = Writer(link, clock, self._slots, self._frame)

    def run(self) -> None:
        """Serve until somebody asks to end, then end in order. Raises WireError."""
        self._send(Hello(protocol=PROTOCOL_VERSION, build_id=build_id(), pid=os.getpid()))
        self._writer.start()
        while self._reason is None:
            self._turn()
        self._leave(self._reason)

    def ask_to_end(self, reason: Reason) -> None:
        """End soon. Any thread may call, and a signal handler."""
        self._reason = self._reason or reason
        self._ring()

    def _turn(self) -> None:
        readable, _, _ = select.select([self._link.fileno(), self._bell], [], [], _TURN_S)
        if self._bell in readable:
            os.eventfd_read(self._bell)
        if self._link.fileno() in readable:
            self._receive()
        while self._found:
            self._roster.found(*self._found.popleft())
        self._take_back_release()
        self._balance.set_periods(self._roster, used()[0])
        self._threads = [thread for thread in self._threads if not thread.join(0)]

    def _receive(self) -> None:
        try:
            data = self._link.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.ask_to_end("server_gone")
        for message in self._decoder.feed(data):
            self._handle(message)

    def _handle(self, message: Message) -> None:
        match message:
            case Hello(protocol=protocol) if protocol != PROTOCOL_VERSION:
                raise WireError(f"the server speaks protocol {protocol}, this probe {PROTOCOL_VERSION}")
            case Desired(generation=generation, config=config):
                self._apply(generation, config)
            case Release(until_ns=until_ns):
                self._roster.board.released = True
                self._released_until_ns = until_ns
            case Resume():
                self._released_until_ns = 0
            case Blob():
                self._mailbox.put(message)
            case Shutdown(reason=reason):
                self.ask_to_end(reason)
            case _:
                pass  # a hello, and what only probes say

    def _apply(self, generation: int, config: ProbeConfig) -> None:
        before = self._roster.config
        if before is not None and before.simulated != config.simulated:
            self.ask_to_end("replace")  # one process has one driver library, real or simulated
            return
        if before is None and config.simulated is not None:
            from gpufeed.simulate.nvml import install  # noqa: PLC0415 - never loaded beside a real driver

            install(config.simulated.truth_path)
        self._roster.desire(config)
        self._writer.tick_ns = config.tick_ns
        self._send(Applied(generation=generation))
        self._writer.begin_frames()

    def _take_back_release(self) -> None:
        until_ns = self._released_until_ns
        if until_ns is not None and self._clock.monotonic_ns() >= until_ns:
            self._roster.board.released = False
            self._released_until_ns = None

    def _leave(self, reason: Reason) -> None:
        self._roster.end()
        began_ns = self._clock.monotonic_ns()
        for thread in self._threads:
            while not thread.join(0.05) and self._may_wait(began_ns):
                pass
        self._send(Shutdown(reason=reason))
        self._writer.end(_LAST_WORDS_S)

    def _may_wait(self, began_ns: int) -> bool:
        """Whether there is time left for lanes to finish; more of it while a driver call is outstanding."""
        waited_s = seconds(self._clock.monotonic_ns() - began_ns)
        config = self._roster.config
        is_real = config is not None and config.simulated is None
        is_in_driver = is_real and has_driver_call(lane.status() for lane in self._roster.lanes)
        return waited_s < (DRIVER_GOODBYE_S if is_in_driver else GOODBYE_S)

    def _frame(self) -> Frame:
        frame = self._reporter.frame(self._roster.lanes)
        if any(map(_says_driver_changed, frame.events)):
            self.ask_to_end("driver_changed")
        return frame

    def _drive(self, lane: Lane) -> LaneThread:
        lock = LaneLock(lane.desk.config.runtime_dir, lane.plan.lane)
        thread = LaneThread(lane, lock, self._clock, self._slots)
        self._threads.append(thread)
        return thread

    def _tell(self, parent: LaneId, plans: tuple[LanePlan, ...]) -> None:
        """A scan's finding, from its thread to this one."""
        self._found.append((parent, plans))
        self._ring()

    def _send(self, message: Message) -> None:
        self._writer.send(message)

    def _wake_writer(self) -> None:
        self._writer.wake()

    def _ring(self) -> None:
        os.eventfd_write(self._bell, 1)


def _says_driver_changed(event: Event) -> bool:
    """The library mapped into this process is not the driver's any more: only a new process can load the new one."""
    return isinstance(event, GpuEvent) and event.kind == "driver_changed"
