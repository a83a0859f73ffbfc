# SPDX-License-Identifier: Apache-2.0
"""The processes that hold GPUs, and those around them: what their threads do, and how many cores they may use.

Which processes those are, the GPU lanes say on the board. Nothing here needs a privilege, only the host's own /proc.
"""

import os
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from gpufeed.errors import ParseError, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputStatus
from gpufeed.model.host import JobTasks
from gpufeed.model.ids import GpuUuid, GroupName, LaneId
from gpufeed.parse.cgroup import CgroupPath, owning_cgroup, parse_cgroup
from gpufeed.parse.task_stat import parse_task_stat
from gpufeed.parse.task_status import parse_cpus_allowed
from gpufeed.sources.cgroups import processes_of
from gpufeed.sources.contract import Desk, Group, LanePlan, NoSpec, Outcome
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Gathering, Statuses
from gpufeed.sources.threads import MAX_THREADS, ThreadWatch

FAST: Final = GroupName("jobs.fast")
SLOW: Final = GroupName("jobs.slow")

MAX_CGROUPS: Final = 64
MAX_SCANNED: Final = 8192
"""Processes of the node that are looked at to find children, where the cgroup does not tell."""

FEWEST_THREADS: Final = 32
_UNSEEN: Final = "no process that holds a GPU is visible in /proc: another PID namespace, or hidepid"
_SEE_THEM: Final = "share the host's PID namespace (hostPID: true); /proc without hidepid; no ProtectProc= in the unit"


@dataclass(slots=True)
class _Job:
    """One cgroup with processes that hold GPUs."""

    home: CgroupPath
    watch: ThreadWatch
    cpus_allowed: int | None = None
    children: tuple[int, ...] = ()


