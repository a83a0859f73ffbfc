# SPDX-License-Identifier: Apache-2.0
"""Every few seconds: what the layers carried and who waited for whom since the last look."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.model.state import Attribution, GpuTotals, StateCause
from gpufeed.signals import layers, stragglers
from gpufeed.signals.layers import SLOT_NS, Layers
from gpufeed.signals.stragglers import Shares, Stragglers
from gpufeed.signals.view import View
from gpufeed.units import seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Of the node, and from when on the next look counts."""

    looked_ns: int | None = None
    state_ns: Mapping[GpuUuid, Mapping[StateCause, int]] = field(default_factory=dict)  # then
    decided_ns: int = 0  # then, of the GPU that lags most
    layers: Layers = field(default_factory=Layers)
    stragglers: Stragglers = field(default_factory=Stragglers)


def fold(
    previous: Balance,
    view: View,
    totals: Mapping[GpuKey, GpuTotals],
    results: Mapping[GpuKey, Attribution],
    now_ns: int,
) -> Balance:
    """The balance at this frame; the one before where a look is not due."""
    boards = {key.uuid: found for key, found in results.items() if not key.is_instance}
    state_ns = {uuid: found.state_ns for uuid, found in boards.items()}
    decided_ns = min((found.decided_until_ns for found in boards.values()), default=now_ns)
    if previous.looked_ns is None:
        return Balance(looked_ns=now_ns, state_ns=state_ns, decided_ns=decided_ns)
    if now_ns - previous.looked_ns < SLOT_NS:
        return previous
    length_s = seconds(now_ns - previous.looked_ns)
    shares = {
        uuid: _shares(previous.state_ns[uuid], state) for uuid, state in state_ns.items() if uuid in previous.state_ns
    }
    useful_s = length_s * sum(_useful(share) for share in shares.values())
    interval = (min(previous.decided_ns, decided_ns - 1), decided_ns)
    return Balance(
        looked_ns=now_ns,
        state_ns=state_ns,
        decided_ns=decided_ns,
        layers=layers.fold(previous.layers, view, totals, now_ns, useful_s=useful_s, length_s=length_s),
        stragglers=stragglers.fold(previous.stragglers, view, shares, interval, length_s),
    )


def _shares(before: Mapping[StateCause, int], after: Mapping[StateCause, int]) -> Shares:
    gained = {cause: value - before.get(cause, 0) for cause, value in after.items()}
    total = sum(gained.values())
    return {cause: value / total for cause, value in gained.items() if value > 0} if total > 0 else {}


def _useful(shares: Shares) -> float:
    """A slowed GPU works too."""
    return sum(share for cause, share in shares.items() if cause.state in {"busy", "throttled"})
