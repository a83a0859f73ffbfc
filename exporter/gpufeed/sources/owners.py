# SPDX-License-Identifier: Apache-2.0
"""Whose the processes are that hold GPUs: one small file a process, looked at as often as NVML lists processes.

Nothing is kept about a process longer than it holds a GPU: its number may be another's a moment later.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from gpufeed.errors import ParseError, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputStatus
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.jobs import JobOwner
from gpufeed.parse.cgroup import owning_cgroup, parse_cgroup
from gpufeed.parse.cgroup_job import CgroupJob, job_of, pod_of_mounts
from gpufeed.parse.mountinfo import parse_mountinfo
from gpufeed.parse.passwd import parse_users
from gpufeed.parse.slurm import parse_slurm_environ, slurm_job_of
from gpufeed.parse.task_status import parse_user_id
from gpufeed.sources.contract import Desk, DeviceFailure, Group, LanePlan, NoSpec, Outcome
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Statuses
from gpufeed.units import NS_PER_S

OWNERS: Final = GroupName("jobs.owners")
PERIOD_NS: Final = 2 * NS_PER_S
MAX_PROCESSES: Final = 512
"""With the multi-process service a GPU has 48 clients; a node has eight GPUs, and somebody may do worse."""

_NO_CGROUP: Final = ""
_SLURMD: Final = re.compile(r"/slurmd(?:\.service|@|_|/|$)")
_UNSEEN: Final = "no process that holds a GPU is visible in /proc: another PID namespace, or hidepid"
_SEE_THEM: Final = "share the host's PID namespace (hostPID: true); /proc without hidepid; no ProtectProc= in the unit"


class OwnersSource:
    """Plans the lane `owners`."""

    name = "owners"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One lane, or none where jobs are not looked at."""
        if not config.options("jobs").enabled:
            return ()
        group = Group(name=OWNERS, collector="jobs", period_ns=min(PERIOD_NS, config.slow_period_ns))
        return (LanePlan(lane=LaneId("owners"), groups=(group,), open=open_owners),)


def open_owners(_spec: NoSpec, desk: Desk) -> "OwnersReader":
    """A reader of the configured procfs."""
    return OwnersReader(desk)


@dataclass(frozen=True, slots=True)
class _Home:
    """Of one process."""

    cgroup: str
    job: CgroupJob
    container: str | None
    user: str | None


class OwnersReader:
    """Reads the cgroup of each process; its mounts once, where the cgroup does not say it all."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._proc = Tree(desk.config.procfs, desk)
        self._root = Tree(desk.config.rootfs, desk)
        self._statuses = Statuses()
        self._pods: dict[int, tuple[str, str | None] | None] = {}  # by process: pod and container of its mounts
        self._variables: dict[int, CgroupJob | None] = {}  # by process: the job of its variables

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """A JobOwner per cgroup and job, ordered by them. Processes that work for no job are in none."""
        holders = sorted({pid for _, pids in tuple(self._desk.board.gpu_pids.values()) for pid in pids})
        pids = holders[:MAX_PROCESSES]
        self._pods = {pid: pod for pid, pod in self._pods.items() if pid in pids}
        self._variables = {pid: job for pid, job in self._variables.items() if pid in pids}
        users = self._users() if pids and self._desk.config.job_users else {}
        visible = 0
        found: dict[_Home, list[int]] = defaultdict(list)
        for pid in pids:
            try:
                home = self._home(pid, users)
            except (SourceError, ParseError):
                continue  # it ended, or is not for us to see
            visible += 1
            if home is not None:
                found[home].append(pid)
        owners = [_owner(home, tuple(members)) for home, members in found.items()]
        self._desk.board.gpu_pods = frozenset(owner.pod_uid for owner in owners if owner.pod_uid is not None)
        status = InputStatus("job_owners", "", "available")
        if pids and not visible:
            status = InputStatus("job_owners", "", "denied", _UNSEEN, _SEE_THEM)
        return Outcome(
            samples=tuple(sorted(owners, key=lambda owner: repr(owner.subject))),
            inputs=self._statuses.news(status),
            failures=_cut(len(holders)),
        )

    def close(self) -> None:
        """Nothing is held."""

    def _home(self, pid: int, users: dict[int, str]) -> _Home | None:
        """None where the process works for no job. Raises SourceError, ParseError."""
        try:
            paths = parse_cgroup(self._proc.attribute(f"{pid}/cgroup"))
        except SourceError:
            job = self._by_variables(pid)
            if job is None:
                raise
            return _Home(_NO_CGROUP, job, None, self._user(pid, users))
        cgroup = owning_cgroup(paths)
        job, container = job_of(paths), None
        if job is not None and job.pod_uid is not None:
            container = self._container(pid, job.pod_uid)
        elif cgroup.is_whole_node or ".." in cgroup.path.split("/"):
            pod = self._pod(pid)
            if pod is not None:
                job, container = CgroupJob(scheduler="kubernetes", job_id=pod[0], pod_uid=pod[0]), pod[1]
        home = cgroup.path
        if job is None and (cgroup.is_whole_node or _SLURMD.search(home)):
            job, home = self._by_variables(pid), _NO_CGROUP  # others' jobs may be in this one too
        return None if job is None else _Home(home, job, container, self._user(pid, users))

    def _container(self, pid: int, uid: str) -> str | None:
        pod = self._pod(pid)
        return pod[1] if pod is not None and pod[0] == uid else None

    def _pod(self, pid: int) -> tuple[str, str | None] | None:
        if pid not in self._pods:
            try:
                self._pods[pid] = pod_of_mounts(parse_mountinfo(self._proc.table(f"{pid}/mountinfo")).rows)
            except SourceError:
                self._pods[pid] = None
        return self._pods[pid]

    def _by_variables(self, pid: int) -> CgroupJob | None:
        """Where Slurm tracks its jobs without cgroups, all of a node are in one: that of the daemon.

        A task may set what it likes in its variables, so that they are asked where nothing else tells.
        """
        if pid not in self._variables:
            try:
                self._variables[pid] = slurm_job_of(parse_slurm_environ(self._proc.table(f"{pid}/environ")))
            except SourceError:
                self._variables[pid] = None
        return self._variables[pid]

    def _users(self) -> dict[int, str]:
        try:
            return parse_users(self._root.table("etc/passwd"))
        except SourceError:
            return {}

    def _user(self, pid: int, users: dict[int, str]) -> str | None:
        """The name; the number where this node knows none. None where names are not wanted."""
        if not self._desk.config.job_users:
            return None
        number = parse_user_id(self._proc.attribute(f"{pid}/status"))
        return users.get(number, str(number))


def _owner(home: _Home, pids: tuple[int, ...]) -> JobOwner:
    job = home.job
    return JobOwner(
        cgroup=home.cgroup,
        pids=pids,
        scheduler=job.scheduler,
        job_id=job.job_id,
        step=job.step,
        pod_uid=job.pod_uid,
        container_id=job.container_id,
        container=home.container,
        user=home.user,
        is_scheduler_own=job.is_scheduler_own,
    )


def _cut(processes: int) -> tuple[DeviceFailure, ...]:
    if processes <= MAX_PROCESSES:
        return ()
    detail = f"{processes} processes hold GPUs; {MAX_PROCESSES} are looked at"
    return (DeviceFailure(device="processes", reason="limit", detail=detail),)
