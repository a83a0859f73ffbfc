# SPDX-License-Identifier: Apache-2.0
"""The server's keeper of the probe: starts it, listens, tells it what is desired, replaces it when it is down.

Everything happens on the event loop and nothing blocks it. What comes of a probe leaves through `Listener`.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from gpufeed.clock import Clock, read_frame_time
from gpufeed.errors import SpawnError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import Frame
from gpufeed.units import nanoseconds, seconds
from gpufeed.wire.backoff import Backoff
from gpufeed.wire.build_id import build_id
from gpufeed.wire.life import Patience, ProbeLife
from gpufeed.wire.messages import (
    PROTOCOL_VERSION,
    Applied,
    Blob,
    BlobSaved,
    Hello,
    Log,
    Message,
    Release,
    Resume,
    Shutdown,
)
from gpufeed.wire.quarantine import Quarantine
from gpufeed.wire.start import ProbeStart, child_probe

GAP_EVERY_S: Final = 1.0
_LOOK_EVERY_S: Final = 0.25
_SETTLED_S: Final = 10.0
"""A probe that says so soon that the driver changed says it again and again: then the pause grows as for a crash."""

_log: Final = logging.getLogger(__name__)


def _ignore(*_: object) -> None:
    """Nobody asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """What the daemon is told, on the event loop."""

    on_frame: Callable[[Frame], None]
    """Every frame, gap frames too."""

    on_blob: Callable[[str, bytes | None], None] = _ignore
    """The answer to `load`: name and data; None: nothing there, or damaged."""

    on_blob_saved: Callable[[str, str], None] = _ignore
    """The answer to `save`: name and error; empty: it is on disk."""

    on_applied: Callable[[int], None] = _ignore
    """A generation of the configuration is in force."""

    on_upgrade: Callable[[str], None] = _ignore
    """The probe just started is of another build than we are: restart. Called for every such probe."""

    on_start: Callable[[int], None] = _ignore
    """A probe was started: its pid."""


