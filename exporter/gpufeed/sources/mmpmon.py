# SPDX-License-Identifier: Apache-2.0
"""The one process that the probe starts: IBM's mmpmon, which alone can ask a GPFS client for its counters.

It waits for a daemon that may be down or hang. So it has a time to answer in and no more to say than a table holds;
then it is ended, it alone, and while one of them does not end, none is started beside it.
"""

import contextlib
import os
import select
import signal
import subprocess
from typing import IO, Final, cast

from gpufeed.errors import Broken, Denied, SourceError
from gpufeed.parse.text import clean_text
from gpufeed.sources.contract import Desk
from gpufeed.sources.files import TABLE_BYTES, refuse
from gpufeed.units import NS_PER_S, seconds

ANSWER_WITHIN_NS: Final = 5 * NS_PER_S
"""Less than what makes a lane stuck, its end included."""

_END_WITHIN_S: Final = 1.0
_CHUNK_BYTES: Final = 65_536
_ENVIRONMENT: Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


class Mmpmon:
    """Asks one question a process."""

    def __init__(self, path: str, desk: Desk, within_ns: int = ANSWER_WITHIN_NS) -> None:
        self.path = path
        self._desk = desk
        self._within_ns = within_ns
        self._left: subprocess.Popen[bytes] | None = None  # of an earlier question, told to end

    def ask(self, request: bytes) -> bytes:
        """What it answers to one line. Raises SourceError."""
        self._desk.call = self.path
        self._desk.counts.file_reads += 1
        if self._left is not None and self._left.poll() is None:
            raise Broken(f"{self.path}: process {self._left.pid} does not end")
        process = self._start()
        try:
            answer = self._talk(process, request)
            return self._checked(process, answer)
        finally:
            self._end(process)

    def close(self) -> None:
        """Ask for the end of a process once more."""
        if self._left is not None:
            self._end(self._left)

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [self.path, "-s", "-p"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                env=_ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            refuse(error, self.path)

    def _talk(self, process: subprocess.Popen[bytes], request: bytes) -> bytes:
        """Everything it says until it closes its output."""
        until_ns = self._desk.clock.monotonic_ns() + self._within_ns
        with cast("IO[bytes]", process.stdin) as question, cast("IO[bytes]", process.stdout) as output:
            with contextlib.suppress(BrokenPipeError):
                question.write(request + b"\n")
            question.close()
            pieces: list[bytes] = []
            size = 0
            while (left_ns := until_ns - self._desk.clock.monotonic_ns()) > 0:
                if not select.select([output], [], [], seconds(left_ns))[0]:
                    break
                piece = os.read(output.fileno(), _CHUNK_BYTES)
                if not piece:
                    return b"".join(pieces)
                pieces.append(piece)
                size += len(piece)
                if size > TABLE_BYTES:
                    raise Broken(f"{self.path}: says more than {TABLE_BYTES} bytes")
        raise Broken(f"{self.path}: no answer within {seconds(self._within_ns):g} s: is mmfsd up?")

    def _checked(self, process: subprocess.Popen[bytes], answer: bytes) -> bytes:
        """The answer of a process that ended well. Raises SourceError."""
        try:
            code = process.wait(_END_WITHIN_S)
        except subprocess.TimeoutExpired:
            raise Broken(f"{self.path}: has answered and does not end") from None
        if code == 0:
            return answer
        kind: type[SourceError] = Denied if os.geteuid() != 0 else Broken
        raise kind(f"{self.path}: exit code {code}: {clean_text(answer)}")

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """End it and what it started, and remember it where that does not work."""
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_WITHIN_S)
        self._left = process if process.poll() is None else None
