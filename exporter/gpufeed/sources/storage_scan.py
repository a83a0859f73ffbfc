# SPDX-License-Identifier: Apache-2.0
"""How storage is looked for: one lane a kind finds what there is, says what can be measured of it, and plans the rest.

Where a kind is not there, a look every slow period is all it costs. Counters are read on lanes of their own, through
files that are opened for each read: one that is held open would keep an administrator from unloading its module.
"""

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct

from gpufeed.errors import ParseError, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputState, InputStatus
from gpufeed.model.ids import GroupName, LaneId, StorageKey, StorageKind
from gpufeed.model.storage import StorageInfo
from gpufeed.sources.contract import Desk, Group, LanePlan, Outcome, Reader
from gpufeed.sources.gathering import Gathering, state_of

NOT_MEASURABLE: Final = "present, not measurable"
READ_ANY_FILE: Final = "AmbientCapabilities=CAP_DAC_READ_SEARCH for the probe"
_LOCKED_DOWN: Final = "none while the kernel is locked down (Secure Boot): it then keeps debugfs even from root"
_NAMED: Final = 8
"""Targets whose state is told one by one."""


class ScanSpec(Struct, frozen=True):
    """What a scan has to know for the lanes it plans."""

    fast_period_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A target that a scan came across. `reason`: what is missing of it, also where it is available."""

    info: StorageInfo
    state: InputState = "available"
    reason: str = ""
    fix: str = ""


def scan_plan(
    kind: StorageKind, config: ProbeConfig, open_scan: Callable[[ScanSpec, Desk], Reader]
) -> tuple[LanePlan, ...]:
    """The lane that looks for storage of one kind; none where the collector is off."""
    if not config.options(kind).enabled:
        return ()
    slow = GroupName(f"{kind}.slow")
    group = Group(name=slow, collector=kind, period_ns=config.period_ns(slow))
    spec = ScanSpec(config.period_ns(GroupName(f"{kind}.fast")))
    return (LanePlan(lane=LaneId(kind), groups=(group,), open=open_scan, spec=spec),)


def counter_plan(
    storage: StorageKey, scan: ScanSpec, spec: Struct, open_counters: Callable[[Any, Desk], Reader]
) -> LanePlan:
    """The lane that reads counters of a target, often."""
    group = Group(name=GroupName(f"{storage.kind}.fast"), collector=storage.kind, period_ns=scan.fast_period_ns)
    lane = LaneId(f"{storage.kind}:{storage.target}")
    return LanePlan(lane=lane, groups=(group,), open=open_counters, spec=spec)


def report(
    gathering: Gathering, kind: StorageKind, found: Sequence[Found], nothing: str, lanes: tuple[LanePlan, ...] = ()
) -> Outcome:
    """What a scan gave: descriptions, one status for the kind, lanes. `nothing`: what is said where there is none."""
    gathering.samples.extend(one.info for one in found)
    gathering.say(_status(kind, found, nothing))
    return gathering.outcome(lanes=lanes)


def refused(gathering: Gathering, kind: StorageKind, what: str, error: SourceError | ParseError) -> Outcome:
    """A scan that could not look."""
    gathering.say(InputStatus(kind, "", state_of(error), str(error)))
    gathering.fail(what, error)
    return gathering.outcome(lanes=())


def fix_of(error: SourceError) -> str:
    """What a person can do about a file of debugfs that is not for us."""
    if state_of(error) != "denied":
        return ""
    is_locked_down = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EPERM
    return _LOCKED_DOWN if is_locked_down else READ_ANY_FILE


def _status(kind: StorageKind, found: Sequence[Found], nothing: str) -> InputStatus:
    """Available where any target is; the first of the others otherwise. What is missing is told of each."""
    if not found:
        return InputStatus(kind, "", "absent", nothing)
    best = next((one for one in found if one.state == "available"), found[0])
    lacking = [one for one in found if one.reason]
    told = [f"{one.info.storage.target}: {one.reason}" for one in lacking[:_NAMED]]
    if len(lacking) > _NAMED:
        told.append(f"and {len(lacking) - _NAMED} more")
    fix = next((one.fix for one in lacking if one.fix), "")
    return InputStatus(kind, "", best.state, "; ".join(told), fix)
