# SPDX-License-Identifier: Apache-2.0
"""The names, types, labels and profiles that were promised, written a second time: a change here breaks users."""

import pytest

from gpufeed.catalogue import METRICS
from gpufeed.catalogue.define import PROFILES, SHED_ORDER, MetricDef

G = ("gpu", "uuid")
S = (*G, "gpu_instance", "compute_instance")
PORT = ("device", "port")
JOB = ("scheduler", "job_id", "step", "k8s_namespace", "k8s_pod")
TARGET = ("kind", "target")

# name without prefix: (type, labels, profile); counters end in _total, so their type need not be said
PROMISED: dict[str, tuple[str, tuple[str, ...], str]] = {
    "gpu_info": (
        "info",
        (*G, "name", "serial", "pci_bus_id", "minor", "architecture", "part_number", "vbios", "inforom", "numa_node",
         "module_id"),
        "m",
    ),
    "driver_info": ("info", ("driver_version", "nvml_version", "cuda_version"), "m"),
    "node_info": ("info", ("nodename", "machine_id", "boot_id", "product"), "m"),
    "gpus_expected": ("gauge", ("origin",), "m"),
    "gpus_present": ("gauge", (), "m"),
    "gpu_up": ("gauge", G, "m"),
    "gpu_state_seconds_total": ("counter", (*S, "state", "cause"), "m"),
    "gpu_tracked_seconds_total": ("counter", S, "m"),
    "gpu_utilization_ratio": ("gauge", G, "d"),
    "gpu_memory_utilization_ratio": ("gauge", G, "d"),
    "gpu_encoder_utilization_ratio": ("gauge", G, "f"),
    "gpu_decoder_utilization_ratio": ("gauge", G, "f"),
    "gpu_memory_total_bytes": ("gauge", S, "m"),
    "gpu_memory_used_bytes": ("gauge", S, "m"),
    "gpu_memory_reserved_bytes": ("gauge", S, "f"),
    "gpu_memory_free_bytes": ("gauge", S, "f"),
    "gpu_bar1_total_bytes": ("gauge", S, "f"),
    "gpu_bar1_used_bytes": ("gauge", S, "f"),
    "gpu_power_watts": ("gauge", G, "m"),
    "gpu_power_instant_watts": ("gauge", G, "f"),
    "gpu_power_limit_watts": ("gauge", (*G, "limit"), "d"),
    "gpu_energy_joules_total": ("counter", G, "m"),
    "gpu_temperature_celsius": ("gauge", (*G, "sensor"), "m"),
    "gpu_temperature_limit_celsius": ("gauge", (*G, "limit"), "f"),
    "gpu_temperature_margin_celsius": ("gauge", G, "d"),
    "gpu_clock_hertz": ("gauge", (*G, "domain"), "d"),
    "gpu_clock_max_hertz": ("gauge", (*G, "domain"), "d"),
    "gpu_clock_event_seconds_total": ("counter", (*G, "reason"), "d"),
    "gpu_clock_event_active": ("gauge", (*G, "reason"), "f"),
    "gpu_engine_active_seconds_total": ("counter", (*S, "engine"), "d"),
    "gpu_pipe_active_seconds_total": ("counter", (*S, "pipe"), "f"),
    "gpu_engine_active_ratio": ("gauge", (*S, "engine"), "f"),
    "gpu_sm_occupancy_ratio": ("gauge", S, "d"),
    "gpu_pcie_receive_bytes_total": ("counter", G, "d"),
    "gpu_pcie_transmit_bytes_total": ("counter", G, "d"),
    "gpu_pcie_link_generation": ("gauge", G, "d"),
    "gpu_pcie_link_width": ("gauge", G, "d"),
    "gpu_pcie_link_generation_max": ("gauge", G, "f"),
    "gpu_pcie_link_width_max": ("gauge", G, "f"),
    "gpu_pcie_replays_total": ("counter", G, "d"),
    "gpu_pcie_errors_total": ("counter", (*G, "type"), "f"),
    "gpu_performance_state": ("gauge", G, "f"),
    "gpu_persistence_enabled": ("gauge", G, "d"),
    "gpu_ecc_enabled": ("gauge", G, "d"),
    "gpu_mig_enabled": ("gauge", G, "d"),
    "gpu_compute_mode": ("gauge", G, "f"),
    "gpu_ecc_volatile_errors_total": ("counter", (*G, "type"), "d"),
    "gpu_ecc_aggregate_errors_total": ("counter", (*G, "type"), "d"),
    "gpu_ecc_volatile_location_errors_total": ("counter", (*G, "type", "location"), "f"),
    "gpu_ecc_aggregate_location_errors_total": ("counter", (*G, "type", "location"), "f"),
    "gpu_sram_ecc_threshold_exceeded": ("gauge", G, "d"),
    "gpu_remapped_rows_total": ("counter", (*G, "cause"), "d"),
    "gpu_row_remap_pending": ("gauge", G, "d"),
    "gpu_row_remap_failed": ("gauge", G, "d"),
    "gpu_row_remap_banks": ("gauge", (*G, "availability"), "f"),
    "gpu_retired_pages": ("gauge", (*G, "cause"), "d"),
    "gpu_retired_pages_pending": ("gauge", G, "d"),
    "gpu_fabric_state": ("gauge", (*G, "state"), "d"),
    "gpu_fabric_health": ("gauge", (*G, "aspect"), "f"),
    "gpu_recovery_action": ("gauge", (*G, "action"), "d"),
    "gpu_xid_class_errors_total": ("counter", (*G, "class"), "m"),
    "gpu_xid_errors_total": ("counter", (*G, "xid"), "d"),
    "gpu_xid_last_timestamp_seconds": ("gauge", (*G, "xid"), "d"),
    "gpu_processes": ("gauge", S, "d"),
    "gpu_in_use_recently": ("gauge", G, "m"),
    "host_in_use_recently": ("gauge", (), "m"),
    "gpu_job_info": (
        "info",
        (*G, "gpu_instance", "scheduler", "job_id", "step", "k8s_namespace", "k8s_pod", "k8s_container", "shared",
         "user"),
        "d",
    ),
    "gpu_storage_info": ("info", (*G, "gpu_instance", "kind", "target"), "d"),
    "gpu_nic_info": ("info", (*G, "device", "port", "netdev", "path"), "d"),
    "gpu_allocated": ("gauge", G, "d"),
    "job_pressure_waiting_seconds_total": ("counter", (*JOB, "resource"), "d"),
    "job_pressure_stalled_seconds_total": ("counter", (*JOB, "resource"), "d"),
    "job_cpu_seconds_total": ("counter", JOB, "d"),
    "job_cpu_throttled_seconds_total": ("counter", JOB, "d"),
    "job_cpu_throttled_periods_total": ("counter", JOB, "d"),
    "job_read_call_bytes_total": ("counter", JOB, "d"),
    "job_block_read_bytes_total": ("counter", JOB, "d"),
    "job_context_switches_total": ("counter", (*JOB, "kind"), "d"),
    "job_model_flops_total": ("counter", JOB, "d"),
    "job_model_flops_utilization_ratio": ("gauge", JOB, "d"),
    "job_data_wait_seconds_total": ("counter", JOB, "d"),
    "job_threads": ("gauge", (*JOB, "state"), "d"),
    "job_busiest_thread_ratio": ("gauge", JOB, "d"),
    "nvlink_receive_bytes_total": ("counter", G, "m"),
    "nvlink_transmit_bytes_total": ("counter", G, "m"),
    "nvlink_links": ("gauge", G, "m"),
    "nvlink_links_up": ("gauge", G, "m"),
    "nvlink_errors_total": ("counter", (*G, "type"), "d"),
    "nvlink_up": ("gauge", (*G, "link"), "d"),
    "nvlink_link_receive_bytes_total": ("counter", (*G, "link"), "f"),
    "nvlink_link_transmit_bytes_total": ("counter", (*G, "link"), "f"),
    "nvlink_link_errors_total": ("counter", (*G, "link", "type"), "d"),
    "nvlink_speed_bytes_per_second": ("gauge", (*G, "link"), "f"),
    "nvlink_bit_error_ratio": ("gauge", (*G, "link", "type"), "f"),
    "nvlink_info": ("info", (*G, "link", "version", "remote_type", "remote_pci_bus_id"), "f"),
    "ib_info": (
        "info", ("device", "board_id", "firmware", "hca_type", "node_guid", "pci_bus_id", "numa_node"), "d",
    ),
    "ib_port_info": ("info", (*PORT, "link_layer", "lid", "speed", "netdev"), "d"),
    "ib_port_state_id": ("gauge", PORT, "m"),
    "ib_port_physical_state_id": ("gauge", PORT, "m"),
    "ib_port_rate_bytes_per_second": ("gauge", PORT, "m"),
    "ib_port_width": ("gauge", PORT, "m"),
    "ib_port_receive_bytes_total": ("counter", PORT, "m"),
    "ib_port_transmit_bytes_total": ("counter", PORT, "m"),
    "ib_port_receive_packets_total": ("counter", PORT, "f"),
    "ib_port_transmit_packets_total": ("counter", PORT, "f"),
    "ib_port_transmit_wait_ticks_total": ("counter", PORT, "d"),
    "ib_port_errors_total": ("counter", (*PORT, "type"), "d"),
    "ib_port_hw_events_total": ("counter", (*PORT, "event"), "d"),
    "ib_port_saturated_counters": ("gauge", PORT, "d"),
    "ib_port_saturated": ("gauge", (*PORT, "counter"), "f"),
    "ib_port_flaps_total": ("counter", PORT, "m"),
    "net_info": ("info", ("device", "driver", "pci_bus_id", "numa_node", "bond"), "d"),
    "net_up": ("gauge", ("device",), "d"),
    "net_speed_bytes_per_second": ("gauge", ("device",), "d"),
    "net_carrier_changes_total": ("counter", ("device",), "d"),
    "net_receive_bytes_total": ("counter", ("device",), "d"),
    "net_transmit_bytes_total": ("counter", ("device",), "d"),
    "net_errors_total": ("counter", ("device", "type"), "d"),
    "net_events_total": ("counter", ("device", "event"), "d"),
    "net_pause_seconds_total": ("counter", ("device", "direction"), "d"),
    "net_priority_pause_seconds_total": ("counter", ("device", "direction", "priority"), "f"),
    "net_pci_stall_ratio": ("gauge", ("device", "direction"), "d"),
    "storage_info": (
        "info", (*TARGET, "source", "fstype", "vers", "proto", "nconnect", "rsize", "wsize", "ro"), "d",
    ),
    "storage_read_bytes_total": ("counter", TARGET, "m"),
    "storage_write_bytes_total": ("counter", TARGET, "m"),
    "storage_application_read_bytes_total": ("counter", TARGET, "f"),
    "storage_reads_total": ("counter", TARGET, "d"),
    "storage_writes_total": ("counter", TARGET, "d"),
    "storage_read_seconds_total": ("counter", TARGET, "d"),
    "storage_write_seconds_total": ("counter", TARGET, "d"),
    "storage_operations_total": ("counter", (*TARGET, "operation"), "f"),
    "storage_operation_seconds_total": ("counter", (*TARGET, "operation"), "f"),
    "storage_queue_seconds_total": ("counter", TARGET, "d"),
    "storage_busy_seconds_total": ("counter", TARGET, "d"),
    "storage_inflight": ("gauge", TARGET, "f"),
    "storage_retransmits_total": ("counter", TARGET, "d"),
    "storage_timeouts_total": ("counter", TARGET, "d"),
    "storage_errors_total": ("counter", TARGET, "d"),
    "pressure_waiting_seconds_total": ("counter", ("resource",), "d"),
    "pressure_stalled_seconds_total": ("counter", ("resource",), "d"),
    "pressure_available": ("gauge", ("resource",), "d"),
    "host_cpu_seconds_total": ("counter", ("mode",), "d"),
    "host_memory_total_bytes": ("gauge", (), "d"),
    "host_memory_available_bytes": ("gauge", (), "d"),
    "host_blocked_tasks": ("gauge", (), "d"),
    "gpu_stall_seconds": ("histogram", ("cause",), "d"),
    "layer_busy_seconds_total": ("counter", ("layer",), "d"),
    "layer_demand_bytes_per_second": ("gauge", ("layer",), "d"),
    "layer_capacity_bytes_per_second": ("gauge", ("layer",), "d"),
    "layer_headroom_ratio": ("gauge", ("layer",), "d"),
    "layer_gpus_supportable": ("gauge", ("layer",), "d"),
    "layer_capacity_origin_info": ("info", ("layer", "origin"), "d"),
    "storage_capacity_bytes_per_second": ("gauge", (*TARGET, "direction"), "d"),
    "storage_capacity_origin_info": ("info", (*TARGET, "direction", "origin"), "d"),
    "gpu_straggler_score": ("gauge", G, "d"),
    "gpu_tensor_intensity_ratio": ("gauge", G, "d"),
    "gpu_peak_flops_per_second": ("gauge", (*G, "dtype"), "f"),
    "gpu_attribution_confidence_ratio": ("gauge", S, "d"),
    "attribution_input_available": ("gauge", ("input",), "d"),
    "attribution_decided_timestamp_seconds": ("gauge", (), "d"),
    "gpu_health": ("gauge", (*G, "check"), "m"),
    "ib_health": ("gauge", (*PORT, "check"), "m"),
    "storage_health": ("gauge", (*TARGET, "check"), "d"),
    "host_health": ("gauge", ("check",), "m"),
    "self_health": ("gauge", ("check",), "m"),
    "maintenance": ("gauge", (), "m"),
    "build_info": ("info", ("version", "revision", "python", "simulated"), "m"),
    "config_info": ("info", ("hash",), "d"),
    "rules_info": ("info", ("hash",), "d"),
    "collector_success": ("gauge", ("collector",), "d"),
    "collector_duration_seconds": ("gauge", ("collector",), "d"),
    "collector_last_success_timestamp_seconds": ("gauge", ("collector",), "d"),
    "collector_errors_total": ("counter", ("collector", "reason"), "d"),
    "lane_stuck_seconds": ("gauge", ("lane", "gpu", "uuid"), "m"),
    "fast_period_seconds": ("gauge", ("lane",), "d"),
    "probe_up": ("gauge", (), "m"),
    "probe_restarts_total": ("counter", (), "m"),
    "sample_age_seconds": ("gauge", ("collector",), "m"),
    "series": ("gauge", ("profile",), "d"),
    "series_shed": ("gauge", ("group",), "d"),
    "scrape_duration_seconds": ("histogram", (), "d"),
    "config_last_reload_successful": ("gauge", (), "m"),
    "config_last_reload_success_timestamp_seconds": ("gauge", (), "d"),
    "alerts": ("gauge", ("alertname", "severity", "state"), "d"),
    "alert_sends_total": ("counter", ("receiver", "outcome"), "d"),
    "alert_queue_length": ("gauge", ("receiver",), "d"),
    "alert_notifications_dropped_total": ("counter", ("receiver",), "d"),
    "clock_offset_seconds": ("gauge", ("receiver",), "d"),
}  # fmt: skip

