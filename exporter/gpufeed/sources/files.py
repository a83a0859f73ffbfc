# SPDX-License-Identifier: Apache-2.0
"""Reading of pseudo-files: once, whole, bounded, below a root, and with a name for what hangs.

Every error of the kernel becomes one of our words here, so that a source can tell a file that is not there from one
it may not read and from one that is broken. Which words are which was learned from drivers: a file that one device
lacks may be missing, or be there and refuse to be read.
"""

import errno
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NoReturn, TypeVar

from gpufeed.errors import Absent, Broken, Denied, SourceError, Unsupported
from gpufeed.sources.contract import Desk
from gpufeed.sources.keeping import keeper
from gpufeed.sources.kept_links import followed, kept_target

V = TypeVar("V")

ATTRIBUTE_BYTES: Final = 4096
"""A sysfs attribute fits a page by the kernel's own rule: one read has it all."""

TABLE_BYTES: Final = 4 * 1024 * 1024
"""Tables grow with the node: 5,000 mounts are 2 MB."""

NAMES: Final = 65_536
"""Entries of a directory that are looked at."""

_CHUNK_BYTES: Final = 65_536
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_REASONS: Final[Mapping[int, type[SourceError]]] = MappingProxyType(
    {
        errno.ENOENT: Absent,
        errno.ENOTDIR: Absent,
        errno.ENODEV: Absent,
        errno.ENXIO: Absent,
        errno.ESRCH: Absent,  # a process that ended between open and read
        errno.EINVAL: Unsupported,
        errno.EOPNOTSUPP: Unsupported,
        errno.ENOSYS: Unsupported,
        errno.EACCES: Denied,
        errno.EPERM: Denied,
    }
)


class Tree:
    """The files below one root, as one lane reads them."""

    def __init__(self, root: str, desk: Desk) -> None:
        self.root = root.rstrip("/")
        self._desk = desk
        self._keeper = keeper(root, desk.config)

    def attribute(self, path: str) -> bytes:
        """A file of one value, in one read. Raises SourceError."""
        return _bounded(self._tried(path, _read_once), ATTRIBUTE_BYTES, path)

    def table(self, path: str) -> bytes:
        """A file of any length up to `TABLE_BYTES`. Raises SourceError."""
        return _bounded(self._tried(path, _read_whole), TABLE_BYTES, path)

    def names(self, path: str) -> tuple[str, ...]:
        """Entries of a directory, sorted, those left out that could lead elsewhere. Raises SourceError."""
        return tuple(sorted(filter(is_plain, self._tried(f"{path}/", os.listdir)[:NAMES])))

    def link(self, path: str) -> str:
        """The last component of what a link points to. Raises SourceError."""
        return os.path.basename(self.target(path).rstrip("/"))

    def target(self, path: str) -> str:
        """All of what a link points to, as it is written there. Raises SourceError."""
        real = followed(self.root, path) or path
        return kept_target(self.root, real) or self._tried(real, os.readlink)

    def has(self, path: str) -> bool:
        """Whether there is such an entry; a link that leads nowhere counts too."""
        try:
            self._tried(path, os.lstat)
        except SourceError:
            return False
        return True

    def full(self, path: str) -> str:
        """Where a path lies on this machine."""
        return f"{self.root}/{path}"

    def _tried(self, path: str, call: Callable[[str], V]) -> V:
        """What a call gives for a path. Raises SourceError."""
        full = self._begin(path)
        try:
            return self._kept(path, call(full))
        except NotADirectoryError as error:
            elsewhere = followed(self.root, path)
            if elsewhere is None:
                refuse(error, full)
        except OSError as error:
            self._refuse(error, path)
        full = self._begin(elsewhere)
        try:
            return self._kept(elsewhere, call(full))
        except OSError as error:
            self._refuse(error, elsewhere)

    def _kept(self, path: str, value: V) -> V:
        if self._keeper is not None:
            self._keeper.saw(path, value)
        return value

    def _refuse(self, error: OSError, path: str) -> NoReturn:
        if self._keeper is not None:
            self._keeper.refused(path, error)
        refuse(error, self.full(path))

    def _begin(self, path: str) -> str:
        full = self.full(path)
        self._desk.call = full
        self._desk.counts.file_reads += 1
        return full


class HeldFile:
    """A table read again and again through one descriptor; opened anew after an error, or when it was replaced."""

    def __init__(self, root: str, path: str, desk: Desk) -> None:
        self.path = f"{root.rstrip('/')}/{path}"
        self._desk = desk
        self._name = path
        self._keeper = keeper(root, desk.config)
        self._descriptor: int | None = None

    def read(self) -> bytes:
        """The whole file as it is now. Raises SourceError."""
        self._desk.call = self.path
        self._desk.counts.file_reads += 1
        try:
            data = self._read_held()
        except OSError:
            self.close()
            try:
                data = self._read_held()
            except OSError as error:
                self.close()
                if self._keeper is not None:
                    self._keeper.refused(self._name, error)
                refuse(error, self.path)
        if self._keeper is not None:
            self._keeper.saw(self._name, data)
        return _bounded(data, TABLE_BYTES, self.path)

    def close(self) -> None:
        """Let go of the descriptor; the next read opens the file anew."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _read_held(self) -> bytes:
        if self._descriptor is not None and os.fstat(self._descriptor).st_nlink == 0:
            self.close()  # unlinked under us: an ordinary file that somebody replaced
        if self._descriptor is None:
            self._descriptor = os.open(self.path, _FLAGS)
        return read_all(self._descriptor)


def _read_once(path: str) -> bytes:
    descriptor = os.open(path, _FLAGS)
    try:
        return os.read(descriptor, ATTRIBUTE_BYTES + 1)
    finally:
        os.close(descriptor)


def _read_whole(path: str) -> bytes:
    descriptor = os.open(path, _FLAGS)
    try:
        return read_all(descriptor)
    finally:
        os.close(descriptor)


def read_all(descriptor: int) -> bytes:
    """Everything from the beginning, a little more than `TABLE_BYTES` at most. The kernel gives a table in pieces."""
    pieces: list[bytes] = []
    size = 0
    while size <= TABLE_BYTES and (piece := os.pread(descriptor, _CHUNK_BYTES, size)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def is_plain(name: str) -> bool:
    """Whether a name from a listing is one component, printable, and stays where it is."""
    return name not in {"", ".", ".."} and "/" not in name and name.isprintable()


def refuse(error: OSError, path: str) -> NoReturn:
    """The kernel's error as a SourceError of ours."""
    kind = _REASONS.get(error.errno or 0, Broken)
    raise kind(f"{path}: {os.strerror(error.errno or 0)}") from error


def _bounded(data: bytes, limit: int, path: str) -> bytes:
    if len(data) > limit:
        raise Broken(f"{path}: longer than {limit} bytes")
    return data
