# SPDX-License-Identifier: Apache-2.0
"""`gpufeed probe`: the probe as a unit of its own, for a server with `paths.probe_socket`."""

import argparse
import os
import sys
from pathlib import Path

from gpufeed.probe.host import serve

EXIT_USAGE = 2


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM; 2 when no place for the socket is known, 3 when it cannot be had."""
    runtime = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    path = arguments.socket or (f"{runtime}/probe.sock" if runtime else "")
    if not path:
        sys.stderr.write("gpufeed probe: where is its socket to be? Name it with --socket PATH\n")
        return EXIT_USAGE
    return serve(Path(path))
