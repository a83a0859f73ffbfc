# SPDX-License-Identifier: Apache-2.0
"""What a check says of one thing. A check that cannot know says None: absent beats ok."""

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """0: measured, and well. 1: works, and worse than it should. 2: does not do its work until somebody acts."""

    level: Literal[0, 1, 2]
    reason: str = ""
    action: str = ""  # app, gpu_reset, node_reboot, drain, replace, tune, investigate
    since_ns: int | None = None  # monotonic; set where a latch holds it


OK: Final = Finding(0)
