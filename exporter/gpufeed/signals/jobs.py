# SPDX-License-Identifier: Apache-2.0
"""Which GPUs work together, as far as the processes that hold them tell."""

import re
from typing import Any, Final

from gpufeed.model.host import JobTasks
from gpufeed.model.ids import GpuUuid
from gpufeed.model.state import Held
from gpufeed.signals.inventory import is_held
from gpufeed.signals.view import View

_JOB: Final = re.compile(r"^.*?/job_[^/]+")
"""Slurm gives every task of a job its own control group; what they have in common ends here."""


def jobs_of(uuid: GpuUuid, view: View) -> tuple[JobTasks, ...]:
    """The task sets whose processes hold this GPU, in the order of their control groups."""
    held: list[Held[Any]] = [item for item in view.samples.get(JobTasks, {}).values() if uuid in item.sample.gpus]
    return tuple(sorted((item.sample for item in held), key=lambda tasks: tasks.cgroup))


def peers_of(uuid: GpuUuid, view: View) -> tuple[GpuUuid, ...]:
    """The other GPUs of this one's job. Where no job is visible: all others that somebody holds."""
    return view.once(("peers", uuid), lambda: _peers_of(uuid, view))


def _peers_of(uuid: GpuUuid, view: View) -> tuple[GpuUuid, ...]:
    own = {_job(tasks) for tasks in jobs_of(uuid, view)}
    if own:
        every: list[JobTasks] = [item.sample for item in view.samples.get(JobTasks, {}).values()]
        together = {other for tasks in every if _job(tasks) in own for other in tasks.gpus}
    else:
        together = {other for other in view.records if is_held(other, view.samples)}
    return tuple(sorted(other for other in together if other != uuid))


def _job(tasks: JobTasks) -> str:
    found = _JOB.match(tasks.cgroup)
    return found.group() if found is not None else tasks.cgroup
