# SPDX-License-Identifier: Apache-2.0
"""NFS mounts: /proc/PID/mountstats and mountinfo. The data set is mounted twice from one superblock; home is quiet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpufeed.simulate.hardware import Board
from gpufeed.simulate.layout import DataSetKind
from gpufeed.simulate.levels import NFS_READ_BYTES
from gpufeed.simulate.trees.data_set import mount_line
from gpufeed.simulate.trees.placement import container_name, pod_uid
from gpufeed.simulate.trees.writer import TreeWriter
from gpufeed.simulate.truth import GpuTruth

_FROM_CACHE: Final = 1.1
"""Bytes that applications read for one byte that comes from the server."""

_CONNECTIONS: Final = 4
_IN_FLIGHT: Final = 16
"""Reads that wait for a server that does not answer, and are sent again when it does."""

_TOTALS: Final = ("nfs_read_bytes", "nfs_write_bytes", "nfs_reads", "nfs_read_rtt_s", "nfs_read_queue_s")
_OPERATIONS: Final = (
    "NULL", "READ", "WRITE", "COMMIT", "OPEN", "OPEN_NOATTR", "CLOSE", "SETATTR", "FSINFO", "LOCK", "LOCKU",
    "ACCESS", "GETATTR", "LOOKUP", "REMOVE", "RENAME", "CREATE", "STATFS", "READLINK", "READDIR", "DELEGRETURN",
    "EXCHANGE_ID", "CREATE_SESSION", "SEQUENCE", "RECLAIM_COMPLETE", "SECINFO_NO_NAME", "TEST_STATEID",
)  # fmt: skip

_LOCAL_MOUNTS: Final = (
    ("proc", "/proc", "proc", "22 27 0:21 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw"),
    ("sysfs", "/sys", "sysfs", "23 27 0:22 / /sys rw,nosuid,nodev,noexec,relatime - sysfs sysfs rw"),
    ("/dev/mapper/root", "/", "ext4", "27 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/root rw"),
    ("/dev/nvme0n1p1", "/scratch", "ext4", "28 27 259:1 / /scratch rw,relatime - ext4 /dev/nvme0n1p1 rw"),
    ("cgroup2", "/sys/fs/cgroup", "cgroup2",
     "30 23 0:27 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - cgroup2 cgroup2 rw"),
    ("nfsd", "/proc/fs/nfsd", "nfsd", "31 22 0:28 / /proc/fs/nfsd rw,relatime - nfsd nfsd rw"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """An NFS mount point. Two of one superblock have the same number, and the same counts."""

    number: int
    source: str
    point: str
    superblock: str  # major:minor
    works: bool = False


_MOUNTS: Final = (
    Mount(number=101, source="nas1:/export/data", point="/data", superblock="0:51", works=True),
    Mount(number=102, source="nas1:/export/data", point="/srv/jobs/data\\040set", superblock="0:51", works=True),
    Mount(number=103, source="nas1:/export/home", point="/home", superblock="0:52"),
)

_OPTIONS: Final = (
    "rw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,acregmin=3,acregmax=60,acdirmin=30,acdirmax=60,hard,"
    f"proto=tcp,nconnect={_CONNECTIONS},timeo=600,retrans=2,sec=sys,clientaddr=10.1.0.10,local_lock=none"
)


def write_mounts(tree: TreeWriter, data_set: DataSetKind) -> None:
    """What does not change."""
    for process in ("self", "1"):
        tree.write(f"proc/{process}/mountinfo", mount_table(None, data_set))


def mount_table(container_of: Board | None, data_set: DataSetKind) -> str:
    """Of the node; or of the container that a GPU is given to, where the data set is mounted elsewhere."""
    over = mount_line(data_set, "/data" if container_of is None else "/mnt/dataset")
    if container_of is None:
        lines = [line for *_, line in _LOCAL_MOUNTS]
        lines += [_line(mount, mount.point) for mount in _MOUNTS]
    else:
        pod = f"/var/lib/kubelet/pods/{pod_uid(container_of)}"
        files = f"{pod}/containers/{container_name(container_of)}/{container_of.index:08x}"
        lines = [
            "1350 1279 0:155 / / rw,relatime - overlay overlay rw",
            f"1357 1350 253:0 {pod}/etc-hosts /etc/hosts rw,relatime - ext4 /dev/mapper/root rw",
            f"1358 1350 253:0 {files} /dev/termination-log rw,relatime - ext4 /dev/mapper/root rw",
            "1359 1350 259:1 / /scratch rw,relatime - ext4 /dev/nvme0n1p1 rw",
            _line(_MOUNTS[0], "/mnt/dataset"),
        ]
    lines += [over] if over is not None else []
    return "\n".join(lines) + "\n"


def _line(mount: Mount, point: str) -> str:
    return (
        f"{mount.number} 27 {mount.superblock} / {point} rw,relatime shared:{mount.number} - "
        f"nfs4 {mount.source} {_OPTIONS},addr=10.1.0.2"
    )


@dataclass(slots=True)
class Server:
    """The server of the data set, as the client sees it: whether it answers, and what went unanswered."""

    dies_at_s: float | None = None
    back_at_s: float | None = None
    _unanswered: dict[str, float] = field(default_factory=dict)
    _died_with: dict[str, float] | None = None

    def answers(self, elapsed_s: float) -> bool:
        """Whether it does now."""
        is_dead = self.dies_at_s is not None and elapsed_s >= self.dies_at_s
        return not is_dead or (self.back_at_s is not None and elapsed_s >= self.back_at_s)

    def answered(self, totals: Mapping[str, float], elapsed_s: float) -> dict[str, float]:
        """Of what the node would have moved, what it has."""
        if self.answers(elapsed_s):
            self._died_with = None
        elif self._died_with is None:
            self._died_with = {name: total - self._unanswered.get(name, 0.0) for name, total in totals.items()}
        if self._died_with is not None:
            self._unanswered = {name: total - self._died_with[name] for name, total in totals.items()}
        return {name: total - self._unanswered.get(name, 0.0) for name, total in totals.items()}

    def was_lost(self, elapsed_s: float) -> bool:
        """Whether requests had to be sent again: it was away, and is back."""
        return bool(self._unanswered) and self.answers(elapsed_s)


def write_mountstats(tree: TreeWriter, gpus: Sequence[GpuTruth], age_s: float, server: Server) -> None:
    """What counts."""
    text = "".join(
        f"device {source} mounted on {point} with fstype {kind}\n" for source, point, kind, _ in _LOCAL_MOUNTS
    )
    totals = {name: sum(gpu.host_total(name) for gpu in gpus) for name in _TOTALS}
    busy = _statistics(server.answered(totals, age_s), age_s, server)
    quiet = _statistics(dict.fromkeys(_TOTALS, 0.0), age_s, Server())
    for mount in _MOUNTS:
        text += f"device {mount.source} mounted on {mount.point} with fstype nfs4 statvers=1.1\n"
        text += busy if mount.works else quiet
    for process in ("self", "1"):
        tree.write(f"proc/{process}/mountstats", text)


def _statistics(total: Mapping[str, float], age_s: float, server: Server) -> str:
    read, written = int(total["nfs_read_bytes"]), int(total["nfs_write_bytes"])
    reads, writes = int(total["nfs_reads"]), written // NFS_READ_BYTES
    rtt_ms, queue_ms = int(total["nfs_read_rtt_s"] * 1000), int(total["nfs_read_queue_s"] * 1000)
    lost = _IN_FLIGHT if server.was_lost(age_s) else 0
    waiting = 0 if server.answers(age_s) else _IN_FLIGHT
    operations = dict.fromkeys(_OPERATIONS, "0 0 0 0 0 0 0 0 0")
    operations["READ"] = (
        f"{reads} {reads + lost} {lost} {reads * 232} {read + reads * 128} {queue_ms} {rtt_ms} {queue_ms + rtt_ms} 0"
    )
    operations["WRITE"] = (
        f"{writes} {writes} 0 {written + writes * 256} {writes * 160} {writes // 50} {writes * 2} {writes * 2} 0"
    )
    operations["GETATTR"] = f"{reads // 20} {reads // 20} 0 {reads * 12} {reads * 12} 0 {reads // 80} {reads // 80} 0"
    sent = (reads + writes) // _CONNECTIONS
    lines = [
        f"\topts:\t{_OPTIONS}",
        f"\tage:\t{int(age_s) + 864_000}",
        "\timpl_id:\tname='',domain='',date='0,0'",
        "\tcaps:\tcaps=0x3ffbffdf,wtmult=512,dtsize=1048576,bsize=0,namlen=255",
        "\tnfsv4:\tbm0=0xfdffbfff,bm1=0x40f9be3e,bm2=0x60803,acl=0x0,sessions,pnfs=not configured,lease_time=90",
        "\tsec:\tflavor=1,pseudoflavor=1",
        "\tevents:\t1043 52117 12 733 204 31 9120 " + f"{read // 4096} 0 8 0 377 9 0 204 201 0 196 0 0 0 0 0 0 0 0 0 ",
        f"\tbytes:\t{int(read * _FROM_CACHE)} {written} 0 0 {read} {written} {read // 4096} {written // 4096} ",
        "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)",
        *(
            f"\txprt:\ttcp {800 + at} 1 {2 if lost else 1} 0 0 {sent + waiting} {sent} 0"
            f" {sent * 3} 0 {64 if sent else 1} {sent} {sent * 2}"
            for at in range(_CONNECTIONS)
        ),
        "\tper-op statistics",
        *(f"\t{name:>12}: {values}" for name, values in operations.items()),
        "",
    ]
    return "\n".join(lines) + "\n"
