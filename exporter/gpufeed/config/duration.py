# SPDX-License-Identifier: Apache-2.0
"""Durations as people write them: `200ms`, `10s`, `5m`, `1h30m`, as in Prometheus."""

import re
from typing import Final

from msgspec import Struct

from gpufeed.units import NS_PER_S

_UNITS: Final = {
    "d": 86_400 * NS_PER_S,
    "h": 3_600 * NS_PER_S,
    "m": 60 * NS_PER_S,
    "s": NS_PER_S,
    "ms": NS_PER_S // 1000,
}
_FORM: Final = re.compile(
    r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m(?!s))?(?:(\d{1,9})s)?(?:(\d{1,9})ms)?\Z", re.ASCII
)


class Duration(Struct, frozen=True, order=True):
    """A length of time in whole nanoseconds."""

    ns: int

    @classmethod
    def parse(cls, text: str) -> "Duration":
        """A duration from its text: whole numbers with units, the longest first. Raises ValueError."""
        match = _FORM.match(text)
        if not text or match is None:
            raise ValueError("expected a duration such as 200ms, 10s, 5m or 1h30m")
        amounts = zip(match.groups(), _UNITS.values(), strict=True)
        return cls(sum(int(amount) * unit for amount, unit in amounts if amount is not None))

    @property
    def seconds(self) -> float:
        """The same in seconds."""
        return self.ns / NS_PER_S

    def __str__(self) -> str:
        rest, parts = self.ns, []
        for name, unit in _UNITS.items():
            amount, rest = divmod(rest, unit)
            if amount:
                parts.append(f"{amount}{name}")
        return "".join(parts) or "0s"
