# SPDX-License-Identifier: Apache-2.0
"""`gpufeed record`: what the running daemon reads, redacted, in a file of bounded size that `replay` understands."""

import argparse
import secrets
import socket
import sys
import time
from base64 import b64decode
from pathlib import Path
from typing import Any, Final

import msgspec

import gpufeed
from gpufeed.commands.orders import EXIT_BAD_USE, EXIT_OK, EXIT_REFUSED, failed, ordered
from gpufeed.config.duration import Duration
from gpufeed.model.frame import Frame, FrameTime
from gpufeed.redaction import Redaction
from gpufeed.signals.settings import Settings
from gpufeed.wire.framing import Decoder
from gpufeed.wire.messages import PROTOCOL_VERSION
from gpufeed.wire.recording import Header, Writer
from gpufeed.wire.redacted import FrameRedaction

NAME: Final = "record"
_EVERY_S: Final = 1.0
_MIB: Final = 1024 * 1024


def run(arguments: argparse.Namespace) -> int:
    """0: written; 1: refused, or it cannot be written; 2: bad use; 3: no daemon answers. Raises ConfigError."""
    try:
        left = round(Duration.parse(arguments.record_for).seconds / _EVERY_S)
    except ValueError as error:
        return failed(NAME, f"--for: {error}", EXIT_BAD_USE)
    begun, code = ordered(NAME, arguments, "frames")
    if begun is None:
        return code
    recording = _Recording(arguments, begun)
    sys.stderr.write(f"gpufeed record: recording for {arguments.record_for}; Ctrl-C ends it before\n")
    try:
        code = recording.run(left)
        print(recording.said())
    except OSError as error:
        return failed(NAME, f"{arguments.out}: {error.strerror or error}", EXIT_REFUSED)
    return code


class _Recording:
    """The files, the newest under the name that was asked for."""

    def __init__(self, arguments: argparse.Namespace, begun: dict[str, Any]) -> None:
        self._arguments = arguments
        self._out = Path(arguments.out)
        self._next: int = begun["next"]
        self._begun = begun
        self._time = msgspec.convert(begun["time"], FrameTime)
        self._redaction = Redaction(secrets.token_bytes(32), {socket.gethostname()} - {"localhost"})
        self._frames = FrameRedaction(self._redaction)
        told = msgspec.msgpack.decode(b64decode(begun["settings"]), type=Settings)
        self._settings = told if arguments.with_names else self._frames.settings(told)
        self.count = 0
        self.lost = 0

    def run(self, turns: int) -> int:
        """Until the time is over, Ctrl-C, or the daemon is gone. Raises OSError, ConfigError."""
        code = EXIT_OK
        self._open()
        self._take(self._begun)
        try:
            for _ in range(turns):
                time.sleep(_EVERY_S)
                told, code = ordered(NAME, self._arguments, "frames", after=self._next)
                if told is None:
                    break
                self._take(told)
        except KeyboardInterrupt:
            pass
        finally:
            self._writer.close()
            self._stream.close()
        return code

    def said(self) -> str:
        """What was written."""
        replaced = ", ".join(f"{count} {kind}" for kind, count in sorted(self._redaction.counts.items()))
        names = "names are in it" if self._arguments.with_names else f"replaced: {replaced or 'nothing'}"
        lost = f"; {self.lost} frames came too fast and are missing" if self.lost else ""
        return f"{self._out}: {self.count} frames, {self._out.stat().st_size} bytes; {names}{lost}"

    def _take(self, told: dict[str, Any]) -> None:
        self._next = told["next"]
        self.lost += told["lost"]
        for encoded in told["frames"]:
            for message in Decoder().feed(b64decode(encoded)):
                if isinstance(message, Frame):
                    if self._writer.written_bytes >= self._arguments.max_size * _MIB:
                        self._rotate(message)
                    self._writer.add(message if self._arguments.with_names else self._frames.frame(message))
                    self.count += 1

    def _rotate(self, frame: Frame) -> None:
        """OUT becomes OUT.1, that one OUT.2, and the last one goes."""
        self._writer.close()
        self._stream.close()
        for number in range(self._arguments.files - 1, 0, -1):
            older = self._out if number == 1 else self._out.with_name(f"{self._out.name}.{number - 1}")
            if older.exists():
                older.replace(self._out.with_name(f"{self._out.name}.{number}"))
        self._time = frame.time
        self._open()

    def _open(self) -> None:
        self._stream = self._out.open("wb")
        self._writer = Writer(
            self._stream,
            Header(
                protocol=PROTOCOL_VERSION,
                version=gpufeed.__version__,
                time=self._time,
                settings=self._settings,
                is_simulated=bool(self._begun.get("simulated")),
                is_redacted=not self._arguments.with_names,
            ),
        )
