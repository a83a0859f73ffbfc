# SPDX-License-Identifier: Apache-2.0
"""Active time, split: computing, held down, exchanging bytes, waiting inside a collective for bytes that do not come.

With GPM a kernel's level is known: computing shows many SMs at work, a collective few. An interval between the two
levels is a mixture of both. Without GPM power stands in for it, and much less can be said.
"""

from typing import Final, NamedTuple

from gpufeed.model.state import StateCause
from gpufeed.signals.exposed import TRAFFIC_MIN, exposed_ratio, is_p2p, is_polling, longest
from gpufeed.signals.features import RESIDENT_MIN, GpuFeatures
from gpufeed.signals.footprint import FULL

BUSY_TENSOR: Final = StateCause("busy", "tensor")
BUSY_MEMORY: Final = StateCause("busy", "memory")
BUSY_OTHER: Final = StateCause("busy", "other")
PEER: Final = StateCause("starved", "peer")
UNTOLD: Final = StateCause("starved", "unknown")
NVLINK: Final = StateCause("starved", "nvlink")
FABRIC: Final = StateCause("starved", "fabric")

TENSOR_KIND_MIN, MEMORY_KIND_MIN = 0.15, 0.4
"""Of the active time: from here on a kernel counts as tensor work, or as moving device memory."""
SATURATED: Final = FULL
ENTERED_MIN_S: Final = 1.0
ENTERS_LATE: Final = 0.85
"""Of the time inside exchanges: a peer that has less enters them late."""
BELOW_FULL: Final = 0.7
"""Of a link's rate: where a rank is late, its lateness does not make the link look full."""
MOVING_MARGIN: Final = 1.25
"""What of an exchange takes longer than this much of what its bytes need at their usual rate is waiting for a rank."""
PEAK_FULL: Final = 0.65
"""Without GPM exposed time is known too roughly for a quotient of it: a link is full that lately was so for a whole
interval. No exchange fills one to its edges: a little less than what is full."""
STILL_MAX: Final = 0.1
"""Of a link's rate: what flows while a rank is waited for are leftovers."""
MOVING_LEVEL: Final = 0.2
"""A collective that moves bytes at all fills at least this much of its link."""
CONCENTRATED_MIN, CONCENTRATED_MAX = 0.1, 1.2
"""Between these, what does not run behind the computing all falls into the exposed part."""
THROTTLED_MIN: Final = 0.1
CAPPED_MOSTLY: Final = 0.5
"""A cap that is felt for most of the time keeps the clock down for all of it."""
CLOCK_HELD_DOWN, CLOCK_CAPPED = 0.9, 0.7
"""Of the highest clock: below these a slowdown, or a power cap, is more than the usual."""


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
        return [*parts, *_split_by_power(of, rest, is_company=is_company)]
    exposed = exposed_ratio(of)
    moving = moving_ratio(of, exposed)
    waiting = exposed - moving if of.has_peers else 0.0
    kind = _kind(of)
    return [
        *parts,
        Part(_exchange(of, moving), rest * moving, 0.7),
        _late(of, rest * waiting),
        Part(kind, rest * (1 - moving - waiting), 0.9),
    ]


def _late(of: GpuFeatures, ratio: float) -> Part:
    """Waiting inside a collective: for a rank where hardly anything moves or one comes late, else for either."""
    is_still = of.traffic < max(TRAFFIC_MIN, STILL_MAX * ratio)
    is_rank = is_still or _of_the_last_to_enter(of) < 1
    return Part(PEER, ratio, 0.7) if is_rank else Part(UNTOLD, ratio, 0.0)