class ProbeSupervisor:
    """Keeps one probe running."""

    def __init__(
        self,
        config: ProbeConfig,
        listener: Listener,
        clock: Clock,
        patience: Patience | None = None,
        start: ProbeStart = child_probe,
    ) -> None:
        self.starts = 0
        """Probes started so far; restarts are one less."""
        self._config = config
        self._listener = listener
        self._clock = clock
        self._patience = patience or Patience()
        self._start = start
        self._generation = 1
        self._life: ProbeLife | None = None
        self._released_until_ns: int | None = None
        self._orders: dict[str, bytes | None] = {}
        self._quarantine = Quarantine()
        self._build_id = build_id()
        self._heard_ns = clock.monotonic_ns()
        self._sequence = 0
        self._why_down = "starting"
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._heard_ns = self._clock.monotonic_ns()
        self._tasks = (
            asyncio.create_task(self._keep_running(), name="probe"),
            asyncio.create_task(self._fill_gaps(), name="probe-gaps"),
        )

    @property
    def pid(self) -> int | None:
        """Of the probe that runs now."""
        return None if self._life is None else self._life.child.pid

    def apply(self, config: ProbeConfig) -> int:
        """Reload. Returns the generation that `on_applied` will name; without an echo the probe is replaced."""
        self._config = config
        self._generation += 1
        if self._life is not None:
            self._life.desire(self._generation, self._effective())
        return self._generation

    def save(self, name: str, data: bytes) -> None:
        """Keep a blob over a restart. Repeated to a new probe until one has said what became of it."""
        self._orders[name] = data
        self._send(Blob(name=name, data=data))

    def load(self, name: str) -> None:
        """Ask for a blob. Repeated to a new probe until one has answered."""
        self._orders[name] = None
        self._send(Blob(name=name, data=None))

    def release(self, until_ns: int) -> None:
        """Close NVML until then (monotonic) or `resume`; a new probe is told as well."""
        self._released_until_ns = until_ns
        self._send(Release(until_ns=until_ns))

    def resume(self) -> None:
        """Open NVML again."""
        self._released_until_ns = None
        self._send(Resume())

    async def stop(self, timeout_s: float) -> bool:
        """End the probe in order, within `timeout_s`; whether it is gone. One that cannot be killed is left behind."""
        deadline_ns = self._clock.monotonic_ns() + nanoseconds(timeout_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        life, self._life, self._tasks = self._life, None, ()
        if life is None:
            return True
        reserve_s = self._patience.terminate_s + self._patience.kill_s
        goodbye_s = min(self._patience.goodbye_s, self._left_s(deadline_ns) - reserve_s)
        await life.say_goodbye(Shutdown(reason="stop"), goodbye_s)
        return await life.end(self._patience.within(self._left_s(deadline_ns)))

    def _left_s(self, deadline_ns: int) -> float:
        return seconds(deadline_ns - self._clock.monotonic_ns())

    async def _keep_running(self) -> None:
        backoff = Backoff()
        while True:
            try:
                life = await ProbeLife.begin(self._start, self._clock, self._hear)
            except SpawnError as error:
                self._note_down(str(error))
                await asyncio.sleep(backoff.after(0))
                continue
            self.starts += 1
            self._life = life
            await self._live(life)
            is_wished = life.was_wished and life.lived_s >= _SETTLED_S
            await asyncio.sleep(0 if is_wished else backoff.after(life.lived_s))

    async def _live(self, life: ProbeLife) -> None:
        """One probe, from its greeting until it is gone or given up."""
        self._greet(life)
        crashes = self._effective().driver_crashes
        while not life.ended.is_set():
            life.check(self._patience)
            if crashes and not self._effective().driver_crashes:
                crashes = 0
                self.apply(self._config)  # the driver is tried again
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(life.ended.wait(), _LOOK_EVERY_S)
        self._note_down(life.why)
        is_gone = await life.end(self._patience)
        self._quarantine.note_end(life.child.poll() if is_gone else None, life.lived_s, self._clock.monotonic_ns())
        if is_gone:
            _log.info("probe=%d state=ended exit=%s", life.child.pid, life.child.poll())
        else:
            _log.error("probe=%d state=abandoned reason=%r", life.child.pid, "it survives every signal allowed")
        self._life = None

    def _greet(self, life: ProbeLife) -> None:
        self._listener.on_start(life.child.pid)
        life.send(Hello(protocol=PROTOCOL_VERSION, build_id=self._build_id, pid=os.getpid()))
        until_ns = self._released_until_ns
        if until_ns is not None and until_ns > self._clock.monotonic_ns():
            life.send(Release(until_ns=until_ns))
        life.desire(self._generation, self._effective())
        for name, data in self._orders.items():
            life.send(Blob(name=name, data=data))

    def _effective(self) -> ProbeConfig:
        """The configuration, without the driver while its library crashes the probe."""
        crashes = self._quarantine.crashes(self._clock.monotonic_ns())
        return msgspec.structs.replace(self._config, driver_crashes=crashes) if crashes else self._config

    def _send(self, message: Message) -> None:
        if self._life is not None:
            self._life.send(message)

    def _hear(self, message: Message) -> None:
        """One message of the probe."""
        listener = self._listener
        match message:
            case Frame():
                self._heard(message)
            case Log(level=level, logger=logger, text=text):
                logging.getLogger(logger).log(level, "%s", text)
            case Applied(generation=generation):
                listener.on_applied(generation)
            case Blob(name=name, data=data):
                self._forget_order(name, is_save=False)
                listener.on_blob(name, data)
            case BlobSaved(name=name, error=error):
                self._forget_order(name, is_save=True)
                listener.on_blob_saved(name, error)
            case Hello(build_id=build_id) if build_id != self._build_id:
                listener.on_upgrade(build_id)
            case _:
                pass

    def _forget_order(self, name: str, *, is_save: bool) -> None:
        """An order is done. A newer one of the other kind for the same name stays."""
        if name in self._orders and (self._orders[name] is not None) == is_save:
            del self._orders[name]

    def _heard(self, frame: Frame) -> None:
        if self._why_down:
            _log.info("probe=%d state=up", frame.probe_pid)
            self._why_down = ""
        self._heard_ns = self._clock.monotonic_ns()
        self._sequence = frame.sequence
        self._listener.on_frame(frame)

    def _note_down(self, why: str) -> None:
        if why != self._why_down:
            _log.warning("probe=%s state=down reason=%r", self.pid or "none", why)
            self._why_down = why

    async def _fill_gaps(self) -> None:
        """While no frame comes there is one a second all the same: time goes on, and all is unknown."""
        gapped_ns = 0
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            now_ns = self._clock.monotonic_ns()
            is_silent = seconds(now_ns - self._heard_ns) >= self._patience.frame_s
            if is_silent and seconds(now_ns - gapped_ns) >= GAP_EVERY_S:
                gapped_ns = now_ns
                why = self._why_down or "the probe says nothing"
                self._listener.on_frame(Frame(sequence=self._sequence, time=read_frame_time(self._clock), gap=why))
