# SPDX-License-Identifier: Apache-2.0
"""Active time, split: computing, held down, exchanging bytes, waiting inside a collective for bytes that do not come.

With GPM a kernel's level is known: computing shows many SMs at work, a collective few. An interval between the two
levels is a mixture of both. Without GPM power stands in for it, and much less can be said.
"""

from typing import Final, NamedTuple

from gpufeed.model.state import StateCause
from gpufeed.signals.features import PEER_LEAD, RESIDENT_MIN, GpuFeatures

BUSY_TENSOR: Final = StateCause("busy", "tensor")
BUSY_MEMORY: Final = StateCause("busy", "memory")
BUSY_OTHER: Final = StateCause("busy", "other")
PEER: Final = StateCause("starved", "peer")

TENSOR_KIND_MIN, MEMORY_KIND_MIN = 0.15, 0.4
"""Of the active time: from here on a kernel counts as tensor work, or as moving device memory."""
SM_COMPUTING, SM_COLLECTIVE = 0.8, 0.15
"""Share of SMs with work while a job computes, until it has been learned, and while only a collective runs."""
TENSOR_COMPUTING_MAX: Final = 0.3
"""Until what is usual has been learned: above this nothing of the interval is taken for a collective."""
TRAFFIC_MIN: Final = 0.02
SATURATED: Final = 0.8
MOVING_LEVEL: Final = 0.2
"""A collective that moves bytes at all fills at least this much of its link."""
CONCENTRATED_MIN, CONCENTRATED_MAX = 0.1, 1.3
"""Between these, traffic all falls into the exposed part; beyond, it also runs beside the computing."""
SPIN_TENSOR_MAX, SPIN_DRAM_MAX, SPIN_SM_MAX = 0.02, 0.05, 0.4
THROTTLED_MIN: Final = 0.1
CLOCK_HELD_DOWN, CLOCK_CAPPED = 0.9, 0.7
"""Of the highest clock: below these a slowdown, or a power cap, is more than the usual."""
P2P_MIN: Final = 0.05


class Part(NamedTuple):
    """A share of an interval, and how sure it is (0 to 1)."""

    cause: StateCause
    ratio: float
    confidence: float


def split_active(of: GpuFeatures, *, is_company: bool) -> list[Part]:
    """The active share of an interval in parts that add up to it.

    `is_company`: without GPM, another GPU of the job has looked like this one for a while.
    """
    throttle, share = _throttle(of)
    rest = of.active * (1 - share)
    parts = [Part(throttle, of.active * share, 0.9)] if share > 0 else []
    if not of.has_gpm:
        cause, confidence = _by_power(of, is_company=is_company)
        return [*parts, Part(cause, rest, confidence)]
    exposed = exposed_ratio(of)
    moving = exposed * min(1.0, of.traffic / MOVING_LEVEL / max(exposed * of.active, 1e-9))
    if _p2p(of):
        moving = exposed
    waiting = exposed - moving if of.has_peers else 0.0
    kind = _kind(of)
    return [
        *parts,
        Part(_exchange(of, moving), rest * moving, 0.7),
        Part(PEER, rest * waiting, 0.7),
        Part(kind, rest * (1 - moving - waiting), 0.9),
    ]


def exposed_ratio(of: GpuFeatures) -> float:
    """Share of the active time in which a collective ran and nothing else did; 0 where it cannot be told."""
    sm, tensor, dram = (of.per_active(value) for value in (of.sm, of.tensor, of.dram))
    if of.sm is None or of.tensor is None:
        return 0.0
    has_traffic = of.traffic >= TRAFFIC_MIN or _p2p(of)
    if is_spin(of) and not has_traffic:
        return 1.0
    is_late_peer = of.active >= RESIDENT_MIN and (of.peer_sm or 0.0) >= sm + PEER_LEAD
    usual_tensor = of.tensor_busy_usual
    is_low = tensor < (TENSOR_COMPUTING_MAX if usual_tensor is None else usual_tensor)
    if of.sm_busy_usual is None:
        is_low = is_low and dram < MEMORY_KIND_MIN
    if not (is_low and (has_traffic or is_late_peer)):
        return 0.0
    computing = max(of.sm_busy_usual or SM_COMPUTING, SM_COLLECTIVE + 0.1)
    return min(1.0, max(0.0, (computing - sm) / (computing - SM_COLLECTIVE)))