def moving_ratio(of: GpuFeatures, exposed: float) -> float:
    """Of the active time, the part of `exposed` in which bytes moved: as long as they take at this job's own rate."""
    if is_p2p(of) or (of.has_link_trouble and of.traffic >= TRAFFIC_MIN):
        return exposed
    if of.traffic < TRAFFIC_MIN / 2:
        return 0.0
    job = of.footprint
    nvlink = (of.nvlink or 0.0) / max(job.moving_nvlink, MOVING_LEVEL)
    fabric = (of.fabric or 0.0) / max(job.moving_fabric, MOVING_LEVEL)
    by_bytes = MOVING_MARGIN * (nvlink + fabric) / max(of.active, 1e-9)
    share = _of_the_last_to_enter(of)
    if share == 1:
        return min(exposed, by_bytes)
    needed = ((of.nvlink or 0.0) + (of.fabric or 0.0)) / BELOW_FULL / max(of.active, 1e-9)
    return min(exposed, by_bytes, max(exposed * share, needed))


def _of_the_last_to_enter(of: GpuFeatures) -> float:
    """All ranks leave an exchange together, and the one that enters last waits for nobody: its time is the bytes'."""
    own_s = of.footprint.entered_s
    if of.peer_entered_s is None or own_s < ENTERED_MIN_S or of.peer_entered_s >= ENTERS_LATE * own_s:
        return 1.0
    return of.peer_entered_s / own_s


def is_spin(of: GpuFeatures) -> bool:
    """A kernel is resident and does nothing: it polls."""
    if of.has_gpm:
        return is_polling(of)
    return (
        of.active >= UTILIZED_MIN
        and of.power is not None
        and of.power < POWER_SPIN
        and of.traffic < TRAFFIC_MIN
        and (of.memory_utilization or 0.0) < MEMORY_VETO
    )


UTILIZED_MIN: Final = 0.9
POWER_SPIN, POWER_EXCHANGE, POWER_COMPUTING = 0.25, 0.33, 0.5
POWER_FULL, POWER_TYPICAL, POWER_POLLING = 0.92, 0.8, 0.13
"""Between idle and limit: of large matrix products, of computing as a rule, of a kernel that only polls."""
WAITING_MIN: Final = 0.25
MEMORY_FULL, MEMORY_COLLECTIVE = 0.6, 0.45
"""Share of time in which memory is read or written: from the lower on too much for an exchange alone."""
MEMORY_VETO: Final = 0.2
"""Memory traffic that a polling kernel does not have."""


def _split_by_power(of: GpuFeatures, rest: float, *, is_company: bool) -> list[Part]:
    """Without GPM: power, memory and bytes say roughly what SMs would say."""
    if of.active < UTILIZED_MIN or of.power is None:
        return [Part(BUSY_OTHER, rest, 0.4)]
    if is_spin(of) and is_company:
        return [Part(PEER, rest, 0.4)]
    if of.traffic >= TRAFFIC_MIN:
        apart = _below(of.memory_utilization or 0.0, MEMORY_FULL, MEMORY_COLLECTIVE)
        moving = min(_below(of.power, POWER_FULL, POWER_EXCHANGE) * apart, longest(of), 1 - of.power_cap)
        return [Part(_exchange(of, moving), rest * moving, 0.5), Part(BUSY_OTHER, rest * (1 - moving), 0.5)]
    waiting = _waiting_by_power(of)
    sure = 0.7 if of.power >= POWER_COMPUTING else 0.3
    return [Part(PEER, rest * waiting, 0.4), Part(BUSY_OTHER, rest * (1 - waiting), sure)]


def _waiting_by_power(of: GpuFeatures) -> float:
    """Share in which a GPU that exchanges bytes now and then had a kernel that neither computes nor moves any."""
    job, memory = of.footprint, of.memory_utilization
    if (
        not (of.has_peers and job.has_exchanged)
        or of.active < RESIDENT_MIN
        or memory is None
        or job.memory < MEMORY_VETO
        or of.power is None
    ):
        return 0.0
    by_memory = _below(memory, job.memory, 0.0)
    by_power = _below(of.power, max(job.power, POWER_TYPICAL), POWER_POLLING)
    found = min(by_memory, by_power)
    return found if found >= WAITING_MIN else 0.0