class JobsSource:
    """Plans the lane `jobs`."""

    name = "jobs"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One lane, or none where the collector is off."""
        if not config.options("jobs").enabled:
            return ()
        groups = tuple(Group(name=name, collector="jobs", period_ns=config.period_ns(name)) for name in (SLOW, FAST))
        return (LanePlan(lane=LaneId("jobs"), groups=groups, open=open_jobs),)


def open_jobs(_spec: NoSpec, desk: Desk) -> "JobsReader":
    """A reader of the configured procfs and cgroup tree."""
    return JobsReader(desk)


class JobsReader:
    """Reads thread states fast; looks slowly for processes that have moved, and for new children."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._proc = Tree(desk.config.procfs, desk)
        self._sys = Tree(desk.config.sysfs, desk)
        self._statuses = Statuses()
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._homes: dict[int, CgroupPath] = {}
        self._jobs: dict[str, _Job] = {}

    def read(self, group: GroupName) -> Outcome:
        """`jobs.fast`: a JobTasks per cgroup, ordered by cgroup. `jobs.slow`: no sample, the status of the input."""
        holders = self._holders()
        if group == SLOW:
            self._homes = {}
        members = self._by_cgroup(holders)
        self._follow(members, is_anew=group == SLOW)
        if group == SLOW:
            return Outcome(inputs=self._statuses.news(_status(holders, members)))
        gathering = Gathering(self._statuses)
        threads = max(FEWEST_THREADS, MAX_THREADS // max(1, len(members)))
        for path, pids in sorted(members.items()):
            sample = self._sample(self._jobs[path], pids, holders, threads)
            if sample is not None:
                gathering.samples.append(sample)
        return gathering.outcome()

    def close(self) -> None:
        """Nothing is held."""

    def _holders(self) -> dict[int, set[GpuUuid]]:
        """GPUs by the process that holds them. The board is copied first: GPU lanes write to it meanwhile."""
        holders: dict[int, set[GpuUuid]] = defaultdict(set)
        for uuid, pids in tuple(self._desk.board.gpu_pids.values()):
            for pid in pids:
                holders[pid].add(uuid)
        return holders

    def _by_cgroup(self, holders: dict[int, set[GpuUuid]]) -> dict[str, tuple[int, ...]]:
        """Processes that hold GPUs by their cgroup. Those that cannot be seen are in none."""
        members: dict[str, tuple[int, ...]] = {}
        self._homes = {pid: home for pid, home in self._homes.items() if pid in holders}
        for pid in sorted(holders):
            home = self._homes.get(pid) or self._home(pid)
            if home is None or (home.path not in members and len(members) == MAX_CGROUPS):
                continue
            self._homes[pid] = home
            members[home.path] = (*members.get(home.path, ()), pid)
        return members

    def _follow(self, members: dict[str, tuple[int, ...]], *, is_anew: bool) -> None:
        """Keep a job per cgroup. What changes rarely is found out for new ones, and for all of them if `is_anew`."""
        known = self._jobs
        self._jobs = {path: known.get(path) or self._new_job(pids[0]) for path, pids in members.items()}
        parents: dict[int, int] | None = None
        for path, job in self._jobs.items():
            if is_anew or path not in known:
                job.cpus_allowed = self._cpus_allowed(members[path][0])
                if processes_of(self._sys, job.home) is None:
                    parents = self._parents() if parents is None else parents
                    job.children = _descendants(members[path], parents)

    def _new_job(self, pid: int) -> _Job:
        return _Job(self._homes[pid], ThreadWatch(self._proc, self._desk, self._ticks_per_s))

    def _home(self, pid: int) -> CgroupPath | None:
        try:
            return owning_cgroup(parse_cgroup(self._proc.attribute(f"{pid}/cgroup")))
        except (SourceError, ParseError):
            return None  # it ended, or is not for us to see

    def _sample(
        self, job: _Job, pids: tuple[int, ...], holders: dict[int, set[GpuUuid]], threads: int
    ) -> JobTasks | None:
        others = processes_of(self._sys, job.home)
        if others is None:
            others = job.children
        tally = job.watch.read((*pids, *sorted(set(others).difference(pids))), threads)
        if not tally.processes:
            return None
        return JobTasks(
            cgroup=job.home.path,
            gpus=tuple(sorted({uuid for pid in pids for uuid in holders[pid]})),
            processes=tally.processes,
            threads=round(tally.threads),
            running=round(tally.running),
            blocked=round(tally.blocked),
            cpu_s=job.watch.cpu_s,
            busiest_thread_cpu_s=tally.busiest_cpu_s,
            busiest_thread_wall_s=tally.busiest_wall_s,
            cpus_allowed=job.cpus_allowed,
        )

    def _cpus_allowed(self, pid: int) -> int | None:
        try:
            return parse_cpus_allowed(self._proc.attribute(f"{pid}/status"))
        except (SourceError, ParseError):
            return None

    def _parents(self) -> dict[int, int]:
        """The parent of every process of the node."""
        parents: dict[int, int] = {}
        for name in [name for name in self._list_processes() if name.isascii() and name.isdecimal()][:MAX_SCANNED]:
            try:
                parents[int(name)] = parse_task_stat(self._proc.attribute(f"{name}/stat"), self._ticks_per_s).parent
            except (SourceError, ParseError):
                continue
        return parents

    def _list_processes(self) -> tuple[str, ...]:
        try:
            return self._proc.names(".")
        except SourceError:
            return ()


def _descendants(pids: tuple[int, ...], parents: dict[int, int]) -> tuple[int, ...]:
    """Children, their children and so on, without `pids` themselves."""
    children: dict[int, list[int]] = defaultdict(list)
    for child, parent in parents.items():
        children[parent].append(child)
    found: dict[int, None] = {}
    ahead = list(pids)
    while ahead:
        for child in children.pop(ahead.pop(), ()):
            found[child] = None
            ahead.append(child)
    return tuple(pid for pid in found if pid not in pids)


def _status(holders: dict[int, set[GpuUuid]], members: dict[str, tuple[int, ...]]) -> InputStatus:
    if holders and not members:
        return InputStatus("task_states", "", "denied", _UNSEEN, _SEE_THEM)
    return InputStatus("task_states", "", "available")
