# SPDX-License-Identifier: Apache-2.0
"""Where a scheduler puts the processes of each GPU: their cgroup, their variables, what it leaves on the disk."""

import json
from collections.abc import Sequence
from typing import Final, Protocol
from uuid import NAMESPACE_OID, uuid5

from gpufeed.simulate.hardware import Board
from gpufeed.simulate.layout import SchedulerKind
from gpufeed.simulate.trees.writer import TreeWriter

JOB_ID: Final = 4242
SLUID: Final = "sEKNKTV3WPV500"
USER_ID: Final = 1000
POD_NAMESPACE: Final = "research"

_SCOPE: Final = "/system.slice/slurmstepd.scope"
_SESSION: Final = "/user.slice/user-1000.slice/session-18.scope"
_HIERARCHIES: Final = ("cpu,cpuacct", "devices", "freezer", "memory")
_NVIDIA_MAJOR: Final = 195


class Placement(Protocol):
    """One scheduler's way."""

    def cgroup(self, board: Board) -> str:
        """Of the processes of one GPU."""

    def parent(self, board: Board) -> str | None:
        """Cgroup of the whole step or pod that has the GPU, where it has one."""

    def lines(self, board: Board) -> str:
        """/proc/PID/cgroup."""

    def mounted(self) -> str:
        """Where below /sys/fs/cgroup the hierarchy is in which processes are listed."""

    def variables(self, boards: Sequence[Board]) -> str:
        """/proc/PID/environ."""

    def write(self, tree: TreeWriter, boards: Sequence[Board]) -> None:
        """What does not change while the job runs."""


def placement_of(kind: SchedulerKind) -> Placement:
    """The way of a scheduler."""
    match kind:
        case "slurm":
            return Slurm(f"job_{JOB_ID}")
        case "slurm_sluid":
            return Slurm(SLUID)
        case "slurm_v1":
            return SlurmV1()
        case "kubernetes":
            return Kubernetes()
        case "none":
            return Session()


class Slurm:
    """Slurm under version 2 of cgroups: each task has its own."""

    def __init__(self, directory: str) -> None:
        self._job = f"{_SCOPE}/{directory}"

    def cgroup(self, board: Board) -> str:
        """Of the rank that uses the GPU."""
        return f"{self._job}/step_0/user/task_{board.index}"

    def parent(self, board: Board) -> str | None:  # noqa: ARG002 - one step has all GPUs
        """The step."""
        return f"{self._job}/step_0"

    def lines(self, board: Board) -> str:
        """One hierarchy."""
        return f"0::{self.cgroup(board)}\n"

    def mounted(self) -> str:
        """At the top."""
        return ""

    def variables(self, boards: Sequence[Board]) -> str:
        """Those of Slurm among others."""
        return _slurm_variables(boards)

    def write(self, tree: TreeWriter, boards: Sequence[Board]) -> None:  # noqa: ARG002 - nothing of it is on a disk
        """Slurm's own processes beside the job's."""
        tree.write(f"sys/fs/cgroup{_SCOPE}/system/cgroup.procs", "3900\n")
        tree.write(f"sys/fs/cgroup{self._job}/step_0/slurm/cgroup.procs", "3990\n")


class SlurmV1:
    """Slurm under version 1: the job in some hierarchies, the login session in others."""

    def cgroup(self, board: Board) -> str:
        """Of the rank that uses the GPU."""
        return f"{self._job}/step_0/task_{board.index}"

    def parent(self, board: Board) -> str | None:  # noqa: ARG002 - one step has all GPUs
        """The step."""
        return f"{self._job}/step_0"

    def lines(self, board: Board) -> str:
        """The first and the last say nothing."""
        own = "".join(f"{9 - at}:{name}:{self.cgroup(board)}\n" for at, name in enumerate(_HIERARCHIES))
        return f"11:hugetlb:/\n{own}2:pids:{_SESSION}\n1:name=systemd:{_SESSION}\n"

    def mounted(self) -> str:
        """The first of the job's."""
        return f"/{_HIERARCHIES[0]}"

    def variables(self, boards: Sequence[Board]) -> str:
        """Those of Slurm among others."""
        return _slurm_variables(boards)

    def write(self, tree: TreeWriter, boards: Sequence[Board]) -> None:
        """The devices that the job may open."""
        allowed = [(1, 3), (_NVIDIA_MAJOR, 255), *((_NVIDIA_MAJOR, board.index) for board in boards)]
        lines = "".join(f"c {major}:{minor} rwm\n" for major, minor in allowed)
        tree.write(f"sys/fs/cgroup/devices{self._job}/devices.list", f"c *:* m\nb *:* m\n{lines}")

    @property
    def _job(self) -> str:
        return f"/slurm/uid_{USER_ID}/job_{JOB_ID}"


