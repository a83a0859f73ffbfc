# SPDX-License-Identifier: Apache-2.0
"""`gpufeed check`: the health of the node as one line and an exit code, from the running daemon, within a second."""

import argparse
import json
from typing import Any, Final

from gpufeed.commands.orders import socket_of
from gpufeed.control_client import CommandRefusedError, DaemonUnreachableError, ask_within

EXIT_CODES: Final = {"ok": 0, "degraded": 1, "failed": 2, "unknown": 3}
_WITHIN_S: Final = 0.6
"""With the start of Python, less than the second that is promised."""


def run(arguments: argparse.Namespace) -> int:
    """0 ok, 1 degraded, 2 failed, 3 not known: no daemon answers, or it has read nothing yet. Raises ConfigError."""
    try:
        told = ask_within(_WITHIN_S, socket_of(arguments), {"command": "check"})
        line, code = _line(told), EXIT_CODES[told["level"]]
    except (DaemonUnreachableError, CommandRefusedError) as error:
        told = {"level": "unknown", "line": f"unknown: {error}", "troubles": []}
        line, code = told["line"], EXIT_CODES["unknown"]
    except (KeyError, TypeError):
        told = {"level": "unknown", "line": "unknown: the daemon is of another version", "troubles": []}
        line, code = told["line"], EXIT_CODES["unknown"]
    print(json.dumps(told) if arguments.json else line)
    return code


def _line(told: dict[str, Any]) -> str:
    line: str = told["line"]
    return f"{line} (under maintenance)" if told.get("maintenance") else line
