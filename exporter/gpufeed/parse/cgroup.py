# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/cgroup: the one path that says whose the process is. Source: cgroups(7).

A line is `id:controllers:path`; paths may hold colons. Version 2 has one line, `0::path`; version 1 one a hierarchy,
and schedulers manage some of them only, so the first line or the last may be `/` or a login session.
"""

import re
from dataclasses import dataclass
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.parse.number import counts
from gpufeed.parse.text import PATH_LIMIT, clean_text

_LINE: Final = re.compile(rb"(?P<id>\d{1,9}):(?P<controllers>[^:]*):(?P<path>/.*)", re.DOTALL)
_OWNERS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:^|/)(?:[^/]+_)?slurm(?:stepd\.scope|_[^/]+)?/",
        r"kubepods",
        r"(?:^|[/:-])(?:[0-9a-f]{64})(?:$|[/.])|(?:^|/)(?:docker|garden|lxc\.payload[^/]*|libpod[^/]*|podman)[/-]",
        r"(?:^|/)(?:pbs_jobs|pbspro|torque|lsf|htcondor)",
    )
)
"""Who may own a process, the most telling first: Slurm, Kubernetes, a container, another scheduler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupPath:
    """One line of the file."""

    path: str
    hierarchy: str  # as its directory below /sys/fs/cgroup is called: `cpu,cpuacct`, `systemd`; version 2: empty

    @property
    def is_whole_node(self) -> bool:
        """The root, where everything is that nobody put elsewhere."""
        return self.path in {"/", "/init.scope"}


def parse_cgroup(data: bytes) -> tuple[CgroupPath, ...]:
    """One path per hierarchy, in the order of the file. Raises ParseError."""
    lines = [line for line in data.split(b"\n") if line]
    if not lines:
        raise ParseError("a line 'id:controllers:path'", data, "cgroup")
    return tuple(map(_parse_line, lines))


def owning_cgroup(paths: tuple[CgroupPath, ...]) -> CgroupPath:
    """The path that says whose the process is; of several that say so, the deepest. `paths` is not empty."""
    for owner in _OWNERS:
        if owned := [line for line in paths if owner.search(line.path)]:
            return max(owned, key=lambda line: line.path.count("/"))
    return next((line for line in paths if not line.is_whole_node), paths[0])


def _parse_line(line: bytes) -> CgroupPath:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ParseError("a line 'id:controllers:path'", line, "cgroup")
    return CgroupPath(
        path=clean_text(found["path"], PATH_LIMIT),
        hierarchy=clean_text(found["controllers"]).removeprefix("name="),
    )


def parse_cgroup_procs(data: bytes) -> tuple[int, ...]:
    """Processes of a cgroup; those of another PID namespace are printed as 0 and left out. Raises ParseError."""
    words = data.split()
    return tuple(pid for pid in counts(words, 1, "cgroup.procs") if pid) if words else ()
