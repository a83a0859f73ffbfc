# SPDX-License-Identifier: Apache-2.0
"""Which storage targets a job has files open on.

A target is named by its mount point on the node, which a container does not see. What is the same everywhere is the
number of the superblock; where a target has none, the type and what it was mounted from.
"""

from collections.abc import Iterable, Iterator, Sequence

from gpufeed.model.ids import StorageKey
from gpufeed.model.jobs import JobFiles
from gpufeed.model.storage import StorageInfo


def targets_of(files: JobFiles, infos: Sequence[StorageInfo]) -> Iterator[StorageKey]:
    """Those of `infos`; a target may come twice."""
    yield from (info.storage for info in infos if info.storage.kind == "block" and info.storage.target in files.disks)
    devices = files.devices or ("",) * len(files.mounts)
    for (fstype, source), device in zip(files.mounts, devices, strict=False):
        alike = [info for info in infos if info.fstype == fstype and info.storage.kind != "block"]
        by_number = [info for info in alike if device and device in info.devices]
        yield from (info.storage for info in by_number or _by_source(alike, source, device))


def _by_source(alike: Sequence[StorageInfo], source: str, device: str) -> Iterable[StorageInfo]:
    """By `10.1.1.1@tcp:/scratch` or `/dev/gpfs1` of another mount, or where nothing is said the only one of its type.

    Not one whose superblocks are known to be others.
    """
    possible = [info for info in alike if not (device and info.devices)]
    named = [info for info in possible if source == info.source or source.rpartition("/")[2] == info.storage.target]
    return named or (possible if len(possible) == 1 and source.endswith("nodev") else ())
