# SPDX-License-Identifier: Apache-2.0
"""Checks of a GPU. Each takes the GPU's record and the node around it."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.health.finding import OK, Finding
from gpufeed.health.gpu_wear import fabric, memory_wear, power_limit
from gpufeed.health.latches import GONE, Latches, answers, is_of_this_boot
from gpufeed.health.xid_catalogue import classify
from gpufeed.model.gpu import GpmInterval, GpuFast, GpuSlow, NvlinkTotals
from gpufeed.model.ids import GpuKey
from gpufeed.model.state import GpuRecord, NodeState

GpuCheck = Callable[[GpuRecord, NodeState, Latches], Finding | None]

HW_THERMAL: Final = 0x40
"""nvmlClocksEventReasonHwThermalSlowdown: the core clock is cut by half or more."""
HW_POWER_BRAKE: Final = 0x80
"""nvmlClocksEventReasonHwPowerBrakeSlowdown: a signal from the power supply or the rack."""

RECOVERY_ACTIONS: Final[Mapping[int, Finding]] = MappingProxyType(
    {
        1: Finding(2, "a GPU reset", "gpu_reset"),
        2: Finding(2, "a reboot of the node", "node_reboot"),
        3: Finding(1, "a drain of peer-to-peer work", "drain"),
        4: Finding(1, "a drain and a reset", "drain"),
        5: Finding(1, "a recovery of IMEX", "investigate"),
        6: Finding(2, "a bus reset", "gpu_reset"),
        7: Finding(2, "a reboot of the system", "node_reboot"),
    }
)
"""Values of NVML field 230 (nvmlDeviceGpuRecoveryAction_t): what the driver asks for. Work that runs may end first
where it asks for a drain.
"""

BUSY_RATIO: Final = 0.5
"""Links run slowly to save power while nothing is asked of them; above this they should be at full speed."""


def lost(gpu: GpuRecord, state: NodeState, latches: Latches) -> Finding | None:
    """The GPU fell off its bus or is no longer there."""
    latch = latches.lost.get(gpu.uuid)
    if latch is not None and (gpu.condition in GONE or is_of_this_boot(latches, state)):
        detail = f": {latch.detail}" if latch.detail else ""
        return Finding(2, f"GPU {gpu.index} is lost{detail}", "drain", latch.since_ns)
    return OK if answers(state, gpu) else None


def hung(gpu: GpuRecord, state: NodeState, _: Latches) -> Finding | None:
    """A driver call on this GPU does not return."""
    if gpu.condition == "hung":
        lane = state.lanes.get(gpu.lane)
        call = lane.call if lane and lane.call else "a driver call"
        return Finding(2, f"{call} on GPU {gpu.index} does not return", "node_reboot")
    return OK if answers(state, gpu) else None


def driver_error(gpu: GpuRecord, state: NodeState, _: Latches) -> Finding | None:
    """The driver answers for this GPU, with errors."""
    if gpu.condition == "error":
        return Finding(1, f"the driver reports an error for GPU {gpu.index}: {gpu.detail}", "investigate")
    return OK if answers(state, gpu) else None


def recovery_action(gpu: GpuRecord, state: NodeState, _: Latches) -> Finding | None:
    """The driver says what has to be done before this GPU works again."""
    if gpu.condition == "reset_required":
        return Finding(2, f"GPU {gpu.index} must be reset", "gpu_reset")
    held = state.latest(GpuSlow).get(GpuKey(gpu.uuid))
    action = held.sample.recovery_action if held else None
    if action is None:
        return None
    if action == 0:
        return OK
    asked = RECOVERY_ACTIONS.get(action, Finding(2, f"recovery action {action}", "investigate"))
    return Finding(asked.level, f"the driver asks for {asked.reason}: GPU {gpu.index}", asked.action)


def xid(gpu: GpuRecord, state: NodeState, latches: Latches) -> Finding | None:
    """An XID has left this GPU, or part of it, in need of a reset."""
    latch = latches.xids.get(gpu.uuid)
    if latch is not None:
        if not is_of_this_boot(latches, state):
            return None
        of = classify(latch.xid)
        return Finding(latch.level, f"XID {latch.xid} on GPU {gpu.index}: {of.meaning}", of.action, latch.since_ns)
    events = state.inputs.get(("xid", gpu.uuid))
    return OK if events is not None and events.state == "available" and answers(state, gpu) else None


def hw_thermal(gpu: GpuRecord, state: NodeState, _: Latches) -> Finding | None:
    """The hardware cuts the clock because of heat, right now."""
    return _clock_event(gpu, state, HW_THERMAL, "is slowed down by its hardware: too hot")


def power_brake(gpu: GpuRecord, state: NodeState, _: Latches) -> Finding | None:
    """The power supply or the rack holds the clock down, right now."""
    return _clock_event(gpu, state, HW_POWER_BRAKE, "is slowed down by a power brake signal")


def pcie_width(gpu: GpuRecord, state: NodeState, _: Latches) -> Finding | None:
    """The PCIe link has fewer lanes than the GPU. Where every GPU of the node has, it is how the board is wired."""
    width, width_max = _pcie_widths(gpu, state)
    if width is None or width_max is None:
        return None
    siblings = [_pcie_widths(other, state)[0] for other in state.gpus.values() if other.uuid != gpu.uuid]
    if width >= width_max or (siblings and all(sibling == width for sibling in siblings)):
        return OK
    return Finding(1, f"PCIe link of GPU {gpu.index} has {width} of {width_max} lanes", "investigate")


def pcie_generation(gpu: GpuRecord, state: NodeState, _: Latches) -> Finding | None:
    """The PCIe link is slower than the GPU, while the GPU works."""
    held = state.latest(GpuSlow).get(GpuKey(gpu.uuid))
    generation = held.sample.pcie_generation if held else None
    generation_max = gpu.identity.pcie_generation_max if gpu.identity else None
    if generation is None or generation_max is None or not _is_busy(gpu, state):
        return None
    if generation >= generation_max:
        return OK
    return Finding(
        1, f"PCIe link of GPU {gpu.index} runs at generation {generation} of {generation_max}", "investigate"
    )


def nvlink(gpu: GpuRecord, state: NodeState, _: Latches) -> Finding | None:
    """Links of this GPU are down. A board without a bridge has all of them down, as have its neighbours: no fault."""
    links, links_up = _nvlinks(gpu, state)
    if not links or links_up is None:
        return None
    if links_up >= links:
        return OK
    if links_up == 0 and not any(_nvlinks(other, state)[1] for other in state.gpus.values()):
        return None
    reason = f"{links_up} of {links} NVLink links of GPU {gpu.index} are up"
    return Finding(2 if links_up == 0 else 1, reason, "gpu_reset")


GPU_CHECKS: Final[Mapping[str, GpuCheck]] = MappingProxyType(
    {
        "lost": lost,
        "hung": hung,
        "driver_error": driver_error,
        "recovery_action": recovery_action,
        "xid": xid,
        "hw_thermal": hw_thermal,
        "power_brake": power_brake,
        "pcie_width": pcie_width,
        "pcie_generation": pcie_generation,
        "nvlink": nvlink,
        "fabric": fabric,
        "memory_wear": memory_wear,
        "power_limit": power_limit,
    }
)


def _clock_event(gpu: GpuRecord, state: NodeState, bit: int, text: str) -> Finding | None:
    held = state.latest(GpuFast).get(GpuKey(gpu.uuid))
    events = held.sample.clock_events if held else None
    if events is None:
        return None
    return Finding(1, f"GPU {gpu.index} {text}", "investigate") if events & bit else OK


def _pcie_widths(gpu: GpuRecord, state: NodeState) -> tuple[int | None, int | None]:
    held = state.latest(GpuSlow).get(GpuKey(gpu.uuid))
    return held.sample.pcie_width if held else None, gpu.identity.pcie_width_max if gpu.identity else None


def _nvlinks(gpu: GpuRecord, state: NodeState) -> tuple[int | None, int | None]:
    held = state.latest(NvlinkTotals).get(GpuKey(gpu.uuid))
    return (held.sample.links, held.sample.links_up) if held else (None, None)


def _is_busy(gpu: GpuRecord, state: NodeState) -> bool:
    fast = state.latest(GpuFast).get(GpuKey(gpu.uuid))
    gpm = state.latest(GpmInterval).get(GpuKey(gpu.uuid))
    ratios = (fast.sample.utilization_ratio if fast else None, gpm.sample.sm_ratio if gpm else None)
    return any(ratio is not None and ratio > BUSY_RATIO for ratio in ratios)
