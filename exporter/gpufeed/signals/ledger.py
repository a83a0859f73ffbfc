# SPDX-License-Identifier: Apache-2.0
"""Integer nanoseconds by (state, cause): split without loss, added without loss."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

from gpufeed.model.state import StateCause


def split(length_ns: int, shares: Sequence[tuple[StateCause, float]]) -> list[tuple[StateCause, int]]:
    """`length_ns` in parts in proportion to `shares`, which need not add up to 1: the last part takes what is left.

    No part is negative and they add up exactly. Shares that are not finite, or negative, are 0. Raises ValueError
    without shares.
    """
    if not shares:
        raise ValueError("an interval needs a state")
    clean = [(cause, share if isfinite(share) and share > 0 else 0.0) for cause, share in shares]
    total = sum(share for _, share in clean)
    parts = []
    given_ns, upto = 0, 0.0
    for cause, share in clean[:-1]:
        upto += share
        edge_ns = min(length_ns, max(given_ns, round(length_ns * min(1.0, upto / total)))) if total > 0 else given_ns
        parts.append((cause, edge_ns - given_ns))
        given_ns = edge_ns
    parts.append((clean[-1][0], length_ns - given_ns))
    return parts


def added(state_ns: Mapping[StateCause, int], parts: Iterable[tuple[StateCause, int]]) -> Mapping[StateCause, int]:
    """`state_ns` with `parts` added; parts of no length leave no trace."""
    after = dict(state_ns)
    for cause, length_ns in parts:
        if length_ns > 0:
            after[cause] = after.get(cause, 0) + length_ns
    return after
