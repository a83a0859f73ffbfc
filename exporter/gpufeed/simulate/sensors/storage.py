# SPDX-License-Identifier: Apache-2.0
"""Storage as its clients count it: NFS mounts, local disks, GPUDirect Storage. An object store is only traffic."""

from collections.abc import Sequence
from typing import Final

from gpufeed.model.frame import AnySample
from gpufeed.model.ids import StorageKey
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.sensors.counters import Resettable
from gpufeed.simulate.sensors.scene import Scene

JOB_DISK: Final = "nvme0n1"
NEIGHBOUR_DISK: Final = "nvme1n1"
NEIGHBOUR_MOUNT: Final = "/home"
MEBIBYTE: Final = 1024 * 1024

_DISK_OPERATION_BYTES: Final = 128 * 1024
_DISK_OPERATION_S: Final = 0.0004
"""Of a neighbour's disk, which has no trouble."""

_NAMES: Final = (
    "read_bytes", "write_bytes", "reads", "writes", "opens",
    "read_rtt_s", "write_rtt_s", "open_rtt_s", "read_queue_s", "write_queue_s",
)  # fmt: skip
"""Sums of one kind of storage, as `JudgedGpu.host` has them behind the kind."""
_KEYS: Final = {kind: tuple(f"{kind}_{name}" for name in _NAMES) for kind in ("nfs", "disk", "object", "gds")}


def mount_of(job: int) -> str:
    """Where the data set of a job is mounted."""
    return f"/data{job or ''}"


def source_of(job: int) -> str:
    """The server that the mount is of."""
    return f"nas{1 + job}:/export/data"


class NfsSensors:
    """Each job's mount, and one that only neighbours use. A job's ranks share what is counted."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._counters = [Resettable(scene, "nfs", job) for job in scene.jobs()]
        self._others = Resettable(scene, "nfs", "others")

    def info(self, _age_ns: int) -> tuple[AnySample, ...]:
        """What is mounted."""
        mounts = [(mount_of(job), source_of(job)) for job in self._scene.jobs()]
        return tuple(
            StorageInfo(storage=StorageKey("nfs", target), source=source, fstype="nfs4", options={"vers": "4.2"})
            for target, source in (*mounts, (NEIGHBOUR_MOUNT, "nas9:/export/home"))
        )

    def counters(self, age_ns: int) -> tuple[AnySample, ...]:
        """What was counted. Times are in whole milliseconds."""
        samples = []
        for job, counters in enumerate(self._counters):
            sums = counters.counted(age_ns, totals(self._scene, _of_job(self._scene, job), "nfs"))
            samples.append(_nfs(mount_of(job), sums))
        host = self._scene.node.host
        names = ("nfs_read_bytes", "nfs_reads", "nfs_read_rtt_s", "nfs_read_queue_s")
        read, reads, rtt_s, queue_s = self._others.counted(age_ns, [host.neighbour_total(name) for name in names])
        samples.append(_nfs(NEIGHBOUR_MOUNT, [read, 0.0, reads, 0.0, 0.0, rtt_s, 0.0, 0.0, queue_s, 0.0]))
        return tuple(samples)


class DiskSensors:
    """The disk that jobs read from, and the one that neighbours use."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def info(self, _age_ns: int) -> tuple[AnySample, ...]:
        """What there is."""
        return tuple(
            StorageInfo(storage=StorageKey("block", name), source=f"/dev/{name}") for name in (JOB_DISK, NEIGHBOUR_DISK)
        )

    def counters(self, _age_ns: int) -> tuple[AnySample, ...]:
        """/proc/diskstats. Of the job's disk it is busy while any task waits for it."""
        scene = self._scene
        read, write, reads, writes, _, read_s, write_s, _, *queue_s = totals(scene, scene.node.gpus, "disk")
        busy_s = scene.node.host.waiting_s["io_waiting_s"] if read or write else 0.0
        host = scene.node.host
        own = _disk(JOB_DISK, (read, write), (reads, writes), (read_s + queue_s[0], write_s + queue_s[1]), busy_s)
        other = tuple(host.neighbour_total(f"disk_{way}_bytes") for way in ("read", "write"))
        operations = tuple(size / _DISK_OPERATION_BYTES for size in other)
        seconds = tuple(count * _DISK_OPERATION_S for count in operations)
        return (own, _disk(NEIGHBOUR_DISK, other, operations, seconds, sum(seconds) / 8))


class GdsSensors:
    """The nvidia-fs driver: counts whole mebibytes, where it counts at all."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    @property
    def is_there(self) -> bool:
        """Whether anybody uses it."""
        return any(("gds", "read") in gpu.site.meter.transfers for gpu in self._scene.node.gpus)

    def counters(self, _age_ns: int) -> tuple[AnySample, ...]:
        """Of the whole node."""
        if not self.is_there:
            return ()
        if not self._scene.kit.has_gds_counts:
            return (StorageCounters(storage=StorageKey("gds", "node"), errors=0),)
        read, write, reads, writes, *_ = totals(self._scene, self._scene.node.gpus, "gds")
        return (
            StorageCounters(
                storage=StorageKey("gds", "node"),
                read_bytes=int(read) // MEBIBYTE * MEBIBYTE,
                write_bytes=int(write) // MEBIBYTE * MEBIBYTE,
                reads=int(reads),
                writes=int(writes),
                errors=0,
            ),
        )


def totals(scene: Scene, gpus: Sequence[JudgedGpu], kind: str) -> list[float]:
    """Of all these ranks at one kind of storage, in the order of _NAMES."""
    if not any(kind == used for gpu in gpus for used, _ in gpu.site.meter.transfers):
        return [0.0] * len(_NAMES)
    hosts = [scene.host(gpu) for gpu in gpus]
    return [sum([host.get(key, 0.0) for host in hosts]) for key in _KEYS[kind]]


def _of_job(scene: Scene, job: int) -> list[JudgedGpu]:
    """Also ranks that have ended: what they did stays counted."""
    return [gpu for gpu in scene.node.gpus if gpu.job == job]


def _nfs(target: str, sums: Sequence[float]) -> StorageCounters:
    read, write, reads, writes, opens, read_s, write_s, open_s, read_queue_s, write_queue_s = sums
    return StorageCounters(
        storage=StorageKey("nfs", target),
        read_bytes=int(read),
        write_bytes=int(write),
        reads=int(reads),
        writes=int(writes),
        read_s=int(read_s * 1000) / 1000,
        write_s=int(write_s * 1000) / 1000,
        queue_s=int((read_queue_s + write_queue_s) * 1000) / 1000,
        retransmits=0,
        timeouts=0,
        errors=0,
        operations={"READ": int(reads), "WRITE": int(writes), "OPEN": int(opens)},
        operation_s={
            name: int(seconds * 1000) / 1000
            for name, seconds in (("READ", read_s), ("WRITE", write_s), ("OPEN", open_s))
        },
    )


def _disk(
    name: str, size: Sequence[float], operations: Sequence[float], seconds: Sequence[float], busy_s: float
) -> StorageCounters:
    read_s, write_s = (int(of * 1000) / 1000 for of in seconds)
    return StorageCounters(
        storage=StorageKey("block", name),
        read_bytes=int(size[0]) // 512 * 512,
        write_bytes=int(size[1]) // 512 * 512,
        reads=int(operations[0]),
        writes=int(operations[1]),
        read_s=read_s,
        write_s=write_s,
        queue_s=read_s + write_s,
        busy_s=int(busy_s * 1000) / 1000,
    )
