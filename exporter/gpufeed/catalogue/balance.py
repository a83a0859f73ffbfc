# SPDX-License-Identifier: Apache-2.0
"""Where the node is out of balance: its layers, its stragglers, its waits, and how much of the peak is used."""

from functools import partial
from typing import Final

from gpufeed.catalogue.define import GPU_LABELS, MetricDef
from gpufeed.catalogue.storage import STORAGE_LABELS
from gpufeed.model.balance import STALL_BOUNDS_S

TITLE: Final = "Balance"

_layer = partial(MetricDef, labels=("layer",), profile="default", collector="self")
_OF = "The most loaded device of the layer"

LAYER_BUSY_SECONDS_TOTAL = _layer(
    name="gpufeed_layer_busy_seconds_total",
    type="counter",
    unit="seconds",
    help="Seconds times the share of its capacity that the most loaded device of the layer carried: rate() is how full "
    "the layer is. The layer with the highest rate is the one that will bind next.",
    source="layers",
)

LAYER_DEMAND_BYTES_PER_SECOND = _layer(
    name="gpufeed_layer_demand_bytes_per_second",
    type="gauge",
    unit="bytes_per_second",
    help=f"{_OF}: what it carried in its busier direction, mean of five minutes.",
    source="layers",
)

LAYER_CAPACITY_BYTES_PER_SECOND = _layer(
    name="gpufeed_layer_capacity_bytes_per_second",
    type="gauge",
    unit="bytes_per_second",
    help=f"{_OF}: what it can carry in one direction, as far as real transfers get.",
    source="layers; gpufeed_layer_capacity_origin_info says how it is known",
)

LAYER_HEADROOM_RATIO = _layer(
    name="gpufeed_layer_headroom_ratio",
    type="gauge",
    unit="ratio",
    help=f"{_OF}: the share of its capacity that was left, mean of five minutes.",
    source="layers",
)

LAYER_GPUS_SUPPORTABLE = _layer(
    name="gpufeed_layer_gpus_supportable",
    type="gauge",
    unit="count",
    help="GPUs that this layer could keep at work, at the bytes each second of work takes now. Less than the GPUs "
    "there are: the layer binds. Never from a learned capacity.",
    source="layers, attribution",
)

LAYER_CAPACITY_ORIGIN_INFO = MetricDef(
    name="gpufeed_layer_capacity_origin_info",
    type="info",
    unit="info",
    help="How the capacity of a layer is known: by specification, by configuration, or learned from when it was full.",
    labels=("layer", "origin"),
    source="layers",
    profile="default",
    collector="self",
)

_storage = partial(
    MetricDef, source="configuration; learned while full", profile="default", collector="block", collector_label="kind",
    sheds="mount",
)  # fmt: skip

STORAGE_CAPACITY_BYTES_PER_SECOND = _storage(
    name="gpufeed_storage_capacity_bytes_per_second",
    type="gauge",
    unit="bytes_per_second",
    help="What a storage target can give to this node at most.",
    labels=(*STORAGE_LABELS, "direction"),
)

STORAGE_CAPACITY_ORIGIN_INFO = _storage(
    name="gpufeed_storage_capacity_origin_info",
    type="info",
    unit="info",
    help="How the capacity of a storage target is known: configured, or learned from when it was full.",
    labels=(*STORAGE_LABELS, "direction", "origin"),
)

GPU_STALL_SECONDS = MetricDef(
    name="gpufeed_gpu_stall_seconds",
    type="histogram",
    unit="seconds",
    help="Waits of GPUs at a stretch, by what they were for most of the time; of the whole node. "
    "Waits shorter than the fast period do not show.",
    labels=("cause",),
    source="attribution",
    profile="default",
    collector="nvml",
    sheds="detail",
    buckets=STALL_BOUNDS_S,
)

GPU_STRAGGLER_SCORE = MetricDef(
    name="gpufeed_gpu_straggler_score",
    type="gauge",
    unit="count",
    help="Share of the last five minutes in which the other GPUs of its job waited for a peer and this one did not, 0 "
    "to 1. Where all wait alike, the straggler is on another node: where the sum is lowest.",
    labels=GPU_LABELS,
    source="attribution",
    profile="default",
    collector="nvml",
    stability="experimental",
)

GPU_TENSOR_INTENSITY_RATIO = MetricDef(
    name="gpufeed_gpu_tensor_intensity_ratio",
    type="gauge",
    unit="ratio",
    help="Time of the tensor pipes times the clock, of the published peak: an upper bound of FLOPs done, never MFU.",
    labels=GPU_LABELS,
    source="GPM any-tensor activity, SM clock, a table of peaks by PCI device id",
    profile="default",
    collector="nvml",
    stability="experimental",
)

GPU_PEAK_FLOPS_PER_SECOND = MetricDef(
    name="gpufeed_gpu_peak_flops_per_second",
    type="gauge",
    unit="flops_per_second",
    help="Published peak of dense matrix products, by data type. Absent for GPUs that are not in the table.",
    labels=(*GPU_LABELS, "dtype"),
    source="data sheets, without sparsity",
    profile="full",
    collector="nvml",
    sheds="detail",
)
