# SPDX-License-Identifier: Apache-2.0
"""Storage in one vocabulary: block devices, NFS, and every other kind."""

from functools import partial
from typing import Final

from gpufeed.catalogue.define import MetricDef, RowProfile

TITLE: Final = "Storage"

STORAGE_LABELS: Final = ("kind", "target")

NETWORK_KINDS: Final = ("nfs", "lustre", "gpfs", "beegfs", "ceph", "weka", "fuse", "gds")
"""Every kind but block: a node has many disks and reads its data over the network."""

STORAGE_OPTIONS: Final = ("vers", "proto", "nconnect", "rsize", "wsize", "ro")
"""Mount options that decide throughput or refuse it; all others stay on the node."""

_MINIMAL_FOR_NETWORK: Final = RowProfile(label="kind", kept=NETWORK_KINDS, others="default")

# One family has rows of several collectors; the label says of which. `block` only names the chunk they share.
_family = partial(MetricDef, collector="block", collector_label="kind", sheds="mount")
_counter = partial(_family, type="counter", labels=STORAGE_LABELS, profile="default")

STORAGE_INFO = _family(
    name="gpufeed_storage_info",
    type="info",
    unit="info",
    help="What a storage target is.",
    labels=(*STORAGE_LABELS, "source", "fstype", *STORAGE_OPTIONS),
    source="/proc/PID/mountstats, /sys/block",
    profile="default",
)

STORAGE_READ_BYTES_TOTAL = _counter(
    name="gpufeed_storage_read_bytes_total",
    unit="bytes",
    help="Bytes read from the device or the server, without what the page cache answered. "
    "With it, where a client counts nothing else: GPFS, Lustre without osc statistics.",
    source="/proc/diskstats; mountstats bytes; Lustre osc and llite; CephFS metrics; nvidia-fs; mmpmon",
    profile="minimal",
    row_profile=_MINIMAL_FOR_NETWORK,
)

STORAGE_WRITE_BYTES_TOTAL = _counter(
    name="gpufeed_storage_write_bytes_total",
    unit="bytes",
    help="Bytes written to the device or the server.",
    source="/proc/diskstats; mountstats bytes; Lustre osc and llite; CephFS metrics; nvidia-fs; mmpmon",
    profile="minimal",
    row_profile=_MINIMAL_FOR_NETWORK,
)

STORAGE_APPLICATION_READ_BYTES_TOTAL = _counter(
    name="gpufeed_storage_application_read_bytes_total",
    unit="bytes",
    help="Bytes that applications read, page cache included.",
    source="mountstats bytes; Lustre llite; mmpmon",
    profile="full",
)

STORAGE_READS_TOTAL = _counter(
    name="gpufeed_storage_reads_total",
    unit="count",
    help="Reads that were completed.",
    source="/proc/diskstats; mountstats READ",
)

STORAGE_WRITES_TOTAL = _counter(
    name="gpufeed_storage_writes_total",
    unit="count",
    help="Writes that were completed.",
    source="/proc/diskstats; mountstats WRITE",
)

STORAGE_READ_SECONDS_TOTAL = _counter(
    name="gpufeed_storage_read_seconds_total",
    unit="seconds",
    help="Time that reads took, added up over all of them. Divided by reads: the mean latency.",
    source="/proc/diskstats; mountstats READ",
)

STORAGE_WRITE_SECONDS_TOTAL = _counter(
    name="gpufeed_storage_write_seconds_total",
    unit="seconds",
    help="Time that writes took, added up over all of them. Divided by writes: the mean latency.",
    source="/proc/diskstats; mountstats WRITE",
)

STORAGE_OPERATIONS_TOTAL = _counter(
    name="gpufeed_storage_operations_total",
    unit="count",
    help="Operations by the file system's own name for them. Reads and writes are among them.",
    labels=(*STORAGE_LABELS, "operation"),
    source="mountstats per-op statistics",
    profile="full",
    sheds="operation",
)

STORAGE_OPERATION_SECONDS_TOTAL = _counter(
    name="gpufeed_storage_operation_seconds_total",
    unit="seconds",
    help="Time that operations took, added up over all of them.",
    labels=(*STORAGE_LABELS, "operation"),
    source="mountstats per-op statistics",
    profile="full",
    sheds="operation",
)

STORAGE_QUEUE_SECONDS_TOTAL = _counter(
    name="gpufeed_storage_queue_seconds_total",
    unit="seconds",
    help="Time requests waited on this node before they were sent, added up over all of them.",
    source="/proc/diskstats weighted time; mountstats queue time",
)

STORAGE_BUSY_SECONDS_TOTAL = _counter(
    name="gpufeed_storage_busy_seconds_total",
    unit="seconds",
    help="Time with at least one request under way.",
    source="/proc/diskstats",
)

STORAGE_INFLIGHT = _family(
    name="gpufeed_storage_inflight",
    type="gauge",
    unit="count",
    help="Requests under way at the moment of the read.",
    labels=STORAGE_LABELS,
    source="/proc/diskstats",
    profile="full",
)

STORAGE_RETRANSMITS_TOTAL = _counter(
    name="gpufeed_storage_retransmits_total",
    unit="count",
    help="Requests sent again because no answer came.",
    source="mountstats transmissions − operations",
)

STORAGE_TIMEOUTS_TOTAL = _counter(
    name="gpufeed_storage_timeouts_total",
    unit="count",
    help="Requests whose retries ran out: the server does not answer.",
    source="mountstats major timeouts",
)

STORAGE_ERRORS_TOTAL = _counter(
    name="gpufeed_storage_errors_total",
    unit="count",
    help="Requests that ended with an error.",
    source="mountstats errors",
)
