# SPDX-License-Identifier: Apache-2.0
"""Which NFS mounts are one target, and what it is called. Pure; apart from reading, because there is much to say.

Mounts of one superblock share every counter, so they are one target. It is called by its mount point, of several the
shortest, then the first by name. Where the mount point is a container's, a pod's, an image's or one user's, its name
says nothing about the storage and there would be thousands: then by its source.
"""

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from gpufeed.model.ids import StorageKey
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.parse.mountinfo import MountEntry
from gpufeed.parse.mountstats import NfsMount, NfsOperation
from gpufeed.parse.number import MAX_COUNT

N = TypeVar("N", int, float)

OPTIONS: Final = ("vers", "proto", "nconnect", "rsize", "wsize", "ro")
"""Options worth a label: none of them names a user or an address."""

_READS: Final = ("READ", "READ_PLUS")  # 4.2 has both
_WRITES: Final = ("WRITE",)
_DATA: Final = (*_READS, *_WRITES, "COMMIT")
_OTHERS_PLACE: Final = re.compile(
    r"/kubelet/(?:pods|plugins)/|/(?:containers?|docker|containerd|crio|k3s|rke2|podman|lxc|libpod)/"
    r"|/(?:singularity|apptainer|enroot|pyxis|charliecloud)/|/rootfs/|/overlay2?/|^/proc/|^/run/user/"
)
_OF_ONE_USER: Final = re.compile(r"(?P<parent>/(?:.*/)?(?:homes?|users?|u))/[^/]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class NfsTarget:
    """One or several superblocks that go by one name, each with one of its mounts."""

    name: str
    mounts: tuple[NfsMount, ...]


def targets(
    mounts: Sequence[NfsMount], entries: Sequence[MountEntry], *, is_named_by_source: bool = False
) -> tuple[NfsTarget, ...]:
    """One per name, in the order of the mount table. `entries`: mountinfo of the same table, empty where unreadable."""
    # of two of a type on one place the later is on top; one of another type over it has a number of its own
    devices = {(entry.mountpoint, entry.fstype): entry.device for entry in entries}
    automounts = frozenset(entry.mountpoint for entry in entries if entry.fstype == "autofs")
    on_top = {mount.mountpoint: mount for mount in mounts}
    superblocks: dict[Hashable, list[NfsMount]] = {}
    for mount in on_top.values():
        device = devices.get((mount.mountpoint, mount.fstype))
        superblocks.setdefault(_likeness(mount) if device is None else device, []).append(mount)
    named: dict[str, list[NfsMount]] = {}
    for alike in superblocks.values():
        chosen = min(alike, key=lambda mount: (len(mount.mountpoint), mount.mountpoint))
        is_nameless = is_named_by_source or _is_of_others(chosen.mountpoint, automounts)
        named.setdefault(chosen.source if is_nameless else chosen.mountpoint, []).append(chosen)
    return tuple(NfsTarget(name=name, mounts=tuple(found)) for name, found in named.items())


def counters_of(target: NfsTarget) -> StorageCounters:
    """The counters of a target, summed over its superblocks. Latency is that of whole calls, queueing included."""
    storage = StorageKey("nfs", target.name)
    moved = [mount.transferred for mount in target.mounts if mount.transferred is not None]
    read_bytes = _sum(each.server_read for each in moved) if moved else None
    write_bytes = _sum(each.server_write for each in moved) if moved else None
    application_bytes = _sum(each.normal_read + each.direct_read for each in moved) if moved else None
    known = [mount.operations for mount in target.mounts if mount.operations is not None]
    if not known:
        return StorageCounters(
            storage=storage,
            read_bytes=read_bytes,
            write_bytes=write_bytes,
            application_read_bytes=application_bytes,
        )
    calls = [(name, operation) for operations in known for name, operation in operations.items()]
    reads, writes = _named(calls, _READS), _named(calls, _WRITES)
    return StorageCounters(
        storage=storage,
        read_bytes=read_bytes,
        write_bytes=write_bytes,
        application_read_bytes=application_bytes,
        reads=_sum(operation.calls for operation in reads),
        writes=_sum(operation.calls for operation in writes),
        read_s=sum((operation.execute_s for operation in reads), 0.0),
        write_s=sum((operation.execute_s for operation in writes), 0.0),
        queue_s=sum((operation.queue_s for operation in reads + writes), 0.0),
        retransmits=_sum(max(0, operation.transmissions - operation.calls) for _, operation in calls),
        timeouts=_sum(operation.timeouts for _, operation in calls),
        errors=_errors(_named(calls, _DATA)),
        operations=_by_name((name, operation.calls) for name, operation in calls),
        operation_s=_by_name((name, operation.execute_s) for name, operation in calls),
    )


def info_of(target: NfsTarget, entries: Sequence[MountEntry] = ()) -> StorageInfo:
    """What a target is, by its first superblock; `entries` tell the numbers of all of them."""
    devices = {(entry.mountpoint, entry.fstype): entry.device for entry in entries}
    places = [(each.mountpoint, each.fstype) for each in target.mounts]
    mount = target.mounts[0]
    return StorageInfo(
        storage=StorageKey("nfs", target.name),
        source=mount.source,
        fstype=mount.fstype,
        options={key: mount.options[key] for key in OPTIONS if key in mount.options},
        devices=tuple(devices[place] for place in places if place in devices),
    )


def _likeness(mount: NfsMount) -> Hashable:
    """What two mounts of one superblock have in common, where no mountinfo says which superblock they are."""
    operations = None if mount.operations is None else tuple(mount.operations.items())
    return (mount.source, mount.fstype, mount.age_s, mount.transferred, operations)


def _is_of_others(mountpoint: str, automounts: frozenset[str]) -> bool:
    if _OTHERS_PLACE.search(mountpoint):
        return True
    user = _OF_ONE_USER.fullmatch(mountpoint)
    return user is not None and user["parent"] in automounts


def _named(calls: Sequence[tuple[str, NfsOperation]], names: tuple[str, ...]) -> list[NfsOperation]:
    return [operation for name, operation in calls if name in names]


def _errors(operations: Iterable[NfsOperation]) -> int | None:
    """Failed calls that move data. Of the others many fail by nature: a look-up of what is not there."""
    counted = [operation.errors for operation in operations if operation.errors is not None]
    return _sum(counted) if counted else None


def _by_name(values: Iterable[tuple[str, N]]) -> dict[str, N]:
    total: dict[str, N] = {}
    for name, value in values:
        total[name] = min(total[name] + value, MAX_COUNT) if name in total else value
    return total


def _sum(values: Iterable[int]) -> int:
    """No more than fits a counter, whatever the kernel said: more could not cross the wire."""
    return min(sum(values), MAX_COUNT)
