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

    def write(self, path: str, text: str) -> None:
        """Let the file hold `text`."""
        data = text.encode()
        known = self._content.get(path)
        if data == known:
            return
        full = self._root / path
        if known is None:
            full.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(full, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.pwrite(descriptor, data, 0)
            if known is None or len(data) < len(known):
                os.ftruncate(descriptor, len(data))
        finally:
            os.close(descriptor)
        self._content[path] = data

    def make_directory(self, path: str) -> None:
        """Let the directory exist."""
        (self._root / path).mkdir(parents=True, exist_ok=True)

    def link(self, path: str, target: str) -> None:
        """Let a symbolic link stand at `path` that leads to `target`, another path below the root."""
        full = self._root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        if not full.is_symlink():
            full.symlink_to(os.path.relpath(self._root / target, full.parent))

    def remove_directory(self, path: str) -> None:
        """Let nothing be below `path`, nor itself."""
        shutil.rmtree(self._root / path, ignore_errors=True)
        below = f"{path}/"
        for known in [known for known in self._content if known.startswith(below)]:
            del self._content[known]
