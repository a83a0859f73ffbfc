# SPDX-License-Identifier: Apache-2.0
"""What storage jobs with GPUs read: the file systems on which their processes have files open.

Only links in /proc are read; a file system is never asked, it may hang. Descriptors come and go faster than anybody
looks, so what was seen holds until the last process of its cgroup that has a GPU is gone.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from gpufeed.errors import Denied, ParseError, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputStatus
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.jobs import JobFiles
from gpufeed.parse.cgroup import CgroupPath, owning_cgroup, parse_cgroup
from gpufeed.parse.mountinfo import MountEntry, parse_mountinfo
from gpufeed.parse.open_files import data_mounts, is_network
from gpufeed.sources.cgroups import processes_of
from gpufeed.sources.contract import Desk, Group, LanePlan, NoSpec, Outcome
from gpufeed.sources.disks import disks_below
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Gathering, Statuses
from gpufeed.sources.jobs import SLOW
from gpufeed.units import NS_PER_S

MAX_CGROUPS: Final = 64
MAX_PROCESSES: Final = 4
"""Of one cgroup at one read; loaders are many and alike, and take turns."""

MAX_FILES: Final = 32
"""Of one process: those opened last, which are the data."""

MOUNTS_HOLD_NS: Final = 60 * NS_PER_S
_FIX: Final = "AmbientCapabilities=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH for the probe, or run it as root"


class JobFilesSource:
    """Plans the lane `job-files`."""

    name = "job_files"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One lane, or none where jobs are not looked at."""
        if not config.options("jobs").enabled:
            return ()
        group = Group(name=SLOW, collector="jobs", period_ns=config.period_ns(SLOW))
        return (LanePlan(lane=LaneId("job-files"), groups=(group,), open=open_job_files),)


def open_job_files(_spec: NoSpec, desk: Desk) -> "JobFilesReader":
    """A reader of the configured procfs and sysfs."""
    return JobFilesReader(desk)


@dataclass(slots=True)
class _Seen:
    """Of one cgroup, since it was first seen."""

    turn: int = 0
    mounts: set[tuple[str, str, str]] = field(default_factory=set)
    disks: set[str] = field(default_factory=set)


class JobFilesReader:
    """Looks at a few processes of each cgroup in turn, and at their mount tables once a minute."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._proc = Tree(desk.config.procfs, desk)
        self._sys = Tree(desk.config.sysfs, desk)
        self._statuses = Statuses()
        self._seen: dict[str, _Seen] = {}
        self._tables: dict[str, tuple[int, tuple[MountEntry, ...]]] = {}  # by mount namespace: when read, what it had

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """A JobFiles per cgroup of which any file was seen, ordered by cgroup."""
        gathering = Gathering(self._statuses)
        now_ns = self._desk.clock.monotonic_ns()
        self._tables = {key: table for key, table in self._tables.items() if now_ns - table[0] < MOUNTS_HOLD_NS}
        homes = self._homes()
        self._seen = {path: self._seen.get(path, _Seen()) for path in homes}
        looked, refusal = 0, None
        for path, (home, holders) in homes.items():
            for pid in self._in_turn(home, holders, self._seen[path]):
                try:
                    self._look(pid, self._seen[path])
                    looked += 1
                except SourceError as error:
                    refusal = error if isinstance(error, Denied) else refusal
        gathering.samples.extend(
            _files(path, seen) for path, seen in sorted(self._seen.items()) if seen.mounts or seen.disks
        )
        if looked or refusal is None:
            gathering.say(InputStatus("job_files", "", "available"))
        else:
            gathering.say(InputStatus("job_files", "", "denied", str(refusal), _FIX))
        return gathering.outcome()

    def close(self) -> None:
        """Nothing is held."""

    def _homes(self) -> dict[str, tuple[CgroupPath, list[int]]]:
        """Cgroups of the processes that hold GPUs, and these processes."""
        homes: dict[str, CgroupPath] = {}
        holders: dict[str, list[int]] = defaultdict(list)
        for pid in sorted({pid for _, pids in tuple(self._desk.board.gpu_pids.values()) for pid in pids}):
            try:
                home = owning_cgroup(parse_cgroup(self._proc.attribute(f"{pid}/cgroup")))
            except (SourceError, ParseError):
                continue  # it ended, or is not for us to see
            if home.path in homes or len(homes) < MAX_CGROUPS:
                homes[home.path] = home
                holders[home.path].append(pid)
        return {path: (homes[path], holders[path]) for path in homes}

    def _in_turn(self, home: CgroupPath, holders: Sequence[int], seen: _Seen) -> Iterator[int]:
        """A few of the processes, others each time; those that hold a GPU are among them like any."""
        pids = sorted({*holders, *(processes_of(self._sys, home) or ())})
        first = seen.turn % len(pids)
        seen.turn = first + MAX_PROCESSES
        return islice((*pids[first:], *pids[:first]), min(MAX_PROCESSES, len(pids)))

    def _look(self, pid: int, seen: _Seen) -> None:
        """Raises SourceError where the process is not for us to see, or gone."""
        numbers = sorted((int(name) for name in self._proc.names(f"{pid}/fd") if name.isdecimal()), reverse=True)
        for mount in data_mounts(self._files(pid, numbers[:MAX_FILES]), self._mounts(pid)):
            if is_network(mount):
                seen.mounts.add((mount.fstype, mount.source, mount.device))
            else:
                seen.disks.update(disks_below(self._sys, mount.device))

    def _files(self, pid: int, numbers: Sequence[int]) -> Iterator[str]:
        for number in numbers:
            try:
                yield self._proc.target(f"{pid}/fd/{number}")
            except SourceError:
                continue  # closed meanwhile

    def _mounts(self, pid: int) -> tuple[MountEntry, ...]:
        namespace = self._proc.target(f"{pid}/ns/mnt")
        if namespace not in self._tables:
            entries = parse_mountinfo(self._proc.table(f"{pid}/mountinfo")).rows
            self._tables[namespace] = (self._desk.clock.monotonic_ns(), entries)
        return self._tables[namespace][1]


def _files(cgroup: str, seen: _Seen) -> JobFiles:
    mounts = sorted(seen.mounts)
    return JobFiles(
        cgroup=cgroup,
        mounts=tuple((fstype, source) for fstype, source, _ in mounts),
        disks=tuple(sorted(seen.disks)),
        devices=tuple(device for *_, device in mounts),
    )
