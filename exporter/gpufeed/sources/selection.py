# SPDX-License-Identifier: Apache-2.0
"""Which devices a collector looks at: decided by name, before any file of a device is read."""

import re
from functools import cache
from typing import Final

from msgspec import Struct

MATCHED_CHARACTERS: Final = 128


class Selection(Struct, frozen=True):
    """Two regular expressions, found anywhere in a name. An empty `exclude` leaves out nothing."""

    include: str = ".*"
    exclude: str = ""

    def takes(self, name: str) -> bool:
        """Whether the name is wanted, by its first characters: more of them make no expression slow."""
        name = name[:MATCHED_CHARACTERS]
        if self.exclude and _compiled(self.exclude).search(name):
            return False
        return _compiled(self.include).search(name) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
