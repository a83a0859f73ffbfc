# SPDX-License-Identifier: Apache-2.0
"""What the schedulers of this node say of its GPUs: to whom they gave them, and what those are called."""

from gpufeed.model.desired import ProbeConfig
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.sources.contract import Desk, Group, LanePlan, NoSpec, Outcome
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Gathering, Statuses
from gpufeed.sources.jobs import SLOW
from gpufeed.sources.kubelet import Kubelet
from gpufeed.sources.slurm import Slurm


class SchedulersSource:
    """Plans the lane `schedulers`: directories of others, the variables of processes; either may take its time."""

    name = "schedulers"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One lane, or none where jobs are not looked at."""
        if not config.options("jobs").enabled:
            return ()
        group = Group(name=SLOW, collector="jobs", period_ns=config.period_ns(SLOW))
        return (LanePlan(lane=LaneId("schedulers"), groups=(group,), open=open_schedulers),)


def open_schedulers(_spec: NoSpec, desk: Desk) -> "SchedulersReader":
    """A reader of the configured procfs, sysfs and rootfs."""
    return SchedulersReader(desk)


class SchedulersReader:
    """Asks each in turn. None of them need be there."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._statuses = Statuses()
        self._slurm = Slurm(Tree(desk.config.procfs, desk), Tree(desk.config.sysfs, desk))
        self._kubelet = Kubelet(Tree(desk.config.rootfs, desk))

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """An Allocations per scheduler that says what it gave away, a PodName per pod with GPUs."""
        gathering = Gathering(self._statuses)
        self._slurm.read(gathering)
        self._kubelet.read(self._desk.board.gpu_pods, gathering)
        return gathering.outcome()

    def close(self) -> None:
        """Nothing is held."""