BEYOND_THE_PROMISE = {
    "lane_busy_seconds_total", "probe_cpu_seconds_total", "probe_resident_memory_bytes", "probe_nvml_calls_total",
    "probe_field_values_total", "probe_file_reads_total", "gpu_temperature_limit_margin_celsius", "gpu_c2c_links",
    "gpu_c2c_links_up", "gpu_c2c_speed_bytes_per_second", "gpu_c2c_errors_total", "job_reports_refused_total",
}  # fmt: skip

STANDARD_OF_A_PROCESS = {
    "process_cpu_seconds_total", "process_resident_memory_bytes", "process_virtual_memory_bytes",
    "process_start_time_seconds", "process_open_fds", "process_max_fds",
}  # fmt: skip

# metric, a label, values that profile default has, one that only full has
ROWS = (
    ("gpu_power_limit_watts", "limit", ("enforced",), "default", "default", "full"),
    ("gpu_clock_hertz", "domain", ("sm", "memory"), "graphics", "default", "full"),
    ("gpu_clock_max_hertz", "domain", ("sm", "memory"), "graphics", "default", "full"),
    ("ib_port_errors_total", "type", ("symbol_error", "link_downed"), "VL15_dropped", "default", "full"),
    ("ib_port_hw_events_total", "event", ("packet_seq_err",), "resp_cqe_error", "default", "full"),
    ("net_events_total", "event", ("rx_discards_phy", "rx_dropped.nic"), "rx_prio3_pause", "default", "full"),
    ("storage_read_bytes_total", "kind", ("nfs", "lustre", "weka"), "block", "minimal", "default"),
    ("storage_write_bytes_total", "kind", ("nfs", "lustre", "weka"), "block", "minimal", "default"),
)


