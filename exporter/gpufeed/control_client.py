# SPDX-License-Identifier: Apache-2.0
"""The other end of the control socket: one command to a daemon on this machine, and its answer."""

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gpufeed.config.schema import Config
from gpufeed.control import MAX_LINE_BYTES
from gpufeed.errors import GpufeedError

OF_THE_UNIT: Final = Path("/run/gpufeed/control.sock")
"""Where the systemd unit's RuntimeDirectory has it."""

_WITHIN_S: Final = 35.0
_MAX_ANSWER_BYTES: Final = 64 * MAX_LINE_BYTES


class DaemonUnreachableError(GpufeedError):
    """No daemon answers at the socket."""


class CommandRefusedError(GpufeedError):
    """The daemon answers that it will not; the text is its own."""


def control_socket(config: Config) -> Path:
    """Where a daemon with this configuration listens; that of the systemd unit where the configuration says nothing."""
    if config.control.socket is not None:
        return Path(config.control.socket)
    return Path(config.paths.runtime) / "control.sock" if config.paths.runtime is not None else OF_THE_UNIT


def ask(path: Path, command: str, **arguments: object) -> Any:  # noqa: ANN401  # whatever the command answers
    """The result of a command. Raises DaemonUnreachableError, CommandRefusedError."""
    return ask_within(_WITHIN_S, path, {"command": command, **arguments})


def ask_within(within_s: float, path: Path, order: Mapping[str, object]) -> Any:  # noqa: ANN401 likewise
    """The result of a command. Raises DaemonUnreachableError, CommandRefusedError."""
    line = json.dumps(order).encode() + b"\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.settimeout(within_s)
            asking.connect(str(path))
            asking.sendall(line)
            with asking.makefile("rb") as stream:
                answered = stream.readline(_MAX_ANSWER_BYTES)
    except OSError as error:
        raise DaemonUnreachableError(
            f"{path}: {error.strerror or error}: is gpufeed running, and are you root?"
        ) from None
    try:
        answer: Any = json.loads(answered)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise DaemonUnreachableError(f"{path}: whoever listens here is not gpufeed")
    if answer.get("ok") is not True:
        raise CommandRefusedError(str(answer.get("error", "refused without a reason")))
    return answer.get("result")
