# SPDX-License-Identifier: Apache-2.0
"""Writes pseudo-files below a root: in place, and only those whose content changed."""

import os
import shutil
from pathlib import Path


class TreeWriter:
    """Paths are relative to the root. Readers may be at it: a file keeps its inode, and is written by one call."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._content: dict[str, bytes] = {}
        self._directories: set[str] = set()  # known to exist
        self._pinned: dict[str, bytes | None] = {}  # what stood there before
        self._hidden: dict[str, Path] = {}  # where it is kept meanwhile

    def write(self, path: str, text: str) -> None:
        """Let the file hold `text`, unless something else was pinned there."""
        data = text.encode()
        known = self._content.get(path)
        if data == known or path in self._pinned or self._is_hidden(path):
            return
        self._put(path, data, known)

    def pin(self, path: str, text: str | None) -> None:
        """Let the file hold `text` whatever the truth says; None: a directory stands there, and reading it fails."""
        real = self._real(path)
        self._pinned.setdefault(real, self._content.get(real))
        if text is not None:
            self._put(real, text.encode(), self._content.get(real))
            return
        (self._root / real).unlink(missing_ok=True)
        self.make_directory(real)
        self._content.pop(real, None)

    def unpin(self, path: str) -> None:
        """Let what was there before stand there again."""
        real = self._real(path)
        if (self._root / real).is_dir():
            (self._root / real).rmdir()
            self._directories.discard(real)
        before = self._pinned.pop(real, None)
        if before is not None:
            self._put(real, before, self._content.get(real))

    def make_directory(self, path: str) -> None:
        """Let the directory exist."""
        if path not in self._directories and not self._is_hidden(path):
            os.makedirs(f"{self._root}/{path}", exist_ok=True)
            self._directories.add(path)

    def link(self, path: str, target: str) -> None:
        """Let a symbolic link stand at `path` that leads to `target`, another path below the root.

        Its last component is the target's name, also where a shorter way leads there: so the kernel spells them.
        """
        full = self._root / path
        self.make_directory(path.rpartition("/")[0])
        if not full.is_symlink():
            above, _, name = target.rpartition("/")
            full.symlink_to(f"{os.path.relpath(self._root / above, full.parent)}/{name}")

    def point(self, path: str, text: str) -> None:
        """Let a symbolic link stand at `path` that says `text`, whether or not anything is there: links of procfs."""
        full = self._root / path
        self.make_directory(path.rpartition("/")[0])
        if not (full.is_symlink() or self._is_hidden(path)):
            full.symlink_to(text)

    def hide(self, path: str) -> None:
        """Let nothing be at `path`, until it is shown again; what is written below it meanwhile is lost."""
        full = self._root / path
        self._hidden[path] = self._root / f".hidden{len(self._hidden)}"
        full.rename(self._hidden[path])

    def show(self, path: str) -> None:
        """Let be there again what was hidden."""
        self._hidden.pop(path).rename(self._root / path)

    def remove_directory(self, path: str) -> None:
        """Let nothing be below `path`, nor itself."""
        shutil.rmtree(self._root / path, ignore_errors=True)
        below = f"{path}/"
        self._directories = {known for known in self._directories if not f"{known}/".startswith(below)}
        for known in [known for known in self._content if known.startswith(below)]:
            del self._content[known]

    def _is_hidden(self, path: str) -> bool:
        return any(path == hidden or path.startswith(f"{hidden}/") for hidden in self._hidden)

    def _real(self, path: str) -> str:
        """The same file by the path it is written under: links of sysfs resolved."""
        return str((self._root.resolve() / path).resolve().relative_to(self._root.resolve()))

    def _put(self, path: str, data: bytes, known: bytes | None) -> None:
        if known is None:
            self.make_directory(path.rpartition("/")[0])
        descriptor = os.open(f"{self._root}/{path}", os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.pwrite(descriptor, data, 0)
            if known is None or len(data) < len(known):
                os.ftruncate(descriptor, len(data))
        finally:
            os.close(descriptor)
        self._content[path] = data
