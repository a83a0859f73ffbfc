# SPDX-License-Identifier: Apache-2.0
"""Where a GPU slows down and stops, and the modes it is in."""

from functools import partial
from typing import Final

from gpufeed.catalogue.define import GPU_LABELS, MetricDef

TITLE: Final = "GPU limits and modes"

_gauge = partial(MetricDef, type="gauge", collector="nvml", labels=GPU_LABELS, sheds="detail")

GPU_TEMPERATURE_MARGIN_CELSIUS = _gauge(
    name="gpufeed_gpu_temperature_margin_celsius",
    unit="celsius",
    help="Degrees left until the GPU slows down, over all its sensors. The nearest thing to a measure of cooling.",
    source="nvmlDeviceGetMarginTemperature; Ada and newer, driver 570",
    profile="default",
)

GPU_TEMPERATURE_LIMIT_CELSIUS = _gauge(
    name="gpufeed_gpu_temperature_limit_celsius",
    unit="celsius",
    help="Temperature at which the GPU slows down, shuts down, or is held back. Before Ada only.",
    labels=(*GPU_LABELS, "limit"),
    source="nvmlDeviceGetTemperatureThreshold",
    profile="full",
)

GPU_TEMPERATURE_LIMIT_MARGIN_CELSIUS = _gauge(
    name="gpufeed_gpu_temperature_limit_margin_celsius",
    unit="celsius",
    help="Margin, mostly below zero, at which the GPU slows down, shuts down, or is held back. Since Ada only.",
    labels=(*GPU_LABELS, "limit"),
    source="NVML fields 193 to 196 (T.Limit)",
    profile="full",
)

GPU_PERFORMANCE_STATE = _gauge(
    name="gpufeed_gpu_performance_state",
    unit="id",
    help="Performance state: 0 is the fastest, 15 the slowest.",
    source="nvmlDeviceGetPerformanceState",
    profile="full",
)

GPU_COMPUTE_MODE = _gauge(
    name="gpufeed_gpu_compute_mode",
    unit="id",
    help="Who may compute: 0 anyone, 2 no one, 3 one process at a time.",
    source="nvmlDeviceGetComputeMode",
    profile="full",
)
