# SPDX-License-Identifier: Apache-2.0
"""What is derived: where each GPU's time went, how sure we are, and whether things are well."""

from functools import partial
from typing import Final

from gpufeed.catalogue.define import GPU_LABELS, SLICE_LABELS, MetricDef
from gpufeed.catalogue.fabric import PORT_LABELS
from gpufeed.catalogue.storage import STORAGE_LABELS
from gpufeed.model.state import StateCause

TITLE: Final = "Signals and health"

STATES_FROM_THE_START: Final = (
    StateCause("busy", "tensor"), StateCause("busy", "memory"), StateCause("busy", "other"),
    StateCause("communicating", "nvlink"), StateCause("communicating", "fabric"),
    StateCause("starved", "storage"), StateCause("starved", "host_cpu"), StateCause("starved", "unknown"),
    StateCause("idle_held", ""), StateCause("idle_free", ""),
)  # fmt: skip
"""Pairs that every GPU has at once, so that rate() sees their first second; others appear when they are first met."""

GPU_STATE_SECONDS_TOTAL = MetricDef(
    name="gpufeed_gpu_state_seconds_total",
    type="counter",
    unit="seconds",
    help="Where the GPU's time went. Every decided second is in exactly one row: "
    "the sum over state and cause is gpufeed_gpu_tracked_seconds_total.",
    labels=(*SLICE_LABELS, "state", "cause"),
    source="attribution",
    profile="minimal",
    collector="nvml",
)

GPU_TRACKED_SECONDS_TOTAL = MetricDef(
    name="gpufeed_gpu_tracked_seconds_total",
    type="counter",
    unit="seconds",
    help="Time since the GPU was first seen, as far as it is decided.",
    labels=SLICE_LABELS,
    source="attribution",
    profile="minimal",
    collector="nvml",
)

GPU_ATTRIBUTION_CONFIDENCE_RATIO = MetricDef(
    name="gpufeed_gpu_attribution_confidence_ratio",
    type="gauge",
    unit="ratio",
    help="How far the evidence for the present state outweighs the next best explanation.",
    labels=SLICE_LABELS,
    source="attribution",
    profile="default",
    collector="nvml",
    stability="experimental",
)

ATTRIBUTION_INPUT_AVAILABLE = MetricDef(
    name="gpufeed_attribution_input_available",
    type="gauge",
    unit="boolean",
    help="1: this input can be read, for at least one device. 0: what it would tell is unknown.",
    labels=("input",),
    source="capability checks of the sources",
    profile="default",
    collector="self",
)

ATTRIBUTION_DECIDED_TIMESTAMP_SECONDS = MetricDef(
    name="gpufeed_attribution_decided_timestamp_seconds",
    type="gauge",
    unit="timestamp_seconds",
    help="Up to when all time is decided, in seconds since 1970. Lags by up to three seconds on purpose.",
    source="attribution",
    profile="default",
    collector="self",
)

_health = partial(MetricDef, type="gauge", unit="id", source="health checks", profile="minimal")

GPU_HEALTH = _health(
    name="gpufeed_gpu_health",
    help="Verdict of one check on one GPU: 0 ok, 1 degraded, 2 failed. 1 and 2 stay until cleared.",
    labels=(*GPU_LABELS, "check"),
    collector="nvml",
)

IB_HEALTH = _health(
    name="gpufeed_ib_health",
    help="Verdict of one check on one port: 0 ok, 1 degraded, 2 failed. 1 and 2 stay until cleared.",
    labels=(*PORT_LABELS, "check"),
    collector="infiniband",
)

STORAGE_HEALTH = _health(
    name="gpufeed_storage_health",
    help="Verdict of one check on one storage target: 0 ok, 1 degraded, 2 failed. 1 and 2 stay until cleared.",
    labels=(*STORAGE_LABELS, "check"),
    profile="default",
    collector="block",
    collector_label="kind",
)

HOST_HEALTH = _health(
    name="gpufeed_host_health",
    help="Verdict of one check on the host: 0 ok, 1 degraded, 2 failed. 1 and 2 stay until cleared.",
    labels=("check",),
    collector="host",
)

SELF_HEALTH = _health(
    name="gpufeed_self_health",
    help="Verdict of one check on gpufeed itself: 0 ok, 1 degraded, 2 failed.",
    labels=("check",),
    collector="self",
)

MAINTENANCE = MetricDef(
    name="gpufeed_maintenance",
    type="gauge",
    unit="boolean",
    help="1: somebody declared this node under maintenance.",
    source="control socket",
    profile="minimal",
    collector="self",
)
