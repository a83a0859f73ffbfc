# SPDX-License-Identifier: Apache-2.0
"""Differences of counters that may reset, wrap or be missing: never negative, never invented."""

from typing import Final

WIDEST_BITS: Final = 64


def counted(old: float | None, new: float | None) -> float | None:
    """The increase where it is known, else None.

    A fall is a restart of the counter: what it counted since is not told apart from what it lost, so the interval is
    skipped.
    """
    return None if old is None or new is None or new < old else new - old


def unwrap(old: int | None, new: int | None, bits: int, plausible: float) -> int | None:
    """The increase of a counter that wraps at 2**`bits`, where it can be known; else None.

    `plausible` is the most that the hardware can count in the time between: if it could have wrapped twice nothing is
    known, and an increase beyond it is a restart seen as a wrap. Raises nothing.
    """
    if not 1 <= bits <= WIDEST_BITS:
        return None
    modulus = 1 << bits
    if old is None or new is None or plausible >= modulus:
        return None
    if not (0 <= old < modulus and 0 <= new < modulus):
        return None
    increase = (new - old) % modulus
    return increase if increase <= plausible else None
