# SPDX-License-Identifier: Apache-2.0
"""The files of a control group, wherever its hierarchy is mounted."""

from gpufeed.errors import ParseError, SourceError
from gpufeed.parse.cgroup import CgroupPath, parse_cgroup_procs
from gpufeed.sources.files import Tree


def directories_of(home: CgroupPath) -> tuple[str, ...]:
    """Where below sysfs the directory of a cgroup may be; nowhere where it is outside of what we can see."""
    if ".." in home.path.split("/"):
        return ()
    mounted = (f"/{home.hierarchy}",) if home.hierarchy else ("", "/unified")
    return tuple(f"fs/cgroup{at}{home.path.rstrip('/')}" for at in mounted)


def processes_of(sys: Tree, home: CgroupPath) -> tuple[int, ...] | None:
    """Every process of a cgroup; None where it holds the whole node, or cannot be found from here."""
    if home.is_whole_node:
        return None
    for directory in directories_of(home):
        try:
            return parse_cgroup_procs(sys.table(f"{directory}/cgroup.procs"))
        except (SourceError, ParseError):
            continue
    return None