def is_spin(of: GpuFeatures) -> bool:
    """A kernel is resident and does nothing: it polls."""
    if of.has_gpm:
        return (
            of.active > 0
            and of.per_active(of.tensor) < SPIN_TENSOR_MAX
            and of.per_active(of.dram) < SPIN_DRAM_MAX
            and of.per_active(of.sm) <= SPIN_SM_MAX
        )
    return (
        of.active >= UTILIZED_MIN
        and of.power is not None
        and of.power < POWER_SPIN
        and of.traffic < TRAFFIC_MIN
        and (of.memory_utilization or 0.0) < MEMORY_VETO
    )


UTILIZED_MIN: Final = 0.9
POWER_SPIN, POWER_EXCHANGE, POWER_COMPUTING = 0.25, 0.35, 0.5
MEMORY_VETO: Final = 0.2
"""Memory traffic that a polling kernel does not have."""


def _by_power(of: GpuFeatures, *, is_company: bool) -> tuple[StateCause, float]:
    if of.active < UTILIZED_MIN or of.power is None:
        return BUSY_OTHER, 0.4
    if of.power >= POWER_COMPUTING:
        return BUSY_OTHER, 0.7
    is_vetoed = (of.memory_utilization or 0.0) >= MEMORY_VETO
    if of.power < POWER_EXCHANGE and of.traffic >= TRAFFIC_MIN and not is_vetoed:
        return _exchange(of, 1.0), 0.5
    if is_spin(of) and is_company:
        return PEER, 0.4
    return BUSY_OTHER, 0.3


def _throttle(of: GpuFeatures) -> tuple[StateCause, float]:
    """The reason that held the clock far down, and the share of time it did so."""
    is_held_down = of.clock_lowest is None or of.clock_lowest < CLOCK_HELD_DOWN
    is_capped_far = of.clock_highest is not None and of.clock_highest < CLOCK_CAPPED
    candidates = (
        ("thermal", of.thermal, is_held_down),
        ("power_brake", of.power_brake, is_held_down),
        ("power_cap", of.power_cap, is_capped_far),
    )
    for cause, share, is_far_down in candidates:
        if share >= THROTTLED_MIN and is_far_down:
            return StateCause("throttled", cause), share
    return StateCause("throttled", "thermal"), 0.0


def _kind(of: GpuFeatures) -> StateCause:
    if of.per_active(of.tensor) >= TENSOR_KIND_MIN:
        return BUSY_TENSOR
    return BUSY_MEMORY if of.per_active(of.dram) >= MEMORY_KIND_MIN else BUSY_OTHER


def _exchange(of: GpuFeatures, moving: float) -> StateCause:
    """Which interconnect the bytes move over, and whether it is what holds them up."""
    share = moving * of.active
    fabric, nvlink = _level(of.fabric, share), _level(of.nvlink, share)
    if fabric >= TRAFFIC_MIN and (fabric >= SATURATED or of.is_fabric_degraded or of.is_fabric_congested):
        return StateCause("starved", "fabric")
    if nvlink >= TRAFFIC_MIN and (nvlink >= SATURATED or of.is_nvlink_degraded):
        return StateCause("starved", "nvlink")
    if max(fabric, nvlink) < TRAFFIC_MIN and _p2p(of):
        return StateCause("communicating", "pcie_p2p")
    return StateCause("communicating", "fabric" if fabric > nvlink else "nvlink")


def _level(ratio: float | None, share: float) -> float:
    """How full the link was while the exposed part of the exchange ran."""
    level = ratio or 0.0
    if share >= CONCENTRATED_MIN and level / share <= CONCENTRATED_MAX:
        return min(1.0, level / share)
    return level


def _p2p(of: GpuFeatures) -> bool:
    """Without NVLink, traffic in both directions of PCIe at once is between GPUs."""
    return not of.has_nvlink and min(of.pcie_receive or 0.0, of.pcie_transmit or 0.0) >= P2P_MIN
