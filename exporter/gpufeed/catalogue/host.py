# SPDX-License-Identifier: Apache-2.0
"""The host around the GPUs: pressure, processors, memory."""

from functools import partial
from typing import Final

from gpufeed.catalogue.define import MetricDef

TITLE: Final = "Host"

NODE_INFO = MetricDef(
    name="gpufeed_node_info",
    type="info",
    unit="info",
    help="The machine.",
    labels=("nodename", "machine_id", "boot_id", "product"),
    source="/proc/sys/kernel, /etc/machine-id, /sys/class/dmi/id",
    profile="minimal",
    collector="host",
)

_pressure = partial(MetricDef, collector="pressure", labels=("resource",), profile="default")

PRESSURE_WAITING_SECONDS_TOTAL = _pressure(
    name="gpufeed_pressure_waiting_seconds_total",
    type="counter",
    unit="seconds",
    help="Time in which some task waited for the resource.",
    source="/proc/pressure, the some line",
)

PRESSURE_STALLED_SECONDS_TOTAL = _pressure(
    name="gpufeed_pressure_stalled_seconds_total",
    type="counter",
    unit="seconds",
    help="Time in which all tasks that were not idle waited for the resource.",
    source="/proc/pressure, the full line",
)

PRESSURE_AVAILABLE = _pressure(
    name="gpufeed_pressure_available",
    type="gauge",
    unit="boolean",
    help="1: this kernel measures pressure of the resource. 0: it does not, or will not let us read it.",
    source="/proc/pressure",
)

_host = partial(MetricDef, type="gauge", collector="host", profile="default")

HOST_CPU_SECONDS_TOTAL = _host(
    name="gpufeed_host_cpu_seconds_total",
    type="counter",
    unit="seconds",
    help="Processor time of the whole node by mode, added up over all processors.",
    labels=("mode",),
    source="/proc/stat",
)

HOST_MEMORY_TOTAL_BYTES = _host(
    name="gpufeed_host_memory_total_bytes",
    unit="bytes",
    help="Memory of the node.",
    source="/proc/meminfo MemTotal",
)

HOST_MEMORY_AVAILABLE_BYTES = _host(
    name="gpufeed_host_memory_available_bytes",
    unit="bytes",
    help="Memory that could be had without swapping.",
    source="/proc/meminfo MemAvailable",
)

HOST_BLOCKED_TASKS = _host(
    name="gpufeed_host_blocked_tasks",
    unit="count",
    help="Tasks that wait uninterruptibly, mostly for input and output.",
    source="/proc/stat procs_blocked",
)

HOST_IN_USE_RECENTLY = _host(
    name="gpufeed_host_in_use_recently",
    unit="boolean",
    help="1: a process held any GPU of the node within the last 15 minutes.",
    source="process lists, remembered",
    profile="minimal",
)
