# SPDX-License-Identifier: Apache-2.0
"""The control socket: commands from root, or from whoever runs the server, on this machine. One JSON line each way.

`{"command": "ack", "gpu": "GPU-…"}` → `{"ok": true, "result": …}` or `{"ok": false, "error": "…"}`.
"""

import asyncio
import contextlib
import errno
import json
import os
import socket
import stat
import struct
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from gpufeed.errors import GpufeedError

MAX_LINE_BYTES: Final = 16 * 1024
MAX_CONNECTIONS: Final = 8
_READ_WITHIN_S: Final = 5.0
_ANSWER_WITHIN_S: Final = 30.0
_CREDENTIALS: Final = struct.Struct("3i")  # struct ucred: pid, uid, gid
_MAX_PATH_BYTES: Final = 107  # sun_path, less its terminating zero

Arguments = Mapping[str, Any]


class Command(NamedTuple):
    """What a command does, and the arguments it takes."""

    carry_out: Callable[[Arguments], Awaitable[object]]
    takes: tuple[str, ...] = ()


class ControlError(GpufeedError):
    """A command that cannot be carried out, or a socket that cannot be had; the text says why."""


class ControlServer:
    """Serves `commands` from `start` to `stop`."""

    def __init__(self, path: Path, commands: Mapping[str, Command]) -> None:
        self._path = path
        self._commands = commands
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen. Raises ControlError."""
        listening = _bind(self._path)
        self._server = await asyncio.start_unix_server(self._accept, sock=listening, limit=MAX_LINE_BYTES)

    async def stop(self) -> None:
        """Close the socket and remove it."""
        if self._server is None:
            return
        self._server.close()
        for connection in tuple(self._connections):
            connection.cancel()
        with contextlib.suppress(OSError):
            self._path.unlink()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        self._connections.add(task)
        try:
            if len(self._connections) <= MAX_CONNECTIONS:
                await self._serve(reader, writer)
        except (ConnectionError, TimeoutError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not _is_allowed(writer.get_extra_info("socket")):
                raise ControlError("only root, or the user who runs gpufeed, may do this")
            async with asyncio.timeout(_READ_WITHIN_S):
                line = await reader.readuntil(b"\n")
            async with asyncio.timeout(_ANSWER_WITHIN_S):
                answer = {"ok": True, "result": await self._carry_out(line)}
        except GpufeedError as error:
            answer = {"ok": False, "error": str(error)}
        except asyncio.IncompleteReadError:
            return
        except asyncio.LimitOverrunError:
            answer = {"ok": False, "error": f"longer than {MAX_LINE_BYTES} bytes"}
        writer.write(json.dumps(answer).encode() + b"\n")
        async with asyncio.timeout(_READ_WITHIN_S):
            await writer.drain()

    async def _carry_out(self, line: bytes) -> object:
        try:
            order = json.loads(line)
        except (ValueError, RecursionError):
            order = None
        if not isinstance(order, dict) or not isinstance(order.get("command"), str):
            raise ControlError('expected one line such as {"command": "ping"}')
        command = self._commands.get(order["command"])
        if command is None:
            raise ControlError(f"no such command; there are {', '.join(sorted(self._commands))}")
        unknown = sorted(set(order) - {"command", *command.takes})
        if unknown:
            takes = ", ".join(command.takes) or "nothing"
            raise ControlError(f"{order['command']}: takes {takes}; unknown: {', '.join(map(repr, unknown))}")
        return await command.carry_out(order)


def _is_allowed(connection: socket.socket) -> bool:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(raw)
    return uid in {0, os.geteuid()}


def _bind(path: Path) -> socket.socket:
    if len(os.fsencode(path)) > _MAX_PATH_BYTES:
        raise ControlError(f"{path}: longer than the {_MAX_PATH_BYTES} bytes a socket's path may have")
    if _is_served(path):
        raise ControlError(f"{path}: another gpufeed serves here; give each its own paths.runtime")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    umask = os.umask(0o177)  # there is one thread: nothing else is made meanwhile
    try:
        remove_socket(path)
        listening.bind(str(path))
        listening.listen(MAX_CONNECTIONS)
        listening.setblocking(False)  # noqa: FBT003 the socket module's own form
    except OSError as error:
        listening.close()
        raise ControlError(f"{path}: {error.strerror or error}") from None
    finally:
        os.umask(umask)
    return listening


def remove_socket(path: Path) -> None:
    """Remove the socket that a dead process left. Raises OSError for anything else that stands there."""
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise FileExistsError(errno.EEXIST, "is no socket; name a path where nothing stands", str(path))
    path.unlink(missing_ok=True)


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(1.0)
        try:
            asking.connect(str(path))
        except OSError:
            return False
        return True
