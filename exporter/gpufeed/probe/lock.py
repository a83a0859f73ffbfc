# SPDX-License-Identifier: Apache-2.0
"""One lane, one thread on the whole node: a flock that outlives the probe as long as its call does.

A thread that is stuck in the kernel survives even SIGKILL, and with it the descriptor table that it shared with its
process. So do *all* flocks of that process. What tells them apart is the file's text: the thread that took the lock
last. Where that very thread is gone, the lock means nothing, and the file is replaced by a new one.
"""

import contextlib
import fcntl
import os
import threading
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import quote

from gpufeed.model.ids import LaneId

SUFFIX: Final = ".lock"
_PROC: Final = Path("/proc")
_TRIES: Final = 4
_TEXT_BYTES: Final = 128
_ENDED_STATES: Final = frozenset({"Z", "X", "x"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The thread that holds a lane, and since when (monotonic, the same clock for every process)."""

    pid: int
    tid: int
    thread_started: str  # ticks since boot: tells a thread from a later one of the same number
    namespace: str  # of process ids: numbers of another one cannot be looked up here
    began_ns: int


def format_holder(holder: Holder) -> bytes:
    """The text of a lock file."""
    words = (holder.pid, holder.tid, holder.thread_started, holder.namespace, holder.began_ns)
    return " ".join(map(str, words)).encode("ascii").ljust(_TEXT_BYTES - 1) + b"\n"


def parse_holder(text: bytes) -> Holder | None:
    """What a lock file says of its holder; None: nothing that can be understood."""
    try:
        pid, tid, thread_started, namespace, began_ns = text.decode("ascii").split()
        return Holder(
            pid=int(pid), tid=int(tid), thread_started=thread_started, namespace=namespace, began_ns=int(began_ns)
        )
    except ValueError:
        return None


def is_alive(holder: Holder) -> bool:
    """Whether that thread may still be inside its call. In doubt it is. Source: /proc/PID/task/TID/stat (proc(5))."""
    if holder.namespace != _namespace():
        return True
    found = _thread_stat(holder.pid, holder.tid)
    if found is None:
        return _is_hidden(holder.pid)
    state, started = found
    return state not in _ENDED_STATES and started == holder.thread_started


_NOBODY_KNOWN: Final = Holder(pid=0, tid=0, thread_started="", namespace="", began_ns=0)


class LaneLock:
    """The lock of one lane. Used by that lane's thread alone. Raises OSError where the directory cannot be used."""

    def __init__(self, runtime_dir: str, lane: LaneId) -> None:
        self.path = Path(runtime_dir) / "lanes" / (quote(lane, safe="") + SUFFIX)
        self._fd: int | None = None
        self._self: Holder | None = None

    def acquire(self, now_ns: int) -> Holder | None:
        """Take the lock and write down who holds it; or the one who does, if that thread still lives."""
        for _ in range(_TRIES):
            fd = self._open()
            if not _try_flock(fd):
                holder = parse_holder(os.pread(fd, _TEXT_BYTES, 0))
                if holder is None:
                    return replace(_NOBODY_KNOWN, began_ns=now_ns)
                if is_alive(holder) or not self._replace(fd):
                    return holder
            elif self._is_in_place(fd):
                self._write(fd, now_ns)
                return None
            else:
                self.close()
        raise OSError(f"{self.path} is replaced faster than it can be locked")

    def release(self) -> None:
        """Give the lock back; the file stays."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file, and of the lock if it is held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self) -> int:
        if self._fd is None:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._fd

    def _is_in_place(self, fd: int) -> bool:
        """Whether the file we locked is still the one that others would lock."""
        try:
            return os.path.samestat(os.fstat(fd), self.path.stat())
        except FileNotFoundError:
            return False

    def _replace(self, stale_fd: int) -> bool:
        """Put a new file in the place of one whose lock nobody will ever give back; False: somebody else is at it.

        The lock on the directory makes two successors take turns, or both would end up with a lock of their own.
        """
        directory = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if not _try_flock(directory):
                return False
            if self._is_in_place(stale_fd):
                fresh = self.path.with_suffix(".fresh")
                os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
                fresh.rename(self.path)
        finally:
            os.close(directory)
        self.close()
        return True

    def _write(self, fd: int, now_ns: int) -> None:
        if self._self is None:
            pid, tid = os.getpid(), threading.get_native_id()
            _, started = _thread_stat(pid, tid) or ("", "")
            self._self = Holder(pid=pid, tid=tid, thread_started=started, namespace=_namespace(), began_ns=now_ns)
        os.pwrite(fd, format_holder(replace(self._self, began_ns=now_ns)), 0)


def _try_flock(fd: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


@cache
def _namespace() -> str:
    """The namespace of our process ids. Source: /proc/PID/ns/pid (namespaces(7))."""
    return str((_PROC / "self/ns/pid").readlink())


def _thread_stat(pid: int, tid: int) -> tuple[str, str] | None:
    """State letter and start time of a thread: fields 3 and 22, counted behind the name in parentheses."""
    try:
        text = (_PROC / str(pid) / "task" / str(tid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return fields[0], fields[19]


def _is_hidden(pid: int) -> bool:
    """Whether a process that /proc does not show exists all the same: mount option hidepid."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not (_PROC / str(pid)).exists()
