# SPDX-License-Identifier: Apache-2.0
"""From the paths of a process's cgroups to the job that it works for.

Each scheduler has its own way of naming control groups, and each of them several, by version, driver and runtime. What
is said here was learned from their sources and from the paths of real nodes. Of several matches in one path the
innermost holds: containers run in containers, Slurm in Kubernetes.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from gpufeed.parse.cgroup import CgroupPath
from gpufeed.parse.mountinfo import MountEntry

_NAME: Final = r"[A-Za-z0-9+_.\[\]@:-]{1,64}"
_UUID: Final = r"[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}"
_POD_UID: Final = rf"(?:{_UUID}|[0-9a-f]{{32}})"
"""Pods of a file on the node have a hash of 32 digits for a UID."""

_SLURM: Final = re.compile(
    r"(?:(?:^|/)(?:[^/]+_)?slurm(?:stepd\.scope|_[^/]+)?/|^(?:/\.\.)+/)"  # several slurmd; a cgroup namespace
    r"(?:uid_(?P<uid>[0-9]{1,10})/)?"
    r"(?:job_(?P<job>[0-9]{1,20})|(?P<sluid>s[0-9A-HJKMNP-TV-Z]{13}))(?=/|$)"
    rf"(?:/step_(?P<step>{_NAME})(?P<own>/slurm(?=/|$))?)?"
)
"""Since 26.05 the directory is called by the job's SLUID unless CgroupJobIdPaths is set. Source: cgroup_v2.c."""

_POD: Final = re.compile(
    rf"(?:^|[/-])(?P<pod>pod(?P<uid>{_POD_UID})(?:\.slice)?)(?=[/:]|$)"
    r"(?:[/:](?P<runtime>[a-z][a-z-]*)?[-:]?(?P<container>[0-9a-f]{64})(?:\.scope)?(?=/|$))?"
)
_IS_KUBERNETES: Final = re.compile(r"kubepods|^(?:/\.\.)+/")
_MONITOR: Final = "crio-conmon-"
_CONTAINER: Final = re.compile(
    r"(?:^|[/:-])(?P<id>[0-9a-f]{64})(?=$|[/.])|(?:^|/)(?:garden/|lxc\.payload[./])(?P<name>[A-Za-z0-9_.-]{1,64})"
)
_OTHERS: Final = (
    ("pbs", re.compile(rf"(?:^|/)(?:pbs_jobs|pbspro)(?:\.service|\.slice)?/(?:jobid/)?(?P<job>[0-9]{_NAME})(?=/|$)")),
    ("torque", re.compile(rf"(?:^|/)torque/(?P<job>[0-9]{_NAME})(?=/|$)")),
    ("lsf", re.compile(r"(?:^|/)lsf/[^/]+/job\.(?P<job>[0-9]{1,20}(?:\[[0-9]{1,9}\])?)(?=[./]|$)")),
    ("htcondor", re.compile(rf"(?:^|/)htcondor/(?:.*_)?(?P<job>slot{_NAME})(?=/|$)")),
)
_SHORT_ID: Final = 12
"""Digits of a container's id that people and tools use."""

_OF_THE_KUBELET: Final = re.compile(
    rf"(?:^|/)pods/(?P<uid>{_POD_UID})/(?:etc-hosts$|containers/(?P<container>[a-z0-9-]{{1,63}})/)"
)
_MOUNTED_INTO_EVERY_CONTAINER: Final = frozenset({"/etc/hosts", "/dev/termination-log"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupJob:
    """Whose a process is, as far as its cgroup says."""

    scheduler: str  # slurm, kubernetes, pbs, torque, lsf, htcondor; container: of none that we know
    job_id: str  # the pod's UID; the SLUID where Slurm gives no number; the first digits of a container's id
    step: str = ""
    pod_uid: str | None = None  # also of what another scheduler runs inside a pod
    container_id: str | None = None
    is_scheduler_own: bool = False  # a process of the scheduler that looks after the job
    top: str = field(default="", compare=False)  # cgroup of the whole step, pod or container; processes may be below


def job_of(paths: Iterable[CgroupPath]) -> CgroupJob | None:
    """The job; None for the system's own processes and those of people who logged in.

    Version 1 has a path for each hierarchy, and not every one is the scheduler's: the first scheduler of our order
    that is named in any path, by the path that says most.
    """
    deepest_first = sorted({path.path for path in paths}, key=lambda path: (-path.count("/"), path))
    for find in (_slurm, _other, _kubernetes, _container):
        for path in deepest_first:
            if (job := find(path)) is not None:
                return job
    return None


def pod_of_mounts(entries: Iterable[MountEntry]) -> tuple[str, str | None] | None:
    """UID of the pod and name of the container whose mount table this is; None where it is no container's.

    Where a cgroup namespace hides the path, the kubelet's own files in every container say it.
    """
    uid, container = None, None
    for entry in entries:
        if entry.mountpoint in _MOUNTED_INTO_EVERY_CONTAINER and (found := _OF_THE_KUBELET.search(entry.root)):
            uid, container = found["uid"], found["container"] or container
    return None if uid is None else (uid.replace("_", "-"), container)


def _slurm(path: str) -> CgroupJob | None:
    found = _last(_SLURM, path)
    if found is None:
        return None
    pod = _kubernetes(path)
    return CgroupJob(
        scheduler="slurm",
        job_id=found["job"] or found["sluid"],
        step=found["step"] or "",
        pod_uid=pod.pod_uid if pod is not None else None,
        container_id=pod.container_id if pod is not None else None,
        is_scheduler_own=found["own"] is not None,
        top=_component(path, found.start("own") if found["own"] else found.end()),
    )


def _kubernetes(path: str) -> CgroupJob | None:
    found = _last(_POD, path) if _IS_KUBERNETES.search(path) else None
    if found is None:
        return None
    uid = found["uid"].replace("_", "-")
    is_one_component = path[found.end("pod") :].startswith(":")
    top = _component(path, found.end() if is_one_component else found.end("pod"))
    job = CgroupJob(scheduler="kubernetes", job_id=uid, pod_uid=uid, container_id=found["container"], top=top)
    return replace(job, is_scheduler_own=_MONITOR in path[found.start() :])


def _other(path: str) -> CgroupJob | None:
    for scheduler, pattern in _OTHERS:
        if found := _last(pattern, path):
            return CgroupJob(scheduler=scheduler, job_id=found["job"], top=_component(path, found.end()))
    return None


def _container(path: str) -> CgroupJob | None:
    found = _last(_CONTAINER, path)
    if found is None:
        return None
    top = _component(path, found.end())
    if found["name"]:
        return CgroupJob(scheduler="container", job_id=found["name"], top=top)
    return CgroupJob(scheduler="container", job_id=found["id"][:_SHORT_ID], container_id=found["id"], top=top)


def _component(path: str, end: int) -> str:
    """The path with the component in which `end` lies, or at whose end it stands, as its last."""
    slash = path.find("/", end)
    return path if slash < 0 else path[:slash]


def _last(pattern: re.Pattern[str], path: str) -> re.Match[str] | None:
    found = None
    for found in pattern.finditer(path):  # noqa: B007 - the last one is what is wanted
        pass
    return found
