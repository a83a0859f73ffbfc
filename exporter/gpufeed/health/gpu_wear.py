# SPDX-License-Identifier: Apache-2.0
"""Checks of a GPU that need its neighbours, a limit of the maker's, or the word of the fabric."""

from typing import Final

from gpufeed.health.finding import OK, Finding
from gpufeed.health.latches import Latches
from gpufeed.model.gpu import GpuFast, GpuSlow
from gpufeed.model.gpu_errors import GpuErrors
from gpufeed.model.ids import GpuKey
from gpufeed.model.state import GpuRecord, NodeState

REMAPPED_ROWS_MAX: Final = 512
"""Rows replaced for uncorrectable errors from which a board is to be replaced: DCGM's limit."""
RETIRED_PAGES_MAX: Final = 63
"""Pages out of use, of both kinds, from which a board is to be replaced (Volta and older): DCGM's limit."""
RETIRED_UNCORRECTABLE_MAX: Final = 15
"""The same of pages with uncorrectable errors alone; more than these."""
POWER_LIMIT_RATIO: Final = 0.95
"""A limit below this share of its neighbours' makes the GPU the slow one of the job."""

FABRIC_UNSUPPORTED: Final = 0
FABRIC_COMPLETED: Final = 3
"""nvmlGpuFabricState_t."""


def fabric(gpu: GpuRecord, state: NodeState, _: Latches) -> Finding | None:
    """The GPU has not joined its NVLink fabric, or the fabric is not well."""
    held = state.latest(GpuSlow).get(GpuKey(gpu.uuid))
    if held is None or held.sample.fabric_state in {None, FABRIC_UNSUPPORTED}:
        return None
    slow = held.sample
    if slow.fabric_state != FABRIC_COMPLETED:
        reason = f"GPU {gpu.index} has not joined its NVLink fabric (state {slow.fabric_state})"
        return Finding(2, reason, "investigate")
    if slow.fabric_status:
        reason = f"GPU {gpu.index} could not join its NVLink fabric (NVML says {slow.fabric_status})"
        return Finding(2, reason, "gpu_reset")
    troubles = sorted(name for name, is_in_force in (slow.fabric_trouble or {}).items() if is_in_force)
    if troubles:
        return Finding(1, f"NVLink fabric of GPU {gpu.index}: {', '.join(troubles)}", "drain")
    return OK


def memory_wear(gpu: GpuRecord, state: NodeState, _: Latches) -> Finding | None:
    """So much memory was replaced or taken out of use that the board is to be replaced."""
    held = state.latest(GpuErrors).get(GpuKey(gpu.uuid))
    if held is None:
        return None
    rows, pages = held.sample.remapped_rows, held.sample.retired_pages
    if rows is None and pages is None:
        return None
    remapped = (rows or {}).get("uncorrectable", 0)
    retired, retired_hard = sum((pages or {}).values()), (pages or {}).get("uncorrectable", 0)
    if remapped >= REMAPPED_ROWS_MAX:
        return Finding(1, f"GPU {gpu.index} has replaced {remapped} memory rows", "replace")
    if retired >= RETIRED_PAGES_MAX or retired_hard > RETIRED_UNCORRECTABLE_MAX:
        return Finding(1, f"GPU {gpu.index} has taken {retired} memory pages out of use", "replace")
    return OK


def power_limit(gpu: GpuRecord, state: NodeState, _: Latches) -> Finding | None:
    """The GPU may draw less than its neighbours of the same type. Where all may as little, it is a site's choice."""
    limits = {
        other.uuid: limit
        for other in state.gpus.values()
        if _name(other) is not None and _name(other) == _name(gpu) and (limit := _limit_w(other, state)) is not None
    }
    own = limits.pop(gpu.uuid, None)
    if own is None or not limits:
        return None
    if own >= POWER_LIMIT_RATIO * max(limits.values()):
        return OK
    reason = f"GPU {gpu.index} may draw {own:.0f} W, its neighbours {max(limits.values()):.0f} W"
    return Finding(1, reason, "tune")


def _name(gpu: GpuRecord) -> str | None:
    return gpu.identity.name if gpu.identity else None


def _limit_w(gpu: GpuRecord, state: NodeState) -> float | None:
    held = state.latest(GpuFast).get(GpuKey(gpu.uuid))
    return held.sample.power_limit_enforced_w if held else None
