# SPDX-License-Identifier: Apache-2.0
"""Which code this is: two processes whose ids differ have had an upgrade between their starts."""

import hashlib
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import gpufeed


@cache
def build_id() -> str:
    """Version and a hash of the package's modules as they lie on disk now; computed once a process.

    Names, sizes and modification times are hashed, not contents: an installer writes all of them anew. Works for a
    folder (wheel, venv, editable) and for a zip archive (zipapp), whose directory gives the same three.
    """
    digest = hashlib.sha256()
    for line in sorted(_modules(resources.files(gpufeed), "")):
        digest.update(line.encode() + b"\n")
    return f"{gpufeed.__version__}+{digest.hexdigest()[:16]}"


def _modules(folder: Traversable, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _modules(entry, f"{name}/")
        elif name.endswith(".py"):
            yield f"{name} {_stamp(entry)}"


def _stamp(entry: Traversable) -> str:
    if isinstance(entry, Path):
        status = entry.stat()
        return f"{status.st_size} {status.st_mtime_ns}"
    if isinstance(entry, zipfile.Path):
        info = entry.root.getinfo(entry.at)
        return f"{info.file_size} {info.CRC} {info.date_time}"
    return hashlib.sha256(entry.read_bytes()).hexdigest()
