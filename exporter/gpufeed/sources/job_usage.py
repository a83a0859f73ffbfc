# SPDX-License-Identifier: Apache-2.0
"""What jobs with GPUs wait for and use: pressure and throttling of their cgroups, reads and switches of processes.

Pressure of the group right around a GPU's processes is read fast, for it says why the GPU waits; all else slowly, and
by step or pod.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from gpufeed.errors import Denied, ParseError, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputStatus
from gpufeed.model.host import Pressure, PressureResource
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.jobs import JobUsage
from gpufeed.parse.cgroup import CgroupPath, owning_cgroup, parse_cgroup
from gpufeed.parse.cgroup_cpu import CgroupCpu, parse_cgroup_cpu
from gpufeed.parse.cgroup_job import CgroupJob, job_of
from gpufeed.parse.number import MAX_COUNT
from gpufeed.parse.pressure import PressureTotals, parse_pressure
from gpufeed.parse.process_io import parse_process_io
from gpufeed.sources.cgroups import directories_of, processes_of
from gpufeed.sources.contract import Desk, DeviceFailure, Group, LanePlan, NoSpec, Outcome
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Gathering, Statuses, state_of
from gpufeed.sources.jobs import SLOW
from gpufeed.sources.pressure import FAST
from gpufeed.sources.running_sum import RunningSum
from gpufeed.sources.switches import SwitchWatch

RESOURCES: Final[tuple[PressureResource, ...]] = ("cpu", "io", "memory")
MAX_CGROUPS: Final = 64
MAX_PROCESSES: Final = 64
"""Of one job, at one read."""

_FIX: Final = "AmbientCapabilities=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH for the probe, or run it as root"
_NO_PRESSURE: Final = "cgroups of jobs show no pressure: version 1, switched off, or not to be seen from here"


class JobUsageSource:
    """Plans the lane `job-usage`."""

    name = "job_usage"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One lane, or none where jobs are not looked at. Fast readings are those of the pressure collector."""
        if not config.options("jobs").enabled:
            return ()
        groups = [Group(name=SLOW, collector="jobs", period_ns=config.period_ns(SLOW))]
        if config.options("pressure").enabled:
            groups.append(Group(name=FAST, collector="pressure", period_ns=config.period_ns(FAST)))
        return (LanePlan(lane=LaneId("job-usage"), groups=tuple(groups), open=open_job_usage),)


def open_job_usage(_spec: NoSpec, desk: Desk) -> "JobUsageReader":
    """A reader of the configured procfs and cgroup tree."""
    return JobUsageReader(desk)


@dataclass(slots=True)
class _Home:
    """A cgroup with processes that hold GPUs."""

    path: CgroupPath
    quota: CgroupPath  # where its processor time is limited: another hierarchy under version 1
    job: CgroupJob | None
    holders: list[int]


@dataclass(slots=True)
class _Sums:
    """Of one step or pod, for as long as it has a GPU."""

    throttled_s: RunningSum = field(default_factory=RunningSum)
    throttled_periods: RunningSum = field(default_factory=RunningSum)
    read_calls: RunningSum = field(default_factory=RunningSum)
    block_reads: RunningSum = field(default_factory=RunningSum)
    switches: SwitchWatch = field(default_factory=SwitchWatch)


JobName = tuple[str, str, str]


