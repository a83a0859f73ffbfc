# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a GPU, on its PCIe and C2C links, and in the fabric it belongs to. Totals and parts are apart."""

from functools import partial
from typing import Final

from gpufeed.catalogue.define import GPU_LABELS, MetricDef

TITLE: Final = "GPU errors and fabric"

_gauge = partial(MetricDef, type="gauge", collector="nvml", labels=GPU_LABELS)
_counter = partial(MetricDef, type="counter", unit="count", collector="nvml")

GPU_ECC_VOLATILE_ERRORS_TOTAL = _counter(
    name="gpufeed_gpu_ecc_volatile_errors_total",
    help="ECC errors since the driver was loaded, corrected or uncorrected.",
    labels=(*GPU_LABELS, "type"),
    source="NVML fields 3, 4",
    profile="default",
)

GPU_ECC_AGGREGATE_ERRORS_TOTAL = _counter(
    name="gpufeed_gpu_ecc_aggregate_errors_total",
    help="ECC errors in the life of the board, corrected or uncorrected. Contains the volatile ones.",
    labels=(*GPU_LABELS, "type"),
    source="NVML fields 5, 6",
    profile="default",
)

GPU_ECC_VOLATILE_LOCATION_ERRORS_TOTAL = _counter(
    name="gpufeed_gpu_ecc_volatile_location_errors_total",
    help="ECC errors since the driver was loaded, by where they were.",
    labels=(*GPU_LABELS, "type", "location"),
    source="NVML fields 7 to 17, nvmlDeviceGetMemoryErrorCounter",
    profile="full",
    sheds="detail",
)

GPU_ECC_AGGREGATE_LOCATION_ERRORS_TOTAL = _counter(
    name="gpufeed_gpu_ecc_aggregate_location_errors_total",
    help="ECC errors in the life of the board, by where they were.",
    labels=(*GPU_LABELS, "type", "location"),
    source="NVML fields 18 to 28, nvmlDeviceGetMemoryErrorCounter",
    profile="full",
    sheds="detail",
)

GPU_SRAM_ECC_THRESHOLD_EXCEEDED = _gauge(
    name="gpufeed_gpu_sram_ecc_threshold_exceeded",
    unit="boolean",
    help="1: so many uncorrected errors were in the on-chip memory that the board is to be replaced.",
    source="nvmlDeviceGetSramEccErrorStatus; Ampere and newer, some drivers tell it to root only",
    profile="default",
)

GPU_REMAPPED_ROWS_TOTAL = _counter(
    name="gpufeed_gpu_remapped_rows_total",
    help="Memory rows replaced by spare ones, by the kind of error that made it needed. Ampere and newer.",
    labels=(*GPU_LABELS, "cause"),
    source="NVML fields 142, 143",
    profile="default",
)

GPU_ROW_REMAP_PENDING = _gauge(
    name="gpufeed_gpu_row_remap_pending",
    unit="boolean",
    help="1: a row is replaced with the next reset of the GPU.",
    source="NVML field 144",
    profile="default",
)

GPU_ROW_REMAP_FAILED = _gauge(
    name="gpufeed_gpu_row_remap_failed",
    unit="boolean",
    help="1: a row could not be replaced. The board is to be replaced.",
    source="NVML field 145",
    profile="default",
)

GPU_ROW_REMAP_BANKS = _gauge(
    name="gpufeed_gpu_row_remap_banks",
    unit="count",
    help="Memory banks by how many of their spare rows are left: max is all of them.",
    labels=(*GPU_LABELS, "availability"),
    source="nvmlDeviceGetRowRemapperHistogram",
    profile="full",
    sheds="detail",
)

GPU_RETIRED_PAGES = _gauge(
    name="gpufeed_gpu_retired_pages",
    unit="count",
    help="Memory pages taken out of use, by the kind of error that made it needed. Before Ampere.",
    labels=(*GPU_LABELS, "cause"),
    source="NVML fields 29, 30",
    profile="default",
)

GPU_RETIRED_PAGES_PENDING = _gauge(
    name="gpufeed_gpu_retired_pages_pending",
    unit="boolean",
    help="1: a page is taken out of use with the next reset of the GPU.",
    source="NVML field 31",
    profile="default",
)

GPU_PCIE_ERRORS_TOTAL = _counter(
    name="gpufeed_gpu_pcie_errors_total",
    help="Errors of the PCIe link by kind. Kinds overlap: do not add them up.",
    labels=(*GPU_LABELS, "type"),
    source="NVML fields 169, 173 to 183",
    profile="full",
    sheds="detail",
)

GPU_FABRIC_STATE = _gauge(
    name="gpufeed_gpu_fabric_state",
    unit="boolean",
    help="How far the GPU is in joining its NVLink fabric: the row in force, as 1. Only completed can be computed on.",
    labels=(*GPU_LABELS, "state"),
    source="nvmlDeviceGetGpuFabricInfoV",
    profile="default",
)

GPU_FABRIC_HEALTH = _gauge(
    name="gpufeed_gpu_fabric_health",
    unit="boolean",
    help="1: this trouble with the fabric is in force. 0: it is not. As gpufeed_gpu_health, 0 is well.",
    labels=(*GPU_LABELS, "aspect"),
    source="nvmlDeviceGetGpuFabricInfoV, health mask and summary",
    profile="full",
)

GPU_C2C_LINKS = _gauge(
    name="gpufeed_gpu_c2c_links",
    unit="count",
    help="Links to the processor on the same module. Only of boards that have some.",
    source="NVML field 170",
    profile="full",
    sheds="detail",
)

GPU_C2C_LINKS_UP = _gauge(
    name="gpufeed_gpu_c2c_links_up",
    unit="count",
    help="Links to the processor on the same module that are active.",
    source="NVML field 171",
    profile="full",
    sheds="detail",
)

GPU_C2C_SPEED_BYTES_PER_SECOND = _gauge(
    name="gpufeed_gpu_c2c_speed_bytes_per_second",
    unit="bytes_per_second",
    help="Speed of all active links to the processor together, as the driver reports it.",
    source="NVML field 172",
    profile="full",
    sheds="detail",
)

GPU_C2C_ERRORS_TOTAL = _counter(
    name="gpufeed_gpu_c2c_errors_total",
    help="Errors of the links to the processor by kind.",
    labels=(*GPU_LABELS, "type"),
    source="NVML fields 231 to 233",
    profile="full",
    sheds="detail",
)

FABRIC_STATES: Final = {1: "not_started", 2: "in_progress", 3: "completed"}
"""nvmlGpuFabricState_t; 0 is not supported and has no row. One that is completed without success is `failed`."""
