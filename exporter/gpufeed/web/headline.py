# SPDX-License-Identifier: Apache-2.0
"""The node in one sentence: what a tired person has to know first, and what to do about it."""

from collections.abc import Sequence
from typing import Final

from gpufeed.web.shape import GpuView, Headline, HealthView
from gpufeed.web.words import percent

_NOTABLE: Final = 0.1
_BLIND: Final = 0.3
_MOSTLY: Final = 0.5

STARVED: Final = {
    "storage": "storage",
    "checkpoint": "checkpoints being written",
    "host_cpu": "the host's processors",
    "host_memory": "the host's memory",
    "pcie": "PCIe",
    "nvlink": "NVLink",
    "fabric": "the network between nodes",
    "peer": "a slower GPU of their job",
    "unknown": "something that could not be told",
}
THROTTLED: Final = {"thermal": "by heat", "power_brake": "by the power brake", "power_cap": "by their power limit"}
FAULTS: Final = {
    "lost": "fell off the bus",
    "xid": "reported a fatal error (XID)",
    "ecc": "has memory errors that cannot be corrected",
    "fabric_state": "cannot use NVLink: its fabric is not up",
    "recovery_pending": "asks for a reset or a reboot",
    "hung": "does not answer: a driver call does not return",
}
ACTIONS: Final = {
    "app": "look at the application",
    "gpu_reset": "reset the GPU",
    "node_reboot": "reboot the node",
    "drain": "drain the node",
    "replace": "have the hardware replaced",
    "tune": "tune the configuration",
    "investigate": "investigate",
}


def headline(gpus: Sequence[GpuView], health: Sequence[HealthView], *, is_probe_up: bool) -> Headline:
    """What matters most now: no readings, then faults, then waiting, then not knowing, then nothing to complain of."""
    if not is_probe_up:
        return Headline("bad", "Nothing is being read: the probe is down", "A new one is being started.")
    if not gpus:
        return Headline("blind", "No GPU is known", "Why, stands under Not measured.")
    faulty = [gpu for gpu in gpus if gpu.state == "fault"]
    if faulty:
        return _fault(faulty, gpus, health)
    return _waiting(shares(gpus), len(gpus))


def shares(gpus: Sequence[GpuView]) -> dict[tuple[str, str], float]:
    """Share of the recent time of these GPUs by state and cause, the largest first."""
    sums: dict[tuple[str, str], float] = {}
    for gpu in gpus:
        for one in gpu.recent:
            sums[one.state, one.cause] = sums.get((one.state, one.cause), 0.0) + one.seconds
    total = sum(sums.values())
    return {key: spent / total for key, spent in sorted(sums.items(), key=lambda item: -item[1]) if total > 0}


def of_state(parts: dict[tuple[str, str], float], state: str) -> float:
    """The share of all causes of a state."""
    return sum(share for (name, _), share in parts.items() if name == state)


def _fault(faulty: Sequence[GpuView], gpus: Sequence[GpuView], health: Sequence[HealthView]) -> Headline:
    first = faulty[0]
    names = {f"GPU {gpu.index}" for gpu in faulty}
    if len(faulty) == 1:
        text = f"GPU {first.index} {FAULTS.get(first.cause, 'is unusable')}"
    else:
        text = f"{len(faulty)} of {len(gpus)} GPUs are unusable"
    well = [gpu for gpu in gpus if gpu.state != "fault"]
    others = "The other GPU" if len(well) == 1 else f"The other {len(well)} GPUs"
    detail = f"{others}: {_told(shares(well))}." if well else ""
    action = next((one.action for one in health if one.subject in names and one.action), "")
    advice = f"Recommended: {ACTIONS.get(action, action)}." if action else ""
    return Headline("bad", text, detail, advice)


def _waiting(parts: dict[tuple[str, str], float], count: int) -> Headline:
    if not parts:
        return Headline("blind", "Nothing is decided yet", "The first seconds of every GPU are being read.")
    starved, throttled = of_state(parts, "starved"), of_state(parts, "throttled")
    lost = starved + throttled
    detail = f"{lost * count:.1f} of {count} GPUs' worth of time lost over the last 5 minutes; {_told(parts)}."
    if max(starved, throttled) >= _NOTABLE:
        state = "starved" if starved >= throttled else "throttled"
        cause = next(cause for name, cause in parts if name == state)
        share = of_state(parts, state)
        if state == "starved":
            return Headline("warn", f"GPUs wait for {STARVED.get(cause, cause)} {percent(share)} of the time", detail)
        return Headline(
            "warn", f"GPUs are slowed down {THROTTLED.get(cause, cause)} {percent(share)} of the time", detail
        )
    unknown = of_state(parts, "unknown")
    if unknown >= _BLIND:
        return Headline("blind", f"What the GPUs do cannot be told {percent(unknown)} of the time", f"{_told(parts)}.")
    if of_state(parts, "idle_free") >= _MOSTLY:
        return Headline("idle", "Nobody uses the GPUs", f"{_told(parts)}.")
    if of_state(parts, "idle_held") >= _MOSTLY:
        return Headline("idle", "A job holds the GPUs and does nothing", f"{_told(parts)}.")
    return Headline("good", "The GPU is fed" if count == 1 else f"All {count} GPUs are fed", f"{_told(parts)}.")


def _told(parts: dict[tuple[str, str], float]) -> str:
    states = list(dict.fromkeys(state for state, _ in parts))
    told = [(of_state(parts, state), state.replace("_", " ")) for state in states]
    return ", ".join(f"{state} {percent(share)}" for share, state in sorted(told, reverse=True) if share >= 0.005)  # noqa: PLR2004 what rounds to nothing
