# SPDX-License-Identifier: Apache-2.0
"""What one MIG instance did in an interval. Its engines are its own; clocks and what holds them down are the board's.

What links carry is counted for the board as a whole, and MIG instances exchange nothing over NVLink: nothing of it is
taken for an instance's. The tasks of the host are known by board too: with a second instance in use they may be its.
"""

from gpufeed.model.gpu import GpmInterval, GpuFast, MigInstances
from gpufeed.model.ids import GpuKey
from gpufeed.signals.features import GpuFeatures, clock_of, identity_of
from gpufeed.signals.footprint import UNKNOWN, Footprint
from gpufeed.signals.inventory import is_part_held
from gpufeed.signals.view import View
from gpufeed.units import NS_PER_S


def instance_features(
    key: GpuKey, view: View, began_ns: int, ended_ns: int, footprint: Footprint = UNKNOWN
) -> GpuFeatures | None:
    """What is known of one GPU instance over an interval; None without GPM: nothing else says what it does."""
    gpm = view.mean(GpmInterval, key, began_ns, ended_ns)
    active = gpm.get("graphics")
    if active is None:
        return None
    board = view.mean(GpuFast, key.board, began_ns, ended_ns)
    lowest, mean = clock_of(key.board, identity_of(key, view), view, began_ns - NS_PER_S, ended_ns + NS_PER_S)
    return GpuFeatures(
        active=active,
        has_gpm=True,
        sm=gpm.get("sm"),
        tensor=gpm.get("tensor"),
        dram=gpm.get("dram"),
        thermal=board.get("thermal", 0.0),
        power_brake=board.get("power_brake", 0.0),
        power_cap=board.get("power_cap", 0.0),
        clock_lowest=lowest,
        clock_mean=mean,
        is_held=is_part_held(key, view.samples),
        active_around=active,
        footprint=footprint,
        is_sharing=_is_sharing(key, view),
    )


def _is_sharing(key: GpuKey, view: View) -> bool:
    split: MigInstances | None = view.latest(MigInstances, key.board)
    others = {GpuKey(key.uuid, each.gi) for each in split.instances} - {key} if split is not None else set()
    return any(is_part_held(other, view.samples) is not False for other in others)
