# SPDX-License-Identifier: Apache-2.0
"""What a probe says of its inputs, once: which are there, and why the others are not."""

from collections.abc import Iterator

from gpufeed.model.frame import InputState, InputStatus
from gpufeed.simulate.sensors.scene import Scene


def statuses(scene: Scene) -> tuple[InputStatus, ...]:
    """All of them."""
    return tuple(_all(scene))


def _all(scene: Scene) -> Iterator[InputStatus]:
    inputs = scene.sensing.inputs
    for name in ("nvml", "pci", "ethernet", "block"):
        yield InputStatus(name, "", "available")
    yield InputStatus("infiniband", "", _state(has=inputs.fabric), _reason(has=inputs.fabric, why="no RDMA device"))
    yield InputStatus("nfs", "", _state(has=inputs.nfs), _reason(has=inputs.nfs, why="no NFS file system is mounted"))
    for scope in ("cpu", "io", "memory"):
        why = "this kernel accounts no pressure"
        yield InputStatus("pressure", scope, _state(has=inputs.pressure), _reason(has=inputs.pressure, why=why))
    yield InputStatus("host", "stat", "available")
    yield InputStatus("host", "meminfo", "available")
    yield from _of_jobs(scene)
    for gpu in scene.node.gpus:
        uuid = scene.uuid(gpu)
        for name in ("utilization", "memory", "power", "clocks", "clock_events", "pcie_bytes", "xid", "processes"):
            yield InputStatus(name, uuid, "available")
        has_gpm = inputs.gpm and scene.node.model.has_gpm
        yield InputStatus(
            "gpm", uuid, "available" if has_gpm else "unsupported", _reason(has=has_gpm, why="this device has no GPM")
        )
        has_links = scene.node.model.nvlink_links > 0
        yield InputStatus(
            "nvlink", uuid, "available" if has_links else "unsupported", _reason(has=has_links, why="no NVLink")
        )


def _of_jobs(scene: Scene) -> Iterator[InputStatus]:
    inputs = scene.sensing.inputs
    is_seen = inputs.processes
    tasks: InputState = "available" if is_seen else "denied"
    yield InputStatus("task_states", "", tasks, _reason(has=is_seen, why="no process that holds a GPU is visible"))
    has_owners = is_seen and inputs.cgroups
    why = "no scheduler is known to own these processes"
    yield InputStatus("job_owners", "", _state(has=has_owners), _reason(has=has_owners, why=why))
    has_pressure = has_owners and inputs.pressure
    yield InputStatus("job_pressure", "", _state(has=has_pressure), _reason(has=has_pressure, why=why))
    yield InputStatus("job_reads", "", _state(has=has_owners), _reason(has=has_owners, why=why))
    yield InputStatus("job_files", "", tasks, _reason(has=is_seen, why="open files may not be read"))


def _state(*, has: bool) -> InputState:
    return "available" if has else "absent"


def _reason(*, has: bool, why: str) -> str:
    return "" if has else why
