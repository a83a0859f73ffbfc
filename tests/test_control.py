# SPDX-License-Identifier: Apache-2.0
"""The control socket: one line in, one line out, for its owner, and nothing that could hold the server."""

import asyncio
import json
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gpufeed.control import MAX_CONNECTIONS, MAX_LINE_BYTES, Arguments, Command, ControlError, ControlServer


async def echo(arguments: Arguments) -> object:
    return dict(arguments)


async def refuse(_: Arguments) -> object:
    raise ControlError("not today")


@pytest.fixture
async def path(tmp_path: Path) -> AsyncIterator[Path]:
    server = ControlServer(tmp_path / "control.sock", {"echo": Command(echo, ("a",)), "refuse": Command(refuse)})
    await server.start()
    yield tmp_path / "control.sock"
    await server.stop()
    assert not (tmp_path / "control.sock").exists()


async def ask(path: Path, line: bytes) -> dict[str, Any]:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(line)
    async with asyncio.timeout(5):
        answer: dict[str, Any] = json.loads(await reader.readline())
    writer.close()
    return answer


async def test_a_command_gets_its_arguments_and_gives_its_result(path: Path) -> None:
    answer = await ask(path, b'{"command": "echo", "a": 1}\n')
    assert answer == {"ok": True, "result": {"command": "echo", "a": 1}}


def test_only_the_owner_may_open_the_socket(path: Path) -> None:
    mode = path.stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"command": "refuse"}\n', "not today"),
        (b'{"command": "echo", "b": 1, "a": 2}\n', "echo: takes a; unknown: 'b'"),
        (b'{"command": "refuse", "for": 1}\n', "refuse: takes nothing; unknown: 'for'"),
        (b'{"command": "dance"}\n', "no such command; there are echo, refuse"),
        (b'{"command": 3}\n', "expected one line such as"),
        (b"[]\n", "expected one line such as"),
        (b"\xff\n", "expected one line such as"),
        (b"[" * 10_000 + b"\n", "expected one line such as"),
        (b"x" * (MAX_LINE_BYTES + 10) + b"\n", f"longer than {MAX_LINE_BYTES} bytes"),
    ],
)
async def test_what_cannot_be_done_is_said(path: Path, line: bytes, error: str) -> None:
    answer = await ask(path, line)
    assert answer["ok"] is False
    assert answer["error"].startswith(error)


async def test_connections_that_say_nothing_do_not_keep_others_out_for_long(path: Path) -> None:
    silent = [await asyncio.open_unix_connection(path) for _ in range(MAX_CONNECTIONS + 4)]
    async with asyncio.timeout(5):
        assert await silent[-1][0].read() == b""  # above the cap: closed at once
    for _, writer in silent:
        writer.close()
    async with asyncio.timeout(5):
        while True:
            try:
                assert (await ask(path, b'{"command": "echo"}\n'))["ok"]
                break
            except (ConnectionError, ValueError):
                continue


async def test_a_socket_left_behind_is_replaced_and_one_in_use_is_not(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    first = ControlServer(path, {"echo": Command(echo)})
    await first.start()
    second = ControlServer(path, {"echo": Command(echo)})
    with pytest.raises(ControlError, match="another gpufeed serves here"):
        await second.start()
    assert (await ask(path, b'{"command": "echo"}\n'))["ok"]
    await second.stop()
    assert path.exists()
    await first.stop()


async def test_a_path_that_cannot_be_is_an_error_with_its_reason(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / ("x" * 120), "longer than the 107 bytes"),
        (tmp_path / "none" / "control.sock", "No such file or directory"),
    ):
        with pytest.raises(ControlError, match=reason):
            await ControlServer(path, {}).start()


async def test_a_file_where_the_socket_is_to_be_is_not_deleted(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    with pytest.raises(ControlError, match="is no socket"):
        await ControlServer(precious, {}).start()
    assert precious.read_text() == "precious"
