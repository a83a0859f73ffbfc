# SPDX-License-Identifier: Apache-2.0
"""What this process has used so far."""

import mmap
import time
from pathlib import Path
from typing import Final

_STATM: Final = Path("/proc/self/statm")


def used() -> tuple[int, int]:
    """Processor time in nanoseconds, all threads; resident bytes. Source: /proc/self/statm, second field, in pages."""
    resident_pages = int(_STATM.read_bytes().split()[1])
    return time.process_time_ns(), resident_pages * mmap.PAGESIZE
