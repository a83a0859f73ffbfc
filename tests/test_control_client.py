# SPDX-License-Identifier: Apache-2.0
"""The client of the control socket, with daemons that are none."""

import socket
import threading
from pathlib import Path

import pytest

from gpufeed.config.load import load
from gpufeed.control_client import OF_THE_UNIT, CommandRefusedError, DaemonUnreachableError, ask, control_socket


def answering(path: Path, answer: bytes) -> threading.Thread:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen(1)

    def serve() -> None:
        with listening, listening.accept()[0] as asked:
            asked.recv(4096)
            asked.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def test_a_result_is_what_the_daemon_says(tmp_path: Path) -> None:
    thread = answering(tmp_path / "s", b'{"ok": true, "result": {"for_s": 600}}\n')
    assert ask(tmp_path / "s", "release", for_s=600) == {"for_s": 600}
    thread.join(5)


def test_a_refusal_has_the_daemons_words(tmp_path: Path) -> None:
    answering(tmp_path / "s", b'{"ok": false, "error": "no such GPU"}\n')
    with pytest.raises(CommandRefusedError, match="no such GPU"):
        ask(tmp_path / "s", "ack")


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400\n", b"[]\n", b"[" * 100_000 + b"\n"])
def test_whoever_else_listens_is_not_believed(answer: bytes, tmp_path: Path) -> None:
    answering(tmp_path / "s", answer)
    with pytest.raises(DaemonUnreachableError):
        ask(tmp_path / "s", "ping")


def test_the_socket_is_the_configured_one_or_the_units(tmp_path: Path) -> None:
    file = tmp_path / "gpufeed.yml"
    file.write_text("{}\n")
    assert control_socket(load(str(file))) == OF_THE_UNIT
    file.write_text("paths: {runtime: /run/other}\n")
    assert control_socket(load(str(file))) == Path("/run/other/control.sock")
    file.write_text("control: {socket: /run/c.sock}\n")
    assert control_socket(load(str(file))) == Path("/run/c.sock")
