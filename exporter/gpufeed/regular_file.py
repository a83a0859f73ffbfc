# SPDX-License-Identifier: Apache-2.0
"""Files that people name in a configuration: read whole, never waited for, never longer than asked for."""

import os
import stat
from pathlib import Path


def read_regular(path: Path | str, max_bytes: int) -> bytes:
    """At most `max_bytes` of a regular file.

    Raises OSError, also for what is no regular file: opening a pipe that nobody writes to would wait for ever.
    ValueError for a path that holds a zero byte.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError("Is a directory")
        if not stat.S_ISREG(mode):
            raise OSError("is a pipe or a device, not a regular file")
        return opened.read(max_bytes)
