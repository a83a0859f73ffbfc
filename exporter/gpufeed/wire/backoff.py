# SPDX-License-Identifier: Apache-2.0
"""How long to wait before the next probe is started."""

from dataclasses import dataclass
from typing import Final

FIRST_S: Final = 0.2
LONGEST_S: Final = 30.0
HEALTHY_S: Final = 60.0


@dataclass(slots=True)
class Backoff:
    """Doubles with every probe that did not last; a probe that lived long enough starts it anew."""

    pause_s: float = FIRST_S

    def after(self, lived_s: float) -> float:
        """The pause after a probe that lived this long, in seconds."""
        if lived_s >= HEALTHY_S:
            self.pause_s = FIRST_S
        pause_s = self.pause_s
        self.pause_s = min(2 * pause_s, LONGEST_S)
        return pause_s
