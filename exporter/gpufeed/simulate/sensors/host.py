# SPDX-License-Identifier: Apache-2.0
"""The host as a whole, and each job's share of it: pressure, processors, memory, the storage network."""

from collections.abc import Mapping
from typing import Final, Literal

from gpufeed.model.frame import AnySample
from gpufeed.model.host import HostCpu, HostMemory, NodeInfo, Pressure
from gpufeed.model.network import NetCounters, NetInterface
from gpufeed.simulate.sensors.scene import Scene
from gpufeed.simulate.sensors.storage import totals

TICKS_PER_S: Final = 100
NETDEV: Final = "enp13s0np0"
NET_OVERHEAD: Final = 1.02
"""Bytes on the wire for one byte of a file."""

_SYSTEM_SHARE: Final = 0.08
_MEMORY_BYTES: Final = 1_056_000_000 * 1024
_USED_BYTES: Final = 40_000_000_000
_USED_BY_RANK_BYTES: Final = 30_000_000_000

Resource = Literal["cpu", "io", "memory"]


def pressure(cgroup: str, sums: Mapping[str, float]) -> tuple[Pressure, ...]:
    """Three files, in whole microseconds. `sums`: by the names in HOST_INTEGRALS."""

    def of(resource: Resource, stalled_s: float | None) -> Pressure:
        return Pressure(
            resource=resource,
            cgroup=cgroup,
            waiting_s=_micro(sums[f"{resource}_waiting_s"]),
            stalled_s=None if stalled_s is None else _micro(stalled_s),
        )

    return (
        of("cpu", 0.0 if cgroup else None),
        of("io", sums["io_stalled_s"]),
        of("memory", sums["memory_stalled_s"]),
    )


class HostSensors:
    """Files of procfs that are about everybody."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def pressure(self, _age_ns: int) -> tuple[AnySample, ...]:
        """/proc/pressure."""
        return pressure("", self._scene.node.host.waiting_s)

    def processors(self, _age_ns: int) -> tuple[AnySample, ...]:
        """/proc/stat in ticks, and /proc/meminfo."""
        host = self._scene.node.host
        busy_s, iowait_s = host.busy_s, host.iowait_s
        seconds = {
            "user": _ticks(busy_s * (1 - _SYSTEM_SHARE)),
            "nice": 0.0,
            "system": _ticks(busy_s * _SYSTEM_SHARE),
            "idle": _ticks(host.elapsed_s * host.cpus - busy_s - iowait_s),
            "iowait": _ticks(iowait_s),
        }
        held = sum(self._scene.is_held(gpu) for gpu in self._scene.node.gpus)
        available = _MEMORY_BYTES - _USED_BYTES - held * _USED_BY_RANK_BYTES
        return (
            HostCpu(seconds=seconds, cpus=host.cpus, blocked_tasks=host.blocked_tasks),
            HostMemory(total_bytes=_MEMORY_BYTES, available_bytes=available),
        )

    def node(self, _age_ns: int) -> tuple[AnySample, ...]:
        """Who the node is."""
        name = self._scene.node.seed
        return (NodeInfo(nodename="simulated-node", machine_id=f"{name} machine", boot_id=f"{name} boot"),)

    def traffic(self, _age_ns: int) -> tuple[AnySample, ...]:
        """Of the card that storage is behind: NFS, object stores, and what neighbours do."""
        scene = self._scene
        read, written = 0.0, 0.0
        for kind in ("nfs", "object"):
            sums = totals(scene, scene.node.gpus, kind)
            read, written = read + sums[0], written + sums[1]
        others = scene.node.host.neighbour_total("net_receive_bytes")
        return (
            NetCounters(
                device=NETDEV,
                receive_bytes=int(read * NET_OVERHEAD + others),
                transmit_bytes=int(written * NET_OVERHEAD),
            ),
        )

    def interface(self, _age_ns: int) -> tuple[AnySample, ...]:
        """The same card."""
        return (NetInterface(device=NETDEV, is_up=True, speed_bytes_per_s=25e9, errors={}, numa_node=0),)


def _micro(seconds: float) -> float:
    return int(seconds * 1e6) / 1e6


def _ticks(seconds: float) -> float:
    return int(seconds * TICKS_PER_S) / TICKS_PER_S
