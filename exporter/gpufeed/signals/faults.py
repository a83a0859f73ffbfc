# SPDX-License-Identifier: Apache-2.0
"""What overrides every reading of a GPU: it is unusable, or nobody can look at it. And since when."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gpufeed.model.frame import InputStatus, LaneStatus
from gpufeed.model.gpu import GpuSlow
from gpufeed.model.ids import GpuKey, GpuUuid, LaneId
from gpufeed.model.state import GpuRecord, StateCause, Subject, Verdict
from gpufeed.signals.samples import Samples

NO_DATA: Final = StateCause("unknown", "no_data")
UNSUPPORTED: Final = StateCause("unknown", "unsupported")

ECC_XIDS: Final = frozenset({48, 64, 140})
"""Memory errors that were neither corrected nor repaired: here the memory is what fails. One that was only not
contained (95) is over with a reset, like any other fatal XID."""
UNUSABLE_ACTIONS: Final = frozenset({1, 2, 6, 7})
"""Recovery actions (field 230) that stand before any further work: resets and reboots. The drains may wait."""
FABRIC_FAILED_STATES: Final = frozenset({1, 2})
"""nvmlGpuFabricState: not started, in progress. Until it is completed no kernel can be launched on such a board."""
FABRIC_COMPLETED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """All that can say that a GPU is not to be judged by its readings."""

    samples: Samples
    lanes: Mapping[LaneId, LaneStatus]
    verdicts: Mapping[tuple[Subject, str], Verdict] = field(default_factory=dict)
    latched_xids: Mapping[GpuUuid, int] = field(default_factory=dict)
    inputs: Mapping[tuple[str, str], InputStatus] = field(default_factory=dict)
    is_probe_up: bool = True
    now_ns: int
    heard_ns: int  # when the probe last said anything


@dataclass(frozen=True, slots=True)
class Override:
    """A state that holds whatever the readings say, from `since_ns` (monotonic) on."""

    cause: StateCause
    since_ns: int


def override(record: GpuRecord, signs: Signs) -> Override | None:
    """The gravest that holds for one GPU now, or None: then its readings decide."""
    return (
        _gone(record, signs)
        or _latched(record, signs)
        or _hung(record, signs)
        or _unheard(record, signs)
        or _pending(record, signs)
    )


def _gone(record: GpuRecord, signs: Signs) -> Override | None:
    if record.condition in {"lost", "missing"}:
        return Override(StateCause("fault", "lost"), signs.now_ns)
    return None


def _latched(record: GpuRecord, signs: Signs) -> Override | None:
    """A fatal XID holds until a reset is seen, also while the GPU looks well."""
    verdict = signs.verdicts.get((GpuKey(record.uuid), "xid"))
    if verdict is None or verdict.level != UNUSABLE_LEVEL:
        return None
    is_ecc = signs.latched_xids.get(record.uuid) in ECC_XIDS
    return Override(StateCause("fault", "ecc" if is_ecc else "xid"), verdict.since_ns)


UNUSABLE_LEVEL: Final = 2


def _hung(record: GpuRecord, signs: Signs) -> Override | None:
    if record.condition != "hung":
        return None
    lane = signs.lanes.get(record.lane)
    since_ns = lane.busy_since_ns if lane is not None else None
    return Override(StateCause("fault", "hung"), signs.now_ns if since_ns is None else since_ns)


def _unheard(record: GpuRecord, signs: Signs) -> Override | None:
    if not signs.is_probe_up:
        return Override(NO_DATA, signs.heard_ns)
    nvml = signs.inputs.get(("nvml", ""))
    is_released = record.condition == "released" or (nvml is not None and nvml.state == "released")
    if is_released or record.condition == "error":
        return Override(NO_DATA, signs.now_ns)
    return Override(UNSUPPORTED, signs.now_ns) if record.condition == "denied" else None


def _pending(record: GpuRecord, signs: Signs) -> Override | None:
    held = signs.samples.get(GpuSlow, {}).get(GpuKey(record.uuid))
    slow: GpuSlow | None = held.sample if held is not None else None
    action = slow.recovery_action if slow is not None else None
    if record.condition == "reset_required" or action in UNUSABLE_ACTIONS:
        return Override(StateCause("fault", "recovery_pending"), signs.now_ns)
    if slow is None or slow.fabric_state is None:
        return None
    is_failed = slow.fabric_state == FABRIC_COMPLETED and bool(slow.fabric_status)
    if is_failed or slow.fabric_state in FABRIC_FAILED_STATES:
        return Override(StateCause("fault", "fabric_state"), signs.now_ns)
    return None
