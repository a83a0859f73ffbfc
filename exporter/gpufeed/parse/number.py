# SPDX-License-Identifier: Apache-2.0
"""The number grammars of sysfs and procfs. Every other parser takes its numbers from here.

Three answers, never confused: a value; None, where the file says that it does not know (empty, `N/A …`, or -1 where
only a count makes sense); ParseError, where it says something that is no number.
"""

import math
import re
from collections.abc import Sequence
from typing import Final

from gpufeed.errors import ParseError

MAX_COUNT: Final = 2**64 - 1
"""The widest counter the kernel prints, and the widest integer that may cross the wire."""

_MAX_DIGITS: Final = 20
_MIN_INTEGER: Final = -(2**63)
_DECIMAL: Final = re.compile(rb"[+-]?[0-9]{1,20}")
_HEXADECIMAL: Final = re.compile(rb"0[xX][0-9a-fA-F]{1,16}")
_FLOAT: Final = re.compile(rb"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")
_NOT_AVAILABLE: Final = b"n/a"  # `N/A (no PMA)` in InfiniBand counters of kernels before 5.10


def parse_integer(data: bytes, where: str = "") -> int | None:
    """One integer, decimal or hexadecimal with `0x`; None where the file says it has none. Raises ParseError."""
    word = data.strip()
    if _is_unknown(word):
        return None
    if _HEXADECIMAL.fullmatch(word):
        return int(word, 16)
    if _DECIMAL.fullmatch(word) and _MIN_INTEGER <= (value := int(word)) <= MAX_COUNT:
        return value
    raise ParseError("an integer", word, where)


def parse_count(data: bytes, where: str = "") -> int | None:
    """One count, never negative; -1 is the kernel's word for unknown and gives None. Raises ParseError."""
    value = parse_integer(data, where)
    if value == -1:
        return None
    if value is not None and value < 0:
        raise ParseError("a count", data.strip(), where)
    return value


def parse_float(data: bytes, where: str = "") -> float | None:
    """One finite decimal fraction; None where the file says it has none. Raises ParseError."""
    word = data.strip()
    if _is_unknown(word):
        return None
    if _FLOAT.fullmatch(word) and math.isfinite(value := float(word)):
        return value
    raise ParseError("a number", word, where)


def counts(words: Sequence[bytes], at_least: int, where: str = "") -> tuple[int, ...]:
    """The words as counts, at least so many. Raises ParseError."""
    if len(words) < at_least:
        raise ParseError(f"at least {at_least} counts", b" ".join(words), where)
    if not (b"".join(words).isdigit() and max(map(len, words)) <= _MAX_DIGITS):
        raise ParseError("counts", b" ".join(words), where)
    values = tuple(map(int, words))
    if max(values) > MAX_COUNT:
        raise ParseError("counts of 64 bits", b" ".join(words), where)
    return values


def _is_unknown(word: bytes) -> bool:
    return not word or word[:3].lower() == _NOT_AVAILABLE
