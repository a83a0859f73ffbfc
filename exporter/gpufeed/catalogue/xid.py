# SPDX-License-Identifier: Apache-2.0
"""XIDs: the errors that driver and hardware report by number."""

from typing import Final

from gpufeed.catalogue.define import GPU_LABELS, MetricDef

TITLE: Final = "XID errors"

XID_CLASSES: Final = ("unusable", "contained", "app", "link", "info")

GPU_XID_CLASS_ERRORS_TOTAL = MetricDef(
    name="gpufeed_gpu_xid_class_errors_total",
    type="counter",
    unit="count",
    help="XIDs by what they mean for the GPU. All classes stand from the start, so that the first one is an increase.",
    labels=(*GPU_LABELS, "class"),
    source="NVML events, kernel log",
    profile="minimal",
    collector="xid",
)

GPU_XID_ERRORS_TOTAL = MetricDef(
    name="gpufeed_gpu_xid_errors_total",
    type="counter",
    unit="count",
    help="XIDs by number, from the first one on. Do not add to the counter by class: the same events.",
    labels=(*GPU_LABELS, "xid"),
    source="NVML events, kernel log",
    profile="default",
    collector="xid",
)

GPU_XID_LAST_TIMESTAMP_SECONDS = MetricDef(
    name="gpufeed_gpu_xid_last_timestamp_seconds",
    type="gauge",
    unit="timestamp_seconds",
    help="When this XID was seen last, in seconds since 1970.",
    labels=(*GPU_LABELS, "xid"),
    source="NVML events, kernel log",
    profile="default",
    collector="xid",
)