@pytest.mark.parametrize("name", PROMISED)
def test_a_promised_metric_has_its_type_labels_and_profile(name: str) -> None:
    definition = METRICS[f"gpufeed_{name}"]
    kind, labels, profile = PROMISED[name]
    assert (definition.type, definition.labels, definition.profile[0]) == (kind, labels, profile)


def test_there_is_nothing_that_was_not_promised() -> None:
    names = {f"gpufeed_{name}" for name in {*PROMISED, *BEYOND_THE_PROMISE}}
    assert set(METRICS) == names | STANDARD_OF_A_PROCESS


@pytest.mark.parametrize(("name", "label", "usual", "rare", "profile", "wider"), ROWS)
def test_some_rows_are_in_a_wider_profile_than_their_metric(
    name: str, label: str, usual: tuple[str, ...], rare: str, profile: str, wider: str
) -> None:
    definition = METRICS[f"gpufeed_{name}"]

    def row(value: str) -> tuple[str, ...]:
        return tuple(value if other == label else "x" for other in definition.labels)

    assert {definition.profile_of(row(value)) for value in usual} == {profile}
    assert definition.profile_of(row(rare)) == wider


def test_all_other_rows_are_in_the_profile_of_their_metric() -> None:
    ruled = {f"gpufeed_{name}" for name, *_ in ROWS}
    assert {name for name, definition in METRICS.items() if definition.row_profile} == ruled


