# SPDX-License-Identifier: Apache-2.0
"""Trees of sysfs that were copied to where there are no symbolic links: a link is then a file that holds its target.

The kernel's own trees have no such files; there this is never asked.
"""

import os
import re
from typing import Final

_KERNELS_OWN: Final = frozenset({"/sys", "/proc"})
_TARGET: Final = re.compile(rb"(?:\.{1,2}/)+[^\0\n]{1,1000}")
_TARGET_BYTES: Final = 1024
_MAX_LINKS: Final = 16


def kept_target(root: str, path: str) -> str | None:
    """What the link at `path` below `root` points to, where it is kept as a file; None where it is none."""
    if root in _KERNELS_OWN:
        return None
    full = f"{root}/{path}"
    try:
        if os.path.islink(full) or not os.path.isfile(full):
            return None
        with open(full, "rb") as file:
            text = file.read(_TARGET_BYTES).strip()
    except OSError:
        return None
    return os.fsdecode(text).rstrip("/") if _TARGET.fullmatch(text) else None


def followed(root: str, path: str) -> str | None:
    """The same path with kept links replaced by what they point to; None where there is none, or one leads outside.

    A link at the very end is followed only if a slash stands behind it, as the kernel does where a directory is asked
    for.
    """
    if root in _KERNELS_OWN:
        return None
    done: list[str] = []
    ahead = path.split("/")[::-1]
    links = 0
    while ahead:
        part = ahead.pop()
        if not part:
            continue
        done.append(part)
        target = kept_target(root, "/".join(done)) if ahead else None
        if target is None:
            continue
        links += 1
        whole = os.path.normpath("/".join([*done[:-1], target]))
        if links > _MAX_LINKS or whole.startswith(".."):
            return None
        ahead += whole.split("/")[::-1]  # there may be links on the way there too
        done = []
    return "/".join(done) if links else None