class Kubernetes:
    """A pod for each GPU, as systemd and containerd name them."""

    def cgroup(self, board: Board) -> str:
        """Of the container."""
        uid = pod_uid(board).replace("-", "_")
        slices = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice"
        return f"{slices}/cri-containerd-{container_id(board)}.scope"

    def parent(self, board: Board) -> str | None:
        """The pod."""
        return self.cgroup(board).rpartition("/")[0]

    def lines(self, board: Board) -> str:
        """One hierarchy."""
        return f"0::{self.cgroup(board)}\n"

    def mounted(self) -> str:
        """At the top."""
        return ""

    def variables(self, boards: Sequence[Board]) -> str:  # noqa: ARG002 - the kubelet tells no container of them
        """None that tell of GPUs."""
        return "PATH=/usr/bin\0KUBERNETES_SERVICE_HOST=10.96.0.1\0"

    def write(self, tree: TreeWriter, boards: Sequence[Board]) -> None:
        """Logs are called after pods and containers; the kubelet keeps who has which device."""
        for board in boards:
            pod, container = pod_name(board), container_name(board)
            folder = f"var/log/pods/{POD_NAMESPACE}_{pod}_{pod_uid(board)}"
            tree.write(f"{folder}/{container}/0.log", "")
            log = f"var/log/containers/{pod}_{POD_NAMESPACE}_{container}-{container_id(board)}.log"
            tree.link(log, f"{folder}/{container}/0.log")
        entries = [
            {
                "PodUID": pod_uid(board),
                "ContainerName": container_name(board),
                "ResourceName": "nvidia.com/gpu",
                "DeviceIDs": {str(board.numa_node): [board.uuid]},
                "AllocResp": "",
            }
            for board in boards
        ]
        registered = {"nvidia.com/gpu": [board.uuid for board in boards]}
        checkpoint = {"Data": {"PodDeviceEntries": entries, "RegisteredDevices": registered}, "Checksum": 1}
        tree.write("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", json.dumps(checkpoint))


class Session:
    """Nobody: somebody logged in and started it."""

    def cgroup(self, board: Board) -> str:  # noqa: ARG002 - a session has one
        """Of the session."""
        return _SESSION

    def parent(self, board: Board) -> str | None:  # noqa: ARG002 - nobody has any
        """There is no job."""
        return None

    def lines(self, board: Board) -> str:
        """One hierarchy."""
        return f"0::{self.cgroup(board)}\n"

    def mounted(self) -> str:
        """At the top."""
        return ""

    def variables(self, boards: Sequence[Board]) -> str:  # noqa: ARG002 - a login shell knows nothing of them
        """Of a login shell."""
        return "PATH=/usr/bin\0"

    def write(self, tree: TreeWriter, boards: Sequence[Board]) -> None:
        """Nothing."""


def pod_uid(board: Board) -> str:
    """Of the pod that has the GPU."""
    return str(uuid5(NAMESPACE_OID, f"pod of {board.uuid}"))


def pod_name(board: Board) -> str:
    """Of the pod that has the GPU."""
    return f"training-{board.index}"


def container_name(board: Board) -> str:  # noqa: ARG001 - all pods are of one template
    """Of the container in it."""
    return "trainer"


def container_id(board: Board) -> str:
    """Of the container in it."""
    return uuid5(NAMESPACE_OID, f"container of {board.uuid}").hex * 2


def _slurm_variables(boards: Sequence[Board]) -> str:
    given = ",".join(str(board.index) for board in boards)
    return (
        f"PATH=/usr/bin\0SLURM_JOB_ID={JOB_ID}\0SLURM_JOB_SLUID={SLUID}\0SLURM_JOB_UID={USER_ID}\0"
        f"SLURM_JOB_GPUS={given}\0SLURM_STEP_GPUS={given}\0SECRET_TOKEN=not-for-us\0"
    )
