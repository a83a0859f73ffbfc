# SPDX-License-Identifier: Apache-2.0
"""Pressure stall totals of the node: /proc/pressure."""

from typing import Final, get_args

from gpufeed.errors import Absent, ParseError, SourceError, Unsupported
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputStatus
from gpufeed.model.host import Pressure, PressureResource
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.parse.pressure import parse_pressure
from gpufeed.sources.contract import Desk, Group, LanePlan, NoSpec, Outcome
from gpufeed.sources.files import HeldFile
from gpufeed.sources.gathering import Gathering, Statuses, state_of

RESOURCES: Final[tuple[PressureResource, ...]] = get_args(PressureResource)
OPTIONAL: Final = frozenset({"irq"})
"""Since 6.1, and only where the kernel accounts interrupt time: its absence is nobody's loss."""

FAST: Final = GroupName("pressure.fast")
_SWITCHED_OFF: Final = "the kernel has pressure accounting switched off"
_BOOT_WITH_PSI: Final = "boot with psi=1 on the kernel command line"
_TOO_OLD: Final = "this kernel has no pressure accounting"
_NEED_PSI: Final = "use kernel 4.20 or newer, built with CONFIG_PSI"


class PressureSource:
    """Plans the lane `pressure`."""

    name = "pressure"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One lane, or none where the collector is off."""
        if not config.options("pressure").enabled:
            return ()
        group = Group(name=FAST, collector="pressure", period_ns=config.period_ns(FAST))
        return (LanePlan(lane=LaneId("pressure"), groups=(group,), open=open_pressure),)


def open_pressure(_spec: NoSpec, desk: Desk) -> "PressureReader":
    """A reader of the files below the configured procfs."""
    return PressureReader(desk)


class PressureReader:
    """Reads the totals of each resource; one that is switched off leaves the others alone."""

    def __init__(self, desk: Desk) -> None:
        self._files = {name: HeldFile(desk.config.procfs, f"pressure/{name}", desk) for name in RESOURCES}
        self._statuses = Statuses()

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """One sample per resource. Never raises: what is missing is said per resource."""
        gathering = Gathering(self._statuses)
        for resource, file in self._files.items():
            try:
                gathering.samples.append(_sample(resource, file.read()))
                gathering.say(InputStatus("pressure", resource, "available"))
            except (SourceError, ParseError) as error:
                gathering.fail(resource, error)
                if resource not in OPTIONAL:
                    gathering.say(_missing(resource, error))
        return gathering.outcome()

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()


def _sample(resource: PressureResource, data: bytes) -> Pressure:
    totals = parse_pressure(data, f"pressure/{resource}")
    # "full" of the processors says nothing about the whole node, kernels print zero or what an older one left there
    stalled_s = None if resource == "cpu" else totals.full_s
    return Pressure(resource=resource, waiting_s=totals.some_s, stalled_s=stalled_s)


def _missing(resource: PressureResource, error: SourceError | ParseError) -> InputStatus:
    match error:
        case Unsupported():
            return InputStatus("pressure", resource, "unsupported", _SWITCHED_OFF, _BOOT_WITH_PSI)
        case Absent():
            return InputStatus("pressure", resource, "absent", _TOO_OLD, _NEED_PSI)
        case _:
            return InputStatus("pressure", resource, state_of(error), str(error))