class JobUsageReader:
    """Knows the cgroups from its last slow read, or looks when the processes with GPUs are others than then."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._proc = Tree(desk.config.procfs, desk)
        self._sys = Tree(desk.config.sysfs, desk)
        self._statuses = Statuses()
        self._pids: tuple[int, ...] = ()
        self._homes: dict[str, _Home] = {}
        self._sums: dict[JobName, _Sums] = {}
        self._is_refused = False

    def read(self, group: GroupName) -> Outcome:
        """`pressure.fast`: Pressure of each cgroup around a GPU. `jobs.slow`: a JobUsage per step or pod."""
        gathering = Gathering(self._statuses)
        pids = tuple(sorted({pid for _, pids in tuple(self._desk.board.gpu_pids.values()) for pid in pids}))
        if group == SLOW or pids != self._pids:
            self._pids, self._homes = pids, self._look(pids)
        if group == FAST:
            self._read_pressure(gathering)
        else:
            self._read_usage(gathering)
        return gathering.outcome()

    def close(self) -> None:
        """Nothing is held."""

    def _look(self, pids: Sequence[int]) -> dict[str, _Home]:
        homes: dict[str, _Home] = {}
        for pid in pids:
            try:
                paths = parse_cgroup(self._proc.attribute(f"{pid}/cgroup"))
            except (SourceError, ParseError):
                continue  # it ended, or is not for us to see
            path = owning_cgroup(paths)
            if path.is_whole_node or (path.path not in homes and len(homes) == MAX_CGROUPS):
                continue
            home = homes.setdefault(path.path, _Home(path, _limited(paths, path), job_of(paths), []))
            home.holders.append(pid)
        return homes

    def _read_pressure(self, gathering: Gathering) -> None:
        for home in self._homes.values():
            for resource, totals in self._pressure(home.path).items():
                gathering.samples.append(
                    Pressure(resource=resource, cgroup=home.path.path, waiting_s=totals.some_s, stalled_s=totals.full_s)
                )
        if self._homes and not gathering.samples:
            gathering.say(InputStatus("job_pressure", "", "absent", _NO_PRESSURE))
        else:
            gathering.say(InputStatus("job_pressure", "", "available"))

    def _pressure(self, home: CgroupPath) -> dict[PressureResource, PressureTotals]:
        found: dict[PressureResource, PressureTotals] = {}
        for directory in directories_of(home):
            for resource in RESOURCES:
                try:
                    found[resource] = parse_pressure(self._sys.attribute(f"{directory}/{resource}.pressure"))
                except (SourceError, ParseError):
                    continue  # version 1 has none, or it is switched off here
            if found:
                break
        return found

    def _read_usage(self, gathering: Gathering) -> None:
        jobs: dict[JobName, tuple[CgroupJob, list[_Home]]] = {}
        for home in self._homes.values():
            if home.job is not None and not home.job.is_scheduler_own:
                name = (home.job.scheduler, home.job.job_id, home.job.step)
                jobs.setdefault(name, (home.job, []))[1].append(home)
        self._sums = {name: self._sums.get(name, _Sums()) for name in jobs}
        refusal: SourceError | None = None
        for name, (job, homes) in jobs.items():
            sums = self._sums[name]
            self._add_throttling(homes, sums)
            refusal = self._add_processes(homes, sums, gathering) or refusal
            top = CgroupPath(path=job.top, hierarchy=homes[0].path.hierarchy)
            gathering.samples.append(_usage(job, self._pressure(top), self._cpu(top).used_s, sums))
        if refusal is not None and not any(sums.read_calls.is_known for sums in self._sums.values()):
            fix = _FIX if isinstance(refusal, Denied) else ""
            gathering.say(InputStatus("job_reads", "", state_of(refusal), str(refusal), fix))
        else:
            gathering.say(InputStatus("job_reads", "", "available"))

    def _add_throttling(self, homes: Sequence[_Home], sums: _Sums) -> None:
        levels = {level for home in homes for level in _levels(home)}
        for level in levels:
            found = self._cpu(level)
            sums.throttled_s.see(level, found.throttled_s)
            sums.throttled_periods.see(level, found.throttled_periods)
        sums.throttled_s.keep(levels)
        sums.throttled_periods.keep(levels)

    def _cpu(self, home: CgroupPath) -> CgroupCpu:
        for directory in directories_of(home):
            try:
                return parse_cgroup_cpu(self._sys.attribute(f"{directory}/cpu.stat"))
            except (SourceError, ParseError):
                continue
        return CgroupCpu()

    def _add_processes(self, homes: Sequence[_Home], sums: _Sums, gathering: Gathering) -> SourceError | None:
        """What kept us from the reads of a process, if anything did."""
        pids = {pid: None for home in homes for pid in (*home.holders, *(processes_of(self._sys, home.path) or ()))}
        refusal: SourceError | None = None
        for pid in sums.switches.read(self._proc, tuple(islice(pids, MAX_PROCESSES))):
            try:
                moved = parse_process_io(self._proc.attribute(f"{pid}/io"))
                sums.read_calls.see(pid, moved.read_call_bytes)
                sums.block_reads.see(pid, moved.block_read_bytes)
            except SourceError as error:
                refusal = error
            except ParseError as error:
                gathering.fail(f"{pid}/io", error)
        for each in (sums.read_calls, sums.block_reads):
            each.keep(pids)
        if len(pids) > MAX_PROCESSES:
            detail = f"a job of {len(pids)} processes; {MAX_PROCESSES} are looked at"
            gathering.note(DeviceFailure(device="processes", reason="limit", detail=detail))
        return refusal


def _usage(
    job: CgroupJob, pressure: Mapping[PressureResource, PressureTotals], cpu_s: float | None, sums: _Sums
) -> JobUsage:
    return JobUsage(
        scheduler=job.scheduler,
        job_id=job.job_id,
        step=job.step,
        pod_uid=job.pod_uid,
        waiting_s={resource: totals.some_s for resource, totals in pressure.items() if totals.some_s is not None},
        stalled_s={resource: totals.full_s for resource, totals in pressure.items() if totals.full_s is not None},
        cpu_s=cpu_s,
        throttled_s=sums.throttled_s.total if sums.throttled_s.is_known else None,
        throttled_periods=_whole(sums.throttled_periods),
        read_call_bytes=_whole(sums.read_calls),
        block_read_bytes=_whole(sums.block_reads),
        voluntary_switches=_whole(sums.switches.voluntary) if sums.switches.is_known else None,
        involuntary_switches=_whole(sums.switches.involuntary) if sums.switches.is_known else None,
    )


def _limited(paths: Sequence[CgroupPath], owning: CgroupPath) -> CgroupPath:
    return next((path for path in paths if "cpu" in path.hierarchy.split(",") and not path.is_whole_node), owning)


def _levels(home: _Home) -> list[CgroupPath]:
    """The cgroup and those around it up to the step or pod: each may have a quota."""
    quota, top = home.quota, home.job.top if home.job is not None else ""
    levels = [quota]
    path = quota.path
    while top and path.startswith(f"{top}/"):
        path = path.rpartition("/")[0]
        levels.append(CgroupPath(path=path, hierarchy=quota.hierarchy))
    return levels


def _whole(counted: RunningSum) -> int | None:
    return min(int(counted.total), MAX_COUNT) if counted.is_known else None
