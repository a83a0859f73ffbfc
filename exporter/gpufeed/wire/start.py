# SPDX-License-Identifier: Apache-2.0
"""How a server comes to a probe: a child of its own, or one that a unit with more rights keeps behind a Unix socket."""

import contextlib
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from gpufeed.errors import SpawnError
from gpufeed.wire.spawn import spawn_python

PROBE_MODULE: Final = "gpufeed.probe.main"
_CREDENTIALS: Final = struct.Struct("3i")  # struct ucred: pid, uid, gid


class ProbeProcess(Protocol):
    """What the server may do to a probe; `poll` is None while it runs."""

    @property
    def pid(self) -> int:
        """Of it, or of whoever started it for us."""
        ...

    def poll(self) -> int | None:
        """None while it runs; then its exit code."""
        ...

    def terminate(self) -> None:
        """Ask it to end."""
        ...

    def kill(self) -> None:
        """End it, as far as that can be done."""
        ...

    def abandon(self) -> None:
        """Never use it again, whether it has ended or not."""
        ...


ProbeStart = Callable[[], tuple[ProbeProcess, socket.socket]]
"""Starts or reaches one probe; the socket to it is ours. Never blocks for long. Raises SpawnError."""


def child_probe() -> tuple[ProbeProcess, socket.socket]:
    """A child of ours over a socket pair."""
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            child = spawn_python(PROBE_MODULE, [str(theirs.fileno())], [theirs.fileno()])
    except SpawnError:
        ours.close()
        raise
    return child, ours


def unit_probe(path: Path) -> ProbeStart:
    """A probe that another unit starts for whoever connects to `path`."""

    def start() -> tuple[ProbeProcess, socket.socket]:
        ours = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)  # noqa: FBT003 the socket module's own form
        try:
            ours.connect(str(path))
            pid, uid = credentials(ours)
            if uid not in {0, os.geteuid()}:
                raise PermissionError(0, f"served by user {uid}, which is neither root nor ours")
        except OSError as error:
            ours.close()
            raise SpawnError(f"{path}: {error.strerror or error}: is gpufeed-probe.service running?") from None
        return _RemoteProbe(pid, ours.dup()), ours

    return start


def credentials(connection: socket.socket) -> tuple[int, int]:
    """Process and user at the other end of a Unix socket, from the kernel: SO_PEERCRED of unix(7). Raises OSError."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    return pid, uid


class _RemoteProbe:
    """A process that is not ours to signal: it ends when the connection does."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self._connection = connection

    def poll(self) -> int | None:
        """0 once the other end is closed, which a process that hangs may never do."""
        try:
            has_ended = self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return None
        except OSError:
            return 0
        return 0 if has_ended else None

    def terminate(self) -> None:
        """It reads an end of file, and ends in order."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """Nothing more than an end can be done from here."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def abandon(self) -> None:
        """Never use it again."""
        self._connection.close()
