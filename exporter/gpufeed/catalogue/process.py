# SPDX-License-Identifier: Apache-2.0
"""The server process, under the names that every exporter uses for its own."""

from functools import partial
from typing import Final

from gpufeed.catalogue.define import MetricDef

TITLE: Final = "Server process"

_gauge = partial(MetricDef, type="gauge", collector="self", source="/proc/self", profile="default")

PROCESS_CPU_SECONDS_TOTAL = _gauge(
    name="process_cpu_seconds_total",
    type="counter",
    unit="seconds",
    help="Processor time used, user and system.",
)

PROCESS_RESIDENT_MEMORY_BYTES = _gauge(
    name="process_resident_memory_bytes",
    unit="bytes",
    help="Memory that is resident.",
)

PROCESS_VIRTUAL_MEMORY_BYTES = _gauge(
    name="process_virtual_memory_bytes",
    unit="bytes",
    help="Address space that is mapped.",
)

PROCESS_START_TIME_SECONDS = _gauge(
    name="process_start_time_seconds",
    unit="seconds",
    help="When the process started, in seconds since 1970.",
)

PROCESS_OPEN_FDS = _gauge(
    name="process_open_fds",
    unit="count",
    help="File descriptors that are open.",
)

PROCESS_MAX_FDS = _gauge(
    name="process_max_fds",
    unit="count",
    help="File descriptors that may be open at most.",
)
