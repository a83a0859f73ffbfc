# SPDX-License-Identifier: Apache-2.0
"""What a site may tell the fold: what it expects of the node, what its storage can give."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpufeed.model.ids import StorageKey
from gpufeed.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a storage target can give at most, in bytes per second; None: not known."""

    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All defaulted: a node that nobody has described is measured just the same."""

    expected_gpus: int | None = None
    storage_capacity: Mapping[StorageKey, Capacity] = field(default_factory=dict)
    ib_expected_bytes_per_s: float | None = None  # of each fabric port; None: the rate it was seen at
    decision_lag_ns: int = 2 * NS_PER_S  # an instant is decided this much later, so that both its sides are known
    decision_limit_ns: int = 3 * NS_PER_S  # and without readings, after this much, as unknown
    missing_after_ns: int = 30 * NS_PER_S  # a GPU whose lane is gone while the driver answers
    cause_score_min: float = 0.5  # a cause must reach this
    cause_lead_min: float = 0.2  # and be this far ahead of the next
