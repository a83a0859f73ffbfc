# SPDX-License-Identifier: Apache-2.0
"""The driver while its library is left alone because it crashes whoever loads it: said, and nothing called."""

from msgspec import Struct

from gpufeed.model.frame import InputStatus
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.sources.contract import Desk, DeviceFailure, Group, LanePlan, Outcome

_FIX = "reinstall the driver, or see dmesg; it is tried again by itself, after 1, 5, then every 30 minutes"


class CrashSpec(Struct, frozen=True):
    """How many probes crashed in a row."""

    crashes: int


def quarantined(lane: LaneId, group: Group, crashes: int) -> LanePlan:
    """A lane in place of the driver's."""
    return LanePlan(lane=lane, groups=(group,), open=_open, spec=CrashSpec(crashes))


def _open(spec: CrashSpec, _: Desk) -> "_Quarantined":
    return _Quarantined(spec)


class _Quarantined:
    """Says why there is no driver."""

    def __init__(self, spec: CrashSpec) -> None:
        reason = f"the driver's library crashed the probe {spec.crashes} times in a row and is left alone"
        self._status = InputStatus("nvml", "", "broken", reason, _FIX)

    def read(self, _: GroupName) -> Outcome:
        """The status and a failure, every time."""
        return Outcome(
            inputs=(self._status,),
            failures=(DeviceFailure(device="driver", reason="broken", detail=self._status.reason),),
        )

    def close(self) -> None:
        """There is nothing."""
