# SPDX-License-Identifier: Apache-2.0
"""A unit of its own for the probe: the rights are here, the network is not.

For every connection of the server a probe is started, as the server itself would have: this process touches no
hardware, so that it can be stopped and restarted while one of them hangs.
"""

import errno
import os
import selectors
import signal
import socket
import stat
import sys
import time
from pathlib import Path
from typing import Final

from gpufeed.clock import SystemClock
from gpufeed.errors import SpawnError
from gpufeed.notify import Systemd
from gpufeed.wire.spawn import Child, spawn_python
from gpufeed.wire.start import PROBE_MODULE, credentials

MAX_PROBES: Final = 8
"""Those that hang and do not end count too: more would only hang as well."""

EXIT_OK: Final = 0
EXIT_NOT_BOUND: Final = 3
_END_WITHIN_S: Final = 7.0  # below TimeoutStopSec (10 s) less 2 s
_LOOK_EVERY_S: Final = 0.5
_POLL_S: Final = 0.02


def serve(path: Path) -> int:
    """Start probes for whoever of our own user, or root, connects to `path`; until SIGTERM. The exit code."""
    try:
        listening = _bound(path)
    except OSError as error:
        sys.stderr.write(f"gpufeed probe: {path}: {error.strerror or error}\n")
        return EXIT_NOT_BOUND
    host = _Host(listening)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, host.ask_to_end)
    Systemd(os.environ, SystemClock()).ready(f"Starting probes for {path}")
    try:
        host.run()
    finally:
        path.unlink(missing_ok=True)
    return EXIT_OK


class _Host:
    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._probes: list[Child] = []
        self._is_ending = False

    def ask_to_end(self, *_: object) -> None:
        self._is_ending = True

    def run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listening, selectors.EVENT_READ)
            while not self._is_ending:
                if selector.select(_LOOK_EVERY_S):
                    self._accept()
                self._reap()
        self._listening.close()
        self._end_all()

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:  # gone again, or no descriptor left: the server tries again
            time.sleep(_LOOK_EVERY_S)
            return
        with connection:
            _, uid = credentials(connection)
            if uid not in {0, os.geteuid()}:
                sys.stderr.write(f"gpufeed probe: refused user {uid}\n")
                return
            self._reap()
            for old in self._probes:
                old.terminate()  # whoever connects has given the one before up
            if len(self._probes) < MAX_PROBES:
                self._start(connection)

    def _start(self, connection: socket.socket) -> None:
        try:
            self._probes.append(spawn_python(PROBE_MODULE, [str(connection.fileno())], [connection.fileno()]))
        except SpawnError as error:
            sys.stderr.write(f"gpufeed probe: {error}\n")

    def _reap(self) -> None:
        self._probes = [probe for probe in self._probes if probe.poll() is None]

    def _end_all(self) -> None:
        for probe in self._probes:
            probe.terminate()
        for _ in range(round(_END_WITHIN_S / _POLL_S)):
            self._reap()
            if not self._probes:
                return
            time.sleep(_POLL_S)
        for probe in self._probes:
            probe.abandon()


def _remove_socket(path: Path) -> None:
    """Remove the socket that a dead process left. Raises OSError for anything else that stands there."""
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise FileExistsError(errno.EEXIST, "is no socket; name a path where nothing stands", str(path))
    path.unlink(missing_ok=True)


def _bound(path: Path) -> socket.socket:
    """Listening with mode 0600; a socket that a dead process left is replaced. Raises OSError."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    umask = os.umask(0o177)
    try:
        _remove_socket(path)
        listening.bind(str(path))
        listening.listen(MAX_PROBES)
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(umask)
    return listening
