# SPDX-License-Identifier: Apache-2.0
"""`gpufeed release`: the running daemon lets go of every GPU, so that a reset or a driver's unload can proceed."""

import argparse
import sys
from pathlib import Path
from typing import Final

from gpufeed.config.duration import Duration
from gpufeed.config.load import load
from gpufeed.control_client import CommandRefusedError, DaemonUnreachableError, ask, control_socket
from gpufeed.units import seconds

EXIT_OK: Final = 0
EXIT_REFUSED: Final = 1
EXIT_BAD_USE: Final = 2
EXIT_UNREACHABLE: Final = 3


def run(arguments: argparse.Namespace) -> int:
    """0 when the daemon obeys, 1 when it refuses, 2 for a bad duration, 3 when none answers. Raises ConfigError."""
    path = Path(arguments.socket) if arguments.socket else control_socket(load(arguments.config_file))
    try:
        for_s = seconds(Duration.parse(arguments.release_for).ns)
    except ValueError as error:
        return _failed(f"--for: {error}", EXIT_BAD_USE)
    try:
        if arguments.resume:
            ask(path, "resume")
            print("NVML is opened again")
        else:
            ask(path, "release", for_s=for_s)
            print(f"NVML is closed for {arguments.release_for}; `gpufeed release --resume` takes it back before")
    except CommandRefusedError as error:
        return _failed(str(error), EXIT_REFUSED)
    except DaemonUnreachableError as error:
        return _failed(str(error), EXIT_UNREACHABLE)
    return EXIT_OK


def _failed(why: str, code: int) -> int:
    sys.stderr.write(f"gpufeed release: {why}\n")
    return code
