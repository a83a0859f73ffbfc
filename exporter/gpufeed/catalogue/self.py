# SPDX-License-Identifier: Apache-2.0
"""gpufeed about itself: what it is, how its readers fare, what it costs, what it serves."""

from functools import partial
from typing import Final

from gpufeed.catalogue.define import MetricDef

TITLE: Final = "gpufeed itself"

_info = partial(MetricDef, type="info", unit="info", collector="self")
_gauge = partial(MetricDef, type="gauge", collector="self", profile="default")
_counter = partial(MetricDef, type="counter", collector="self", profile="default")

BUILD_INFO = _info(
    name="gpufeed_build_info",
    help="Which gpufeed this is. simulated is true where the node does not exist (gpufeed demo).",
    labels=("version", "revision", "python", "simulated"),
    source="the package",
    profile="minimal",
)

CONFIG_INFO = _info(
    name="gpufeed_config_info",
    help="Hash of the configuration in force: equal hashes, equal configurations.",
    labels=("hash",),
    source="the configuration",
    profile="default",
)

RULES_INFO = _info(
    name="gpufeed_rules_info",
    help="Hash of the alert conditions in force: compare it with the rules that Prometheus has.",
    labels=("hash",),
    source="the condition table",
    profile="default",
)

COLLECTOR_SUCCESS = _gauge(
    name="gpufeed_collector_success",
    unit="boolean",
    help="1: the collector's last read went well. 0: it failed, wholly or for a device.",
    labels=("collector",),
    source="the probe",
)

COLLECTOR_DURATION_SECONDS = _gauge(
    name="gpufeed_collector_duration_seconds",
    unit="seconds",
    help="How long the collector's last read took.",
    labels=("collector",),
    source="the probe",
)

COLLECTOR_LAST_SUCCESS_TIMESTAMP_SECONDS = _gauge(
    name="gpufeed_collector_last_success_timestamp_seconds",
    unit="timestamp_seconds",
    help="When the collector last read well, in seconds since 1970.",
    labels=("collector",),
    source="the probe",
)

COLLECTOR_ERRORS_TOTAL = _counter(
    name="gpufeed_collector_errors_total",
    unit="count",
    help="Reads, or devices of a read, that gave nothing, by reason.",
    labels=("collector", "reason"),
    source="the probe",
)

SAMPLE_AGE_SECONDS = _gauge(
    name="gpufeed_sample_age_seconds",
    unit="seconds",
    help="Age of the collector's newest reading. What is too old is not exported.",
    labels=("collector",),
    source="the probe",
    profile="minimal",
)

LANE_STUCK_SECONDS = _gauge(
    name="gpufeed_lane_stuck_seconds",
    unit="seconds",
    help="Since when one call has not come back, once that is too long; else 0. gpu and uuid are of GPU lanes only.",
    labels=("lane", "gpu", "uuid"),
    source="the probe",
    profile="minimal",
)

LANE_BUSY_SECONDS_TOTAL = _counter(
    name="gpufeed_lane_busy_seconds_total",
    unit="seconds",
    help="Time a lane spent reading.",
    labels=("lane",),
    source="the probe",
    profile="full",
    sheds="detail",
)

FAST_PERIOD_SECONDS = _gauge(
    name="gpufeed_fast_period_seconds",
    unit="seconds",
    help="Fast period of a lane in force. Profile default: lanes that are slower than configured, to keep cost down.",
    labels=("lane",),
    source="the cost governor",
    sheds="detail",
)

PROBE_UP = _gauge(
    name="gpufeed_probe_up",
    unit="boolean",
    help="1: the probe process sends frames. 0: nothing is measured at the moment.",
    source="the server",
    profile="minimal",
)

PROBE_RESTARTS_TOTAL = _counter(
    name="gpufeed_probe_restarts_total",
    unit="count",
    help="Times the probe process was replaced.",
    source="the server",
    profile="minimal",
)

PROBE_CPU_SECONDS_TOTAL = _counter(
    name="gpufeed_probe_cpu_seconds_total",
    unit="seconds",
    help="Processor time of the probe process; starts again with each probe.",
    source="the probe",
)

PROBE_RESIDENT_MEMORY_BYTES = _gauge(
    name="gpufeed_probe_resident_memory_bytes",
    unit="bytes",
    help="Memory of the probe process.",
    source="the probe",
)

PROBE_NVML_CALLS_TOTAL = _counter(
    name="gpufeed_probe_nvml_calls_total",
    unit="count",
    help="Driver calls made by the probe; starts again with each probe.",
    source="the probe",
)

PROBE_FIELD_VALUES_TOTAL = _counter(
    name="gpufeed_probe_field_values_total",
    unit="count",
    help="Field values asked of the driver, many in one call; starts again with each probe.",
    source="the probe",
)

PROBE_FILE_READS_TOTAL = _counter(
    name="gpufeed_probe_file_reads_total",
    unit="count",
    help="Files of /proc and /sys read by the probe; starts again with each probe.",
    source="the probe",
)

SERIES = _gauge(
    name="gpufeed_series",
    unit="count",
    help="Series of this exposition in the profile in force, after what was shed.",
    labels=("profile",),
    source="the encoder",
)

SERIES_SHED = _gauge(
    name="gpufeed_series_shed",
    unit="count",
    help="Series left out because there would be more than exposition.max_series, by group.",
    labels=("group",),
    source="the encoder",
)

SCRAPE_DURATION_SECONDS = MetricDef(
    name="gpufeed_scrape_duration_seconds",
    type="histogram",
    unit="seconds",
    help="Time to answer a scrape.",
    source="the web server",
    profile="default",
    collector="self",
    buckets=(0.001, 0.005, 0.025, 0.1, 0.5, 2.5),
)

CONFIG_LAST_RELOAD_SUCCESSFUL = _gauge(
    name="gpufeed_config_last_reload_successful",
    unit="boolean",
    help="1: the last configuration that was loaded is in force. 0: it was refused and the one before it is.",
    source="the configuration",
    profile="minimal",
)

CONFIG_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS = _gauge(
    name="gpufeed_config_last_reload_success_timestamp_seconds",
    unit="timestamp_seconds",
    help="When a configuration was last put in force, in seconds since 1970.",
    source="the configuration",
)

ALERTS = _gauge(
    name="gpufeed_alerts",
    unit="count",
    help="Alerts of this node's own evaluator that are pending or firing.",
    labels=("alertname", "severity", "state"),
    source="the local evaluator",
)

ALERT_SENDS_TOTAL = _counter(
    name="gpufeed_alert_sends_total",
    unit="count",
    help="Alerts posted to a receiver, each time counted: delivered, refused as they are, or failed and tried again.",
    labels=("receiver", "outcome"),
    source="the notifier",
)

ALERT_QUEUE_LENGTH = _gauge(
    name="gpufeed_alert_queue_length",
    unit="count",
    help="Alerts that wait to be sent to a receiver.",
    labels=("receiver",),
    source="the notifier",
)

ALERT_NOTIFICATIONS_DROPPED_TOTAL = _counter(
    name="gpufeed_alert_notifications_dropped_total",
    unit="count",
    help="Alerts given up because too many waited for a receiver that does not answer.",
    labels=("receiver",),
    source="the notifier",
)

CLOCK_OFFSET_SECONDS = _gauge(
    name="gpufeed_clock_offset_seconds",
    unit="seconds",
    help="Clock of a receiver of alerts less this node's, to a second or two. Times it is sent are corrected by it.",
    labels=("receiver",),
    source="the Date header of the receiver's answers",
)
