# SPDX-License-Identifier: Apache-2.0
"""Samples of storage: one vocabulary for block devices, NFS, and every other kind. All counters cumulative."""

from gpufeed.model.ids import StorageKey
from gpufeed.model.sample import Sample


class StorageInfo(Sample, frozen=True, kw_only=True, tag="storage_info"):
    """What a storage target is."""

    storage: StorageKey
    source: str | None = None  # server:/export, or the device
    fstype: str | None = None
    options: dict[str, str] | None = None  # an allow-list: vers, proto, nconnect, rsize, ro …
    devices: tuple[str, ...] = ()  # major:minor of its superblocks, the same in every mount namespace

    @property
    def subject(self) -> StorageKey:
        """The target."""
        return self.storage


class StorageCounters(Sample, frozen=True, kw_only=True, tag="storage"):
    """Work done by a storage target since it was attached. Bytes come from device or server, not from cache."""

    storage: StorageKey
    read_bytes: int | None = None
    write_bytes: int | None = None
    application_read_bytes: int | None = None  # page cache included
    reads: int | None = None
    writes: int | None = None
    read_s: float | None = None  # summed over operations: read_s / reads is the mean latency
    write_s: float | None = None
    queue_s: float | None = None
    busy_s: float | None = None
    inflight: int | None = None
    retransmits: int | None = None
    timeouts: int | None = None
    errors: int | None = None
    operations: dict[str, int] | None = None
    operation_s: dict[str, float] | None = None

    @property
    def subject(self) -> StorageKey:
        """The target."""
        return self.storage
