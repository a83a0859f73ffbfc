# SPDX-License-Identifier: Apache-2.0
"""For `gpufeed capture`: what readers see of their trees, laid down as trees that can be read again.

Every file lies where its links lead, and every link on the way is kept as a link. A file that refused to be read is a
folder, so that reading it fails there too. What nobody reads is not kept, and of the environment of a process only the
variables that Slurm sets.
"""

import contextlib
import errno
import os
from pathlib import Path
from typing import Final

from gpufeed.model.desired import ProbeConfig
from gpufeed.parse.slurm import parse_slurm_environ

REFUSED: Final = ".read-fails"
MAX_FILE_BYTES: Final = 4 * 1024 * 1024
MAX_LINKS: Final = 40


class Keeper:
    """Lays down what is seen below one root. Failing to is nobody's trouble: a capture is no duty."""

    def __init__(self, root: str, to: Path) -> None:
        self._root = root.rstrip("/")
        self._to = to

    def saw(self, path: str, value: object) -> None:
        """A file's bytes, a folder's names, what a link points to, or that something is there."""
        with contextlib.suppress(OSError, ValueError):
            if isinstance(value, bytes):
                self._write(path, value)
            elif isinstance(value, str):
                self._place(path, is_followed=False, link=value)
            elif isinstance(value, list):
                self._list(path, value)
            else:
                self._exist(path)

    def refused(self, path: str, error: OSError) -> None:
        """A file that is there and cannot be read."""
        if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ESRCH}:
            return
        with contextlib.suppress(OSError, ValueError):
            place = self._place(path)
            if place is not None:
                (place / REFUSED).mkdir(parents=True, exist_ok=True)

    def _write(self, path: str, data: bytes) -> None:
        place = self._place(path)
        if place is None or place.is_dir():
            return
        if path.endswith("/environ"):
            data = b"".join(f"{name}={value}\0".encode() for name, value in parse_slurm_environ(data).items())
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data[:MAX_FILE_BYTES])

    def _list(self, path: str, names: list[str]) -> None:
        place = self._place(path)
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
            for name in names:
                self._exist(f"{path.rstrip('/')}/{name}")

    def _exist(self, path: str) -> None:
        """Whatever stands there stands here too, empty."""
        full = f"{self._root}/{path}"
        if os.path.islink(full):
            self._place(path, is_followed=False, link=os.readlink(full))
            return
        place = self._place(path)
        if place is None or os.path.lexists(place):
            return
        if os.path.isdir(full):
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()

    def _place(self, path: str, *, is_followed: bool = True, link: str = "") -> Path | None:
        """Where a path's end belongs, with the links on its way laid down; None where they lead out of the tree."""
        done: list[str] = []
        ahead = [part for part in path.split("/") if part][::-1]
        links = 0
        while ahead:
            part = ahead.pop()
            if part == "..":
                del done[-1:]
                continue
            done.append(part)
            if not ahead and not is_followed:
                self._link(done, link)
                break
            target = _target(f"{self._root}/{'/'.join(done)}")
            if target is None:
                continue
            links += 1
            inside = self._link(done, target)
            if inside is None or links > MAX_LINKS:
                return None
            ahead += [part for part in inside.split("/") if part and part != "."][::-1]
            done = [] if target.startswith("/") else done[:-1]
        return self._to.joinpath(*done)

    def _link(self, at: list[str], target: str) -> str | None:
        """Lay down a link; what it leads to from where it stands, or None where that is out of the tree."""
        place = self._to.joinpath(*at)
        place.parent.mkdir(parents=True, exist_ok=True)
        inside: str | None = target
        if target.startswith("/"):
            inside = target[len(self._root) + 1 :] if self._root and target.startswith(f"{self._root}/") else None
            target = target if inside is None else "../" * (len(at) - 1) + inside
        if not os.path.lexists(place):
            place.symlink_to(target)
        return inside


def _target(full: str) -> str | None:
    try:
        return os.readlink(full)
    except OSError:
        return None


def keeper(root: str, config: ProbeConfig) -> Keeper | None:
    """The keeper of one of the configured trees; None where nothing is captured."""
    if config.capture_dir is None:
        return None
    names = {config.procfs: "procfs", config.sysfs: "sysfs", config.rootfs: "rootfs"}
    name = names.get(root)
    return Keeper(root, Path(config.capture_dir) / name) if name is not None else None
