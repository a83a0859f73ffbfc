# SPDX-License-Identifier: Apache-2.0
"""What systemd is told, and what it hands over: sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds(3).

Without systemd every one of these does nothing.
"""

import contextlib
import os
import socket
from collections.abc import Mapping
from typing import Final

from gpufeed.clock import Clock
from gpufeed.units import NS_PER_S, US_PER_S

_FIRST_LISTEN_FD: Final = 3
_NS_PER_US: Final = NS_PER_S // US_PER_S


class Systemd:
    """Our end of NOTIFY_SOCKET."""

    def __init__(self, environment: Mapping[str, str], clock: Clock) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._clock = clock
        self.watchdog_period_s = _watchdog_period_s(environment)

    def ready(self, status: str) -> None:
        """Started, or reloaded."""
        self._send(f"READY=1\nSTATUS={status}")

    def reloading(self) -> None:
        """A reload begins; `ready` ends it."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={self._clock.monotonic_ns() // _NS_PER_US}")

    def stopping(self) -> None:
        """The orderly end begins."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """The event loop runs."""
        self._send("WATCHDOG=1")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
            sending.setblocking(False)  # noqa: FBT003 the socket module's own form
            sending.sendto(text.encode(), address)


def handed_over_sockets(environment: Mapping[str, str]) -> tuple[socket.socket, ...]:
    """The listening sockets that systemd opened for us; none when they are another process' or there are none."""
    if environment.get("LISTEN_PID") != str(os.getpid()):
        return ()
    count = environment.get("LISTEN_FDS", "0")
    last = _FIRST_LISTEN_FD + (int(count) if count.isascii() and count.isdigit() else 0)
    found = tuple(socket.socket(fileno=fd) for fd in range(_FIRST_LISTEN_FD, last))
    for one in found:
        one.set_inheritable(False)
    return found


def _watchdog_period_s(environment: Mapping[str, str]) -> float | None:
    """A third of what systemd waits: two pings may be lost. None: it does not watch us."""
    usec = environment.get("WATCHDOG_USEC", "")
    meant = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    if not meant or not (usec.isascii() and usec.isdigit()) or int(usec) == 0:
        return None
    return int(usec) / US_PER_S / 3
