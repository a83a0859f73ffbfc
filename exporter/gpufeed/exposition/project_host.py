# SPDX-License-Identifier: Apache-2.0
"""The host: pressure, processors, memory."""

from collections.abc import Iterator
from typing import Final, get_args

from gpufeed.catalogue import host
from gpufeed.exposition.family import Family
from gpufeed.exposition.rows import family, text
from gpufeed.health.in_use import is_host_in_use
from gpufeed.model.host import HostCpu, HostMemory, NodeInfo, Pressure, PressureResource
from gpufeed.model.state import NodeState

_RESOURCES: Final[tuple[str, ...]] = get_args(PressureResource)


def families(state: NodeState) -> Iterator[Family]:
    """The machine, what it is short of, and what it has."""
    nodes = [held.sample for held in state.latest(NodeInfo).values()]
    yield Family(
        host.NODE_INFO,
        [((node.nodename, text(node.machine_id), text(node.boot_id), text(node.product)), 1) for node in nodes],
    )
    yield from _pressure(state)
    cpus = [held.sample for held in state.latest(HostCpu).values()]
    yield Family(
        host.HOST_CPU_SECONDS_TOTAL,
        [((mode,), spent_s) for mode, spent_s in (state.cpu_s if cpus else {}).items()],
    )
    memory = [((), held.sample) for held in state.latest(HostMemory).values()]
    yield family(host.HOST_MEMORY_TOTAL_BYTES, memory, lambda sample: sample.total_bytes)
    yield family(host.HOST_MEMORY_AVAILABLE_BYTES, memory, lambda sample: sample.available_bytes)
    yield family(host.HOST_BLOCKED_TASKS, [((), cpu) for cpu in cpus], lambda cpu: cpu.blocked_tasks)
    yield Family(host.HOST_IN_USE_RECENTLY, [((), int(is_host_in_use(state)))])


def _pressure(state: NodeState) -> Iterator[Family]:
    samples = [((held.sample.resource,), held.sample) for held in state.latest(Pressure).values()]
    of_node = [(labels, sample) for labels, sample in samples if not sample.cgroup]
    yield family(host.PRESSURE_WAITING_SECONDS_TOTAL, of_node, lambda sample: sample.waiting_s)
    yield family(host.PRESSURE_STALLED_SECONDS_TOTAL, of_node, lambda sample: sample.stalled_s)
    measured = {sample.resource for _, sample in of_node}
    refused = {
        resource
        for status in state.inputs.values()
        if status.input == "pressure" and status.state != "available"
        for resource in ((status.scope,) if status.scope in _RESOURCES else _RESOURCES)
    }
    yield Family(
        host.PRESSURE_AVAILABLE,
        [((name,), int(name in measured)) for name in _RESOURCES if name in measured or name in refused],
    )
