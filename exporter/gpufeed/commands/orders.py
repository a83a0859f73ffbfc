# SPDX-License-Identifier: Apache-2.0
"""What commands that tell the running daemon something have in common: where it is, and what to say when it refuses."""

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from gpufeed.config.load import load
from gpufeed.control_client import CommandRefusedError, DaemonUnreachableError, ask, control_socket

EXIT_OK: Final = 0
EXIT_REFUSED: Final = 1
EXIT_BAD_USE: Final = 2
EXIT_UNREACHABLE: Final = 3


def socket_of(arguments: argparse.Namespace) -> Path:
    """Where `--socket` or the configuration says that the daemon listens. Raises ConfigError."""
    return Path(arguments.socket) if arguments.socket else control_socket(load(arguments.config_file))


def ordered(name: str, arguments: argparse.Namespace, command: str, **words: object) -> tuple[Any, int]:
    """The daemon's answer and 0; None and an exit code, after saying why. Raises ConfigError."""
    try:
        return ask(socket_of(arguments), command, **words), EXIT_OK
    except CommandRefusedError as error:
        return None, failed(name, str(error), EXIT_REFUSED)
    except DaemonUnreachableError as error:
        return None, failed(name, str(error), EXIT_UNREACHABLE)


def failed(name: str, why: str, code: int) -> int:
    """Say why a command failed; its exit code."""
    sys.stderr.write(f"gpufeed {name}: {why}\n")
    return code