def _below(value: float, top: float, bottom: float) -> float:
    """How far below `top` on the way to `bottom`."""
    return min(1.0, max(0.0, (top - value) / (top - bottom)))


def _throttle(of: GpuFeatures) -> tuple[StateCause, float]:
    """The reason that held the clock far down, and the share of time it did so."""
    is_held_down = of.clock_lowest is None or of.clock_lowest < CLOCK_HELD_DOWN
    is_capped_far = of.clock_mean is not None and of.clock_mean < CLOCK_CAPPED
    candidates = (
        ("thermal", of.thermal, is_held_down),
        ("power_brake", of.power_brake, is_held_down),
        ("power_cap", of.power_cap, is_capped_far),
    )
    for cause, share, is_far_down in candidates:
        if share >= THROTTLED_MIN and is_far_down:
            is_capped = cause == "power_cap" and share >= CAPPED_MOSTLY
            return StateCause("throttled", cause), 1.0 if is_capped else share
    return StateCause("throttled", "thermal"), 0.0


def _kind(of: GpuFeatures) -> StateCause:
    if of.per_active(of.tensor) >= TENSOR_KIND_MIN:
        return BUSY_TENSOR
    return BUSY_MEMORY if of.per_active(of.dram) >= MEMORY_KIND_MIN else BUSY_OTHER


def is_exchange(cause: StateCause) -> bool:
    """Whether bytes go to another GPU or node in this state."""
    return cause.state == "communicating" or cause in {NVLINK, FABRIC}


def copied_between_gpus(of: GpuFeatures) -> StateCause | None:
    """What a GPU without a kernel does where copy engines move bytes over NVLink meanwhile; None: they do not."""
    waiting = 1.0 - of.active
    if not of.has_peers or of.nvlink is None or waiting < CONCENTRATED_MIN:
        return None
    level = (of.nvlink - of.footprint.hidden_nvlink * of.active) / waiting
    if not MOVING_LEVEL <= level <= CONCENTRATED_MAX:
        return None
    return NVLINK if level >= SATURATED or of.is_nvlink_degraded else StateCause("communicating", "nvlink")


def _exchange(of: GpuFeatures, moving: float) -> StateCause:
    """Which interconnect the bytes move over, and whether it is what holds them up."""
    share, job = moving * of.active, of.footprint
    fabric, nvlink = _level(of.fabric, share, job.hidden_fabric), _level(of.nvlink, share, job.hidden_nvlink)
    is_fabric_slow = of.is_fabric_degraded or of.is_fabric_congested or of.is_fabric_lossy
    is_fabric_full = _is_full(job.exchange_fabric, fabric) if of.has_gpm else job.peak_fabric >= PEAK_FULL
    is_nvlink_full = _is_full(job.exchange_nvlink, nvlink) if of.has_gpm else job.peak_nvlink >= PEAK_FULL
    if fabric >= TRAFFIC_MIN and (is_fabric_slow or is_fabric_full):
        return FABRIC
    if nvlink >= TRAFFIC_MIN and (of.is_nvlink_degraded or is_nvlink_full):
        return NVLINK
    if max(fabric, nvlink) < TRAFFIC_MIN and is_p2p(of):
        return StateCause("communicating", "pcie_p2p")
    return StateCause("communicating", "fabric" if fabric > nvlink else "nvlink")


def _is_full(steady: float | None, level: float) -> bool:
    """By the exchanges of the last seconds where there were any, else by this interval."""
    return (steady if steady is not None else level) >= SATURATED


def _level(ratio: float | None, share: float, hidden: float) -> float:
    """How full the link was while the exposed part of the exchange ran; `hidden`: while the rest was computed."""
    level = ratio or 0.0
    if share < CONCENTRATED_MIN:
        return level
    concentrated = (level - hidden * (1 - share)) / share
    return min(1.0, max(0.0, concentrated)) if concentrated <= CONCENTRATED_MAX else level
