# SPDX-License-Identifier: Apache-2.0
"""What a device can carry at most in one direction, in bytes per second, and how that is known."""

from collections.abc import Mapping
from typing import Final, Literal, get_args

from gpufeed.model.balance import LayerCapacity
from gpufeed.model.gpu import GpuSlow, NvlinkTotals
from gpufeed.model.ids import GpuKey, GpuUuid, StorageKey
from gpufeed.model.storage import StorageCounters
from gpufeed.signals.baselines import target_name
from gpufeed.signals.pcie import ACHIEVABLE, link_bytes_per_s, link_ceiling
from gpufeed.signals.view import View

Direction = Literal["read", "write"]
DIRECTIONS: Final[tuple[Direction, ...]] = get_args(Direction)

LINK_ACHIEVABLE: Final = 0.8
"""Of an interconnect's rate: what the exchanges of a job get through at best (ring all-reduce: 78 to 82 %)."""


def nvlink_capacity(uuid: GpuUuid, view: View) -> LayerCapacity | None:
    """Of all links of one GPU that are up."""
    record = view.records.get(uuid)
    identity = record.identity if record is not None else None
    totals: NvlinkTotals | None = view.latest(NvlinkTotals, GpuKey(uuid))
    links = totals.links_up if totals is not None and totals.links_up is not None else None
    if links is None and identity is not None:
        links = identity.nvlink_links
    speed = identity.nvlink_speed_bytes_per_s if identity is not None else None
    return LayerCapacity(LINK_ACHIEVABLE * links * speed, "spec") if links and speed else None


def pcie_capacity(uuid: GpuUuid, view: View) -> LayerCapacity | None:
    """Of the link as it is while it works: an idle one is trained down, so the highest it can be counts then."""
    record = view.records.get(uuid)
    identity = record.identity if record is not None else None
    if identity is None:
        return None
    slow: GpuSlow | None = view.latest(GpuSlow, GpuKey(uuid))
    width = slow.pcie_width if slow is not None else None
    full = link_bytes_per_s(identity.pcie_generation_max, width or identity.pcie_width_max)
    return LayerCapacity(ACHIEVABLE * (full or link_ceiling(identity)), "spec")


def capacities(view: View) -> Mapping[tuple[StorageKey, str], LayerCapacity]:
    """Of every storage target that is read now, by direction, where it is known."""
    known = {
        (target, direction): storage_capacity(target, direction, view)
        for target in view.samples.get(StorageCounters, {})
        if isinstance(target, StorageKey)
        for direction in DIRECTIONS
    }
    return {key: capacity for key, capacity in known.items() if capacity is not None}


def storage_capacity(target: StorageKey, direction: Direction, view: View) -> LayerCapacity | None:
    """As configured; else, for reads over the network, the rate at which it was seen to be full."""
    configured = view.settings.storage_capacity.get(target)
    if configured is not None:
        most = configured.read_bytes_per_s if direction == "read" else configured.write_bytes_per_s
        if most:
            return LayerCapacity(most, "configured")
    if target.kind == "block" or direction == "write":
        return None
    learned = view.baselines.usual("read_full", target_name(target))
    return LayerCapacity(learned, "learned") if learned else None
