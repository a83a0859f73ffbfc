# SPDX-License-Identifier: Apache-2.0
"""The one place that starts processes: this interpreter, this path, one named descriptor, nothing else inherited."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from gpufeed.errors import SpawnError

_BOOTSTRAP: Final = """\
import json, os, sys
order = json.loads(sys.argv[1])
sys.path[:] = order["path"]
if "COVERAGE_PROCESS_START" in os.environ or "COVERAGE_PROCESS_CONFIG" in os.environ:
    import coverage
    coverage.process_startup()
import importlib
module = order["module"]
sys.argv = [module, *order["arguments"]]
sys.exit(importlib.import_module(module).main())
"""
"""Run isolated from the environment and without `site`: what may be imported is what the parent may import, be that a
wheel, a venv, an editable install or a zipapp. `site` would also run coverage's start-up hook: hence the third step."""

_NOT_FOR_CHILDREN: Final = frozenset(
    {"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}
)
"""The service manager talks to one process."""

_abandoned: Final[set[int]] = set()
"""Processes that no signal ends. Remembered, so that they are reaped if they end after all."""

_UNKNOWN: Final = 255


class Child:
    """A process of ours."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        """None while it runs; then its exit code, negative for a signal. Reaps it."""
        return self._process.poll()

    def terminate(self) -> None:
        """Ask it to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it; takes effect only when no call of it is stuck in the kernel."""
        self._signal(signal.SIGKILL)

    def abandon(self) -> None:
        """Give up on it, if it still runs, and never use it again: it is reaped whenever it ends."""
        if self.poll() is None:
            _abandoned.add(self.pid)
            self._process.returncode = _UNKNOWN  # reaping is ours now; else its destructor would complain

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)


def spawn_python(module: str, arguments: Sequence[str] = (), pass_fds: Sequence[int] = ()) -> Child:
    """Start `module.main()` with `sys.argv[1:] == arguments` and these descriptors under their own numbers.

    The child has its own session, so that ^C in a terminal reaches only us; no standard input; its standard output
    is our standard error. Raises SpawnError.
    """
    reap_abandoned()
    order = {"module": module, "arguments": list(arguments), "path": _import_path()}
    flags = ["-I", "-S", "-X", "utf8", *(["-B"] if sys.dont_write_bytecode else [])]
    try:
        process = subprocess.Popen(
            [sys.executable, *flags, "-c", _BOOTSTRAP, json.dumps(order)],
            stdin=subprocess.DEVNULL,
            stdout=2,
            close_fds=True,
            pass_fds=tuple(pass_fds),
            env=_environment(os.environ),
            start_new_session=True,
        )
    except OSError as error:
        raise SpawnError(f"{sys.executable} {module}: {error}") from error
    return Child(process)


def reap_abandoned() -> None:
    """Forget abandoned processes that have ended."""
    for pid in tuple(_abandoned):
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                continue
        _abandoned.discard(pid)


def _import_path() -> list[str]:
    """Our own path, absolute: an empty entry means the folder we stand in now."""
    return [str(Path(entry).absolute()) for entry in sys.path]


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in ours.items() if name not in _NOT_FOR_CHILDREN}
