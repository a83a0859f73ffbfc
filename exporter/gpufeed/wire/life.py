# SPDX-License-Identifier: Apache-2.0
"""One life of a probe, seen from the server: its process, its socket, when it last said what, and how it is ended."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Self

from gpufeed.clock import Clock
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import Frame, LaneStatus
from gpufeed.units import seconds
from gpufeed.wire.link import Link
from gpufeed.wire.messages import PROTOCOL_VERSION, Applied, Desired, Hello, Message, Shutdown
from gpufeed.wire.policy import has_driver_call
from gpufeed.wire.start import ProbeProcess, ProbeStart

_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long the server waits for a probe, in seconds."""

    first_frame_s: float = 10.0  # a new process imports and opens first
    frame_s: float = 3.0  # then silence this long means that it is down
    echo_s: float = 5.0  # of a new configuration
    terminate_s: float = 1.0  # between SIGTERM and what comes next
    kill_s: float = 0.5  # after SIGKILL: what still runs then sits in the kernel
    goodbye_s: float = 2.5  # for a probe that was asked to shut down

    def within(self, timeout_s: float) -> "Patience":
        """The same, with signals followed up so quickly that all is over in time."""
        scale = min(1.0, max(0.0, timeout_s) / (self.terminate_s + self.kill_s))
        return replace(self, terminate_s=self.terminate_s * scale, kill_s=self.kill_s * scale)


class ProbeLife:
    """From start to end; never used again afterwards."""

    def __init__(self, child: ProbeProcess, clock: Clock, hear: Callable[[Message], None]) -> None:
        self.child = child
        self.ended = asyncio.Event()
        """Set when it must be replaced; `why` says the reason."""
        self.why = ""
        self.was_wished = False
        """The probe itself asked to be replaced."""
        self._clock = clock
        self._began_ns = clock.monotonic_ns()
        self._framed_ns: int | None = None
        self._lanes: tuple[LaneStatus, ...] = ()
        self._desired: tuple[int, int] | None = None  # generation without an echo, since
        self._is_simulated = False
        self._hear = hear
        self.link = Link(self._on_message, self.give_up)

    @classmethod
    async def begin(cls, start: ProbeStart, clock: Clock, hear: Callable[[Message], None]) -> Self:
        """Start or reach a process and take the socket to it. Raises SpawnError."""
        with contextlib.ExitStack() as undo:
            child, ours = start()
            undo.callback(ours.close)
            undo.callback(child.abandon)  # without a socket it ends by itself
            life = cls(child, clock, hear)
            await asyncio.get_running_loop().create_connection(lambda: life.link, sock=ours)
            undo.pop_all()
        return life

    def send(self, message: Message) -> None:
        """Queue a message to the probe."""
        self.link.send(message)

    def desire(self, generation: int, config: ProbeConfig) -> None:
        """Tell it what to run; from now on an echo is due."""
        self._desired = (generation, self._clock.monotonic_ns())
        self._is_simulated = config.simulated is not None
        self.send(Desired(generation=generation, config=config))

    def give_up(self, why: str) -> None:
        """It must be replaced."""
        if not self.ended.is_set():
            self.why = why
            self.ended.set()

    @property
    def lived_s(self) -> float:
        """Since it was started."""
        return seconds(self._clock.monotonic_ns() - self._began_ns)

    def check(self, patience: Patience) -> None:
        """Give it up if it has been silent for too long. An end of file is not needed, and may never come."""
        now_ns = self._clock.monotonic_ns()
        if self._framed_ns is None:
            if seconds(now_ns - self._began_ns) > patience.first_frame_s:
                self.give_up("no first frame")
            return
        if seconds(now_ns - self._framed_ns) > patience.frame_s:
            self.give_up(f"no frame for {patience.frame_s:g} s")
        if self._desired is not None and seconds(now_ns - self._desired[1]) > patience.echo_s:
            self.give_up(f"configuration {self._desired[0]} was not applied")

    async def say_goodbye(self, reason: Shutdown, timeout_s: float) -> bool:
        """Ask it to shut down and wait for its end; whether it ended."""
        self.send(reason)
        return await self._has_ended_within(timeout_s)

    async def end(self, patience: Patience) -> bool:
        """SIGTERM, then SIGKILL unless a driver call is outstanding; what survives is left alone.

        Returns whether the process is gone. The socket is closed last: a probe may finish what it has to say.
        """
        gone = self.child.poll() is not None
        if not gone:
            self.child.terminate()
            gone = await self._has_ended_within(patience.terminate_s)
        if not gone and self._may_kill():
            self.child.kill()
            gone = await self._has_ended_within(patience.kill_s)
        self.link.close()
        self.child.abandon()
        return gone

    def _may_kill(self) -> bool:
        """A simulated driver call may be cut off: nothing freezes."""
        return self._is_simulated or not has_driver_call(self._lanes)

    async def _has_ended_within(self, timeout_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self.child.poll() is None:  # noqa: ASYNC110 - waitpid has no event
                    await asyncio.sleep(_POLL_S)
        return self.child.poll() is not None

    def _on_message(self, message: Message) -> None:
        match message:
            case Frame(lanes=lanes):
                self._framed_ns = self._clock.monotonic_ns()
                self._lanes = lanes
            case Hello(protocol=protocol) if protocol != PROTOCOL_VERSION:
                self.give_up(f"it speaks protocol {protocol}, we {PROTOCOL_VERSION}")
            case Applied(generation=generation) if self._desired is not None and generation == self._desired[0]:
                self._desired = None
            case Shutdown(reason=reason):
                self.was_wished = reason in {"driver_changed", "replace"}
                self.give_up(f"it ends: {reason}")
            case _:
                pass
        self._hear(message)
