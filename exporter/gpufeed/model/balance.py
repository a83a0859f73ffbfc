# SPDX-License-Identifier: Apache-2.0
"""Where a node is out of balance: what its layers carry of what they can, who makes others wait, how long waits are."""

from dataclasses import dataclass
from typing import Final, Literal

from gpufeed.model.evidence import Evidence

LayerName = Literal["nvlink", "fabric", "pcie", "storage_read", "storage_write"]
CapacityOrigin = Literal["spec", "configured", "learned"]
StallCause = Literal["storage", "host_cpu", "fabric", "peer", "other"]

STALL_BOUNDS_S: Final = (0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0)


@dataclass(frozen=True, slots=True)
class LayerCapacity:
    """What a device can carry in one direction, and how that is known."""

    bytes_per_s: float
    origin: CapacityOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer, by its most loaded device. Means of the last five minutes, but for the seconds."""

    device: str  # GPU UUID, device/port, kind:target
    busy_s: float  # seconds times the share of its capacity in use; never falls; 0 while no capacity is known
    demand_bytes_per_s: float  # of its busier direction
    capacity: LayerCapacity | None = None
    gpus_supportable: float | None = None

    @property
    def headroom_ratio(self) -> float | None:
        """What is left of the capacity."""
        if self.capacity is None:
            return None
        return max(0.0, 1.0 - self.demand_bytes_per_s / self.capacity.bytes_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """How much one GPU makes the others of its job wait, and what it does differently."""

    score: float  # share of the last five minutes that the others waited for a peer and this one did not
    reasons: tuple[Evidence, ...] = ()  # likeliest first; `usual`: the mean of the others


@dataclass(frozen=True, slots=True, kw_only=True)
class StallCounts:
    """Waits of GPUs by length: one count for each bound, and one above the last."""

    counts: tuple[int, ...] = (0,) * (len(STALL_BOUNDS_S) + 1)
    total_s: float = 0.0
