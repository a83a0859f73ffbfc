# SPDX-License-Identifier: Apache-2.0
"""The machine: processor time, memory, and what it is called."""

import os
from typing import Final

from gpufeed.errors import ParseError, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputStatus
from gpufeed.model.host import HostCpu, HostMemory, NodeInfo
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.parse.cpu_stat import parse_cpu_stat
from gpufeed.parse.meminfo import parse_meminfo
from gpufeed.parse.text import clean_text
from gpufeed.sources.contract import Desk, Group, LanePlan, NoSpec, Outcome
from gpufeed.sources.files import HeldFile, Tree
from gpufeed.sources.gathering import Gathering, Statuses, state_of

FAST: Final = GroupName("host.fast")
SLOW: Final = GroupName("host.slow")


class HostSource:
    """Plans the lane `host`."""

    name = "host"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One lane, or none where the collector is off."""
        if not config.options("host").enabled:
            return ()
        groups = tuple(Group(name=name, collector="host", period_ns=config.period_ns(name)) for name in (SLOW, FAST))
        return (LanePlan(lane=LaneId("host"), groups=groups, open=open_host),)


def open_host(_spec: NoSpec, desk: Desk) -> "HostReader":
    """A reader of the configured procfs, sysfs and rootfs."""
    return HostReader(desk)


class HostReader:
    """Reads /proc/stat and /proc/meminfo fast, names slowly."""

    def __init__(self, desk: Desk) -> None:
        config = desk.config
        self._proc = Tree(config.procfs, desk)
        self._sys = Tree(config.sysfs, desk)
        self._root = Tree(config.rootfs, desk)
        self._files = {name: HeldFile(config.procfs, name, desk) for name in ("stat", "meminfo")}
        self._statuses = Statuses()
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")

    def read(self, group: GroupName) -> Outcome:
        """`host.fast`: a HostCpu and a HostMemory. `host.slow`: a NodeInfo, where the node has a name."""
        if group == SLOW:
            return Outcome(samples=self._node_info())
        gathering = Gathering(self._statuses)
        for name, file in self._files.items():
            try:
                gathering.samples.append(self._sample(name, file.read()))
                gathering.say(InputStatus("host", name, "available"))
            except (SourceError, ParseError) as error:
                gathering.fail(name, error)
                gathering.say(InputStatus("host", name, state_of(error), str(error)))
        return gathering.outcome()

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()

    def _sample(self, name: str, data: bytes) -> HostCpu | HostMemory:
        if name == "stat":
            cpu = parse_cpu_stat(data, self._ticks_per_s)
            return HostCpu(seconds=cpu.seconds, cpus=cpu.cpus, blocked_tasks=cpu.blocked_tasks)
        memory = parse_meminfo(data)
        return HostMemory(total_bytes=memory.total_bytes, available_bytes=memory.available_bytes)

    def _node_info(self) -> tuple[NodeInfo, ...]:
        nodename = _text(self._proc, "sys/kernel/hostname")
        if nodename is None:
            return ()
        info = NodeInfo(
            nodename=nodename,
            machine_id=_text(self._root, "etc/machine-id"),
            boot_id=_text(self._proc, "sys/kernel/random/boot_id"),
            product=_text(self._sys, "class/dmi/id/product_name"),
        )
        return (info,)


def _text(tree: Tree, path: str) -> str | None:
    """The text of a file, or None where it has none, is missing or is not for us: a name is never worth an error."""
    try:
        return clean_text(tree.attribute(path)) or None
    except SourceError:
        return None
