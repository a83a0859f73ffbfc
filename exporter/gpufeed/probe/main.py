# SPDX-License-Identifier: Apache-2.0
"""The probe process: listens to the server on its main thread, everything that may block is on lanes.

It ends by `os._exit`: a thread inside a call that does not return must not keep it.
"""

import faulthandler
import os
import signal
import socket
import sys
import threading
import traceback
from typing import NoReturn

from gpufeed.clock import SystemClock
from gpufeed.errors import WireError
from gpufeed.probe.session import Session

EXIT_OK = 0
EXIT_BUG = 70
"""sysexits: an internal error. The server starts another probe."""


def main() -> NoReturn:
    """Run a probe over the socket whose descriptor is the one argument; never returns."""
    faulthandler.enable()
    threading.excepthook = end_with_a_trace
    link = socket.socket(fileno=int(sys.argv[1]))
    session = Session(link, SystemClock())
    signal.signal(signal.SIGTERM, lambda *_: session.ask_to_end("stop"))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        session.run()
    except WireError as error:
        sys.stderr.write(f"gpufeed probe: {error}\n")
        os._exit(EXIT_BUG)
    os._exit(EXIT_OK)


def end_with_a_trace(problem: threading.ExceptHookArgs) -> None:
    """A thread ended by a bug of ours: half a probe would lie by leaving things out."""
    traceback.print_exception(problem.exc_value)
    sys.stderr.flush()
    os._exit(EXIT_BUG)
