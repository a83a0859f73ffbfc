# SPDX-License-Identifier: Apache-2.0
"""Which GPUs Slurm has given to the jobs of this node, whether or not they use them.

Version 1 of cgroups says it to everybody, in the devices that a job may open. Version 2 does not; there the variables
of a job's own tasks say it, to those who may read them. What was found holds while the job lives.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from gpufeed.errors import Denied, ParseError, SourceError
from gpufeed.model.frame import InputStatus
from gpufeed.model.jobs import Allocation, Allocations
from gpufeed.parse.cgroup import parse_cgroup_procs
from gpufeed.parse.slurm import parse_device_minors, parse_gpu_numbers, parse_slurm_environ
from gpufeed.sources.contract import DeviceFailure
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Gathering

MAX_JOBS: Final = 128
MAX_TASKS: Final = 8
"""Tasks of one job that are asked: they all know the same."""

_UNIFIED: Final = "fs/cgroup/system.slice"
_DEVICES: Final = "fs/cgroup/devices"
_SCOPE: Final = re.compile(r"(?:[^/]+_)?slurmstepd\.scope")
_SLURM: Final = re.compile(r"slurm(?:_[^/]+)?")
_USER: Final = re.compile(r"uid_[0-9]{1,10}")
_JOB: Final = re.compile(r"(?:job_(?P<number>[0-9]{1,20})|(?P<sluid>s[0-9A-HJKMNP-TV-Z]{13}))")
_READ_ENVIRON: Final = "AmbientCapabilities=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH for the probe, or run it as root"


class Slurm:
    """Walks the cgroups of Slurm, and asks each new job once."""

    def __init__(self, proc: Tree, sys: Tree) -> None:
        self._proc = proc
        self._sys = sys
        self._known: dict[str, Allocation] = {}  # by the job's directory

    def read(self, gathering: Gathering) -> None:
        """An Allocations, where there is a Slurm on this node."""
        roots = [*self._below(_UNIFIED, _SCOPE), *self._below(_DEVICES, _SLURM)]
        if not roots:
            return
        listed = list(islice(self._jobs(roots), MAX_JOBS + 1))
        jobs = listed[:MAX_JOBS]
        self._known = {path: known for path, known in self._known.items() if path in jobs}
        refusal: SourceError | None = None
        for path in jobs:
            if path not in self._known:
                try:
                    found = self._ask(path)
                except SourceError as error:
                    refusal = error
                    continue
                if found is not None:
                    self._known[path] = found
        is_complete = len(self._known) == len(listed)
        if len(listed) > MAX_JOBS:
            gathering.note(DeviceFailure(device="slurm", reason="limit", detail=f"more than {MAX_JOBS} jobs"))
        gathering.samples.append(
            Allocations(scheduler="slurm", jobs=tuple(self._known.values()), is_complete=is_complete)
        )
        if isinstance(refusal, Denied):
            gathering.say(InputStatus("allocations", "slurm", "denied", str(refusal), _READ_ENVIRON))
        else:
            gathering.say(InputStatus("allocations", "slurm", "available"))

    def _jobs(self, roots: list[str]) -> Iterator[str]:
        for root in roots:
            yield from self._below(root, _JOB)
            for user in self._below(root, _USER):
                yield from self._below(user, _JOB)

    def _ask(self, path: str) -> Allocation | None:
        """None where no task of the job could be asked, as of one that has just begun. Raises SourceError."""
        named = _JOB.fullmatch(path.rpartition("/")[2])
        number, sluid = (named["number"] or "", named["sluid"] or "") if named is not None else ("", "")
        minors = self._allowed(path)
        if minors is not None and number:
            return Allocation(job_id=number, minors=minors)
        refusal: SourceError | None = None
        for pid in islice(self._tasks(path), MAX_TASKS):
            try:
                variables = parse_slurm_environ(self._proc.table(f"{pid}/environ"))
            except SourceError as error:
                refusal = error
                continue
            if not variables.get("SLURM_JOB_ID", "").isdecimal() or number not in {"", variables["SLURM_JOB_ID"]}:
                continue  # not a task of this job, or one that has made up its own variables
            given = parse_gpu_numbers(variables.get("SLURM_JOB_GPUS", ""))
            return Allocation(job_id=variables["SLURM_JOB_ID"], minors=minors or given or (), sluid=sluid)
        if refusal is not None:
            raise refusal
        return None

    def _allowed(self, path: str) -> tuple[int, ...] | None:
        try:
            return parse_device_minors(self._sys.table(f"{path}/devices.list"))
        except SourceError:
            return None  # version 2 has no such file

    def _tasks(self, path: str) -> Iterator[int]:
        """Processes of the job's own, not those of Slurm that look after it."""
        for step in sorted(self._below(path, re.compile(r"step_.+")), key=_is_extern):
            for parent in (f"{step}/user", step):
                for task in (*self._below(parent, re.compile(r"task_.+")), parent):
                    yield from self._processes(task)

    def _processes(self, path: str) -> tuple[int, ...]:
        try:
            return parse_cgroup_procs(self._sys.table(f"{path}/cgroup.procs"))
        except (SourceError, ParseError):
            return ()

    def _below(self, path: str, pattern: re.Pattern[str]) -> list[str]:
        try:
            return [f"{path}/{name}" for name in self._sys.names(path) if pattern.fullmatch(name)]
        except SourceError:
            return []


def _is_extern(step: str) -> bool:
    """Last: what was adopted into a job may have been started by somebody else."""
    return step.endswith("step_extern")
