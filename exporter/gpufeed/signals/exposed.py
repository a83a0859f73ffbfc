# SPDX-License-Identifier: Apache-2.0
"""How much of the active time a collective ran and nothing else did: from the mixture of two levels.

Computing keeps many SMs at work, a collective few. Where the level lies between the two, so does the share. The upper
level is this job's own, of its last minutes; where its intervals are all the same mixture, it is the level that
kernels with busy tensor pipes have by their nature: they fill the device.
"""

from typing import Final

from gpufeed.signals.features import PEER_LEAD, RESIDENT_MIN, GpuFeatures
from gpufeed.signals.footprint import Footprint

SM_FULL, SM_COLLECTIVE = 0.88, 0.15
"""Share of SMs with work: of large matrix products, and of a collective, which takes 16 to 32 blocks."""
SM_TYPICAL, SM_COLLECTIVE_MAX = 0.8, 0.25
"""Of computing in general; and the most that a collective takes of a device."""
NEW_S, TENSOR_NEW_MAX = 30.0, 0.3
"""A job seen for less than this is taken for a typical one, unless its tensor pipes are busy."""
TENSOR_HEAVY: Final = 0.4
"""Tensor time per SM time from which on the job's kernels are large matrix products."""
TRAFFIC_MIN: Final = 0.02
SLOWEST_LEVEL: Final = 0.35
"""Of a link's rate: a collective without trouble moves its bytes at least so fast, or it would take no such time."""
DRAM_FULL, DRAM_COLLECTIVE = 0.6, 0.45
"""From the lower on, device memory is too busy for a collective; from the upper on, none runs alone at all."""
SPIN_TENSOR_MAX, SPIN_DRAM_MAX, SPIN_SM_MAX = 0.02, 0.05, 0.4
P2P_MIN: Final = 0.05


def exposed_ratio(of: GpuFeatures) -> float:
    """Share of the active time in which a collective ran and nothing else did; 0 where it cannot be told."""
    if of.sm is None or of.tensor is None:
        return 0.0
    has_traffic = of.traffic >= TRAFFIC_MIN or is_p2p(of)
    if is_polling(of) and not has_traffic:
        return 1.0
    sm, dram = of.per_active(of.sm), of.per_active(of.dram)
    is_late_peer = of.active >= RESIDENT_MIN and (of.peer_sm or 0.0) >= sm + PEER_LEAD
    if not (has_traffic or is_late_peer):
        return 0.0
    top = _computing_level(of.footprint, sm, of.per_active(of.tensor))
    mixed = min(1.0, max(0.0, (top - sm) / max(top - SM_COLLECTIVE, 0.1)))
    apart = min(1.0, max(0.0, (DRAM_FULL - dram) / (DRAM_FULL - DRAM_COLLECTIVE)))
    exposed = mixed * apart
    is_bounded = of.traffic >= TRAFFIC_MIN and not of.has_link_trouble
    if is_bounded and of.footprint.seen_s >= NEW_S and of.footprint.is_even:
        return min(exposed, longest(of))
    return exposed


def is_polling(of: GpuFeatures) -> bool:
    """A kernel is resident, and its SMs, tensor pipes and memory do next to nothing."""
    return (
        of.active > 0
        and of.per_active(of.tensor) < SPIN_TENSOR_MAX
        and of.per_active(of.dram) < SPIN_DRAM_MAX
        and of.per_active(of.sm) <= SPIN_SM_MAX
    )


def is_p2p(of: GpuFeatures) -> bool:
    """Without NVLink, traffic in both directions of PCIe at once is between GPUs."""
    return not of.has_nvlink and min(of.pcie_receive or 0.0, of.pcie_transmit or 0.0) >= P2P_MIN


def _computing_level(job: Footprint, sm: float, tensor: float) -> float:
    top = max(job.sm, sm)
    is_heavy = job.tensor >= TENSOR_HEAVY * job.sm > 0
    if is_heavy and job.is_even:
        return max(top, SM_FULL)
    is_new = job.seen_s < NEW_S and tensor < TENSOR_NEW_MAX
    is_collective = tensor < SPIN_TENSOR_MAX and sm <= SM_COLLECTIVE_MAX  # whatever this job's computing looks like
    return max(top, SM_TYPICAL) if is_new or is_collective else top


def longest(of: GpuFeatures) -> float:
    """Share of the active time that the bytes can have taken, one link after the other."""
    return ((of.nvlink or 0.0) + (of.fabric or 0.0)) / SLOWEST_LEVEL / max(of.active, 1e-9)
