# SPDX-License-Identifier: Apache-2.0
"""What befalls a GPU or the driver while its job runs: the rank dies, its peers wait for it, then the job is ended."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gpufeed.simulate.activity import Activity, Incident
from gpufeed.simulate.faults import Fault
from gpufeed.simulate.pipeline.calendar import Calendar, Process
from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.pipeline.track import Level, Palette

ABORT_S: Final = 60.0
"""How long peers spin before the collective library gives up and ends the job."""

NO_DRIVER: Final = Activity(truth=("unknown", "no_data"), occupant="none", power=0.0, temperature_c=30.0)
FREE: Final = Activity(truth=("idle_free", ""), occupant="none", power=0.0, temperature_c=30.0)
_LOST: Final = Activity(truth=("fault", "lost"), occupant="none", power=0.0, temperature_c=30.0)
_DIED: Final = Activity(truth=("fault", "xid"), occupant="none", power=0.05, temperature_c=35.0)


class Incidents:
    """Of one scenario; each begins once, and what it ends does not begin again."""

    def __init__(
        self, incidents: Sequence[Incident], gpus: Sequence[JudgedGpu], calendar: Calendar, palette: Palette
    ) -> None:
        self._gpus = gpus
        self._calendar = calendar
        self._palette = palette
        self._standing: list[Incident] = []
        # a node that has not as many GPUs suffers it at its last
        last = len(gpus) - 1
        for incident in incidents:
            placed = incident if incident.gpu is None else replace(incident, gpu=min(incident.gpu, last))
            calendar.start(self._happen(placed), placed.from_ns)

    @property
    def has_driver(self) -> bool:
        """Whether the driver is loaded."""
        return all(incident.kind != "driver_absent" for incident in self._standing)

    def faults(self) -> tuple[Fault, ...]:
        """What the driver does wrong now."""
        return tuple(Fault(effect="hang", gpu=incident.gpu) for incident in self._standing if incident.kind == "hang")

    def _happen(self, incident: Incident) -> Process:
        self._standing.append(incident)
        befallen = [gpu for gpu in self._gpus if incident.gpu in (None, gpu.board.index)]
        for gpu in befallen:
            self._begin(incident, gpu)
        if incident.kind in ("lost", "xid"):
            yield int(ABORT_S * 1e9)
            for job in {gpu.job for gpu in befallen}:
                self._abort(job)
        elif incident.until_ns is not None:
            yield incident.until_ns - incident.from_ns
            self._standing.remove(incident)
            for gpu in befallen:
                gpu.is_port_down = False

    def _begin(self, incident: Incident, gpu: JudgedGpu) -> None:
        match incident.kind:
            case "lost":
                gpu.is_lost = True
                gpu.site.end(self._level(_LOST))
            case "xid":
                gpu.xids.append(incident.xid)
                gpu.recovery_action = incident.recovery_action
                gpu.site.end(self._level(_DIED))
            case "hang":
                activity = gpu.site.track.level.activity
                gpu.site.end(self._palette.make(replace(activity, truth=("fault", "hung"))))
            case "port_down":
                gpu.is_port_down = True
                gpu.port_downs += 1
            case "driver_absent":
                pass  # the node lets its jobs begin later

    def _abort(self, job: int) -> None:
        for gpu in self._gpus:
            if gpu.job == job and gpu.site.track.level.truth[0] != "fault":
                gpu.site.end(self._level(FREE))

    def _level(self, activity: Activity) -> Level:
        return self._palette.known(activity.truth) or self._palette.make(activity, key=activity.truth)
