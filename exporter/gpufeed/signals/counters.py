# SPDX-License-Identifier: Apache-2.0
"""Differences of counters that may reset, wrap, saturate or be missing: never negative, never invented."""

from typing import Final, Literal, NamedTuple

WIDEST_BITS: Final = 64

AdvanceKind = Literal["counted", "first", "reset", "saturated"]


class Advance(NamedTuple):
    """By how much a counter went on, in its own unit. Anything but `counted` means: this interval is not known."""

    amount: float
    kind: AdvanceKind


def advance(old: float | None, new: float | None, ceiling: float | None = None) -> Advance:
    """The increase from `old` to `new`.

    A reading missing on either side is `first`. A fall is a restart of the counter: what it counted since is not told
    apart from what it lost, so the interval is skipped. Standing at its ceiling it has stopped counting.
    """
    if old is None or new is None:
        return Advance(0, "first")
    if new < old:
        return Advance(0, "reset")
    if ceiling is not None and old == new == ceiling:
        return Advance(0, "saturated")
    return Advance(new - old, "counted")


def counted(old: float | None, new: float | None) -> float | None:
    """The increase where it is known, else None."""
    step = advance(old, new)
    return step.amount if step.kind == "counted" else None


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