def test_a_row_of_storage_belongs_to_the_collector_of_its_kind() -> None:
    assert METRICS["gpufeed_storage_reads_total"].collector_of(("nfs", "/data")) == "nfs"
    assert METRICS["gpufeed_gpu_up"].collector_of(("0", "GPU-0")) == "nvml"


def test_state_health_and_xids_are_never_shed() -> None:
    kept = ("gpu_state", "gpu_tracked", "_health", "xid", "gpu_up", "lane_stuck", "gpus_", "nvlink_", "_info")
    for definition in METRICS.values():
        if definition.sheds == "link":
            assert "link" in definition.labels, definition.name
        elif definition.sheds and definition.sheds != "mount":
            assert not any(word in definition.name for word in kept), definition.name
            assert definition.profile != "minimal", definition.name
    assert METRICS["gpufeed_storage_health"].sheds == ""


def test_per_link_per_operation_and_disk_detail_goes_first() -> None:
    assert list(SHED_ORDER)[:3] == ["link", "operation", "disk"]


def test_profiles_grow() -> None:
    assert PROFILES == ("minimal", "default", "full")


@pytest.mark.parametrize("definition", METRICS.values(), ids=lambda definition: definition.name)
def test_a_definition_can_stand_in_a_table_and_on_a_line(definition: MetricDef) -> None:
    assert not set("|\n\r") & set(definition.help + definition.source)
    assert definition.source
    assert definition.help[0].isupper() or definition.help[0].isdigit() or definition.help.startswith("gpufeed")
