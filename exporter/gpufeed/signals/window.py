# SPDX-License-Identifier: Apache-2.0
"""The mean of the last five minutes, kept in half minutes: bounded, and exact for what it covers."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from gpufeed.units import NS_PER_S

LENGTH_NS: Final = 300 * NS_PER_S
PIECE_NS: Final = 30 * NS_PER_S


class Piece(NamedTuple):
    """What came in half a minute, and in how many seconds of it."""

    began_ns: int
    amount: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Window:
    """An amount per second."""

    pieces: tuple[Piece, ...] = ()

    def after(self, at_ns: int, amount: float, length_s: float) -> "Window":
        """With `amount` more, which came in `length_s` seconds; what is older than five minutes is forgotten."""
        kept = self.pieces
        while kept and kept[0].began_ns <= at_ns - LENGTH_NS:
            kept = kept[1:]
        if kept and at_ns - kept[-1].began_ns < PIECE_NS:
            last = kept[-1]
            return Window((*kept[:-1], Piece(last.began_ns, last.amount + amount, last.seconds + length_s)))
        return Window((*kept, Piece(at_ns, amount, length_s)))

    @property
    def mean(self) -> float | None:
        """Per second; None: nothing has been seen."""
        length_s = sum(piece.seconds for piece in self.pieces)
        return sum(piece.amount for piece in self.pieces) / length_s if length_s > 0 else None
