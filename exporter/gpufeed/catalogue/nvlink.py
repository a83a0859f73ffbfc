# SPDX-License-Identifier: Apache-2.0
"""NVLink: the interconnect between the GPUs of a node."""

from functools import partial
from typing import Final

from gpufeed.catalogue.define import GPU_LABELS, MetricDef

TITLE: Final = "NVLink"

_gauge = partial(MetricDef, type="gauge", unit="count", collector="nvlink", labels=GPU_LABELS, profile="minimal")
_bytes = partial(MetricDef, type="counter", unit="bytes", collector="nvlink", labels=GPU_LABELS, profile="minimal")

NVLINK_RECEIVE_BYTES_TOTAL = _bytes(
    name="gpufeed_nvlink_receive_bytes_total",
    help="Data bytes received over all links of the GPU.",
    source="NVML field 139, scope all links",
)

NVLINK_TRANSMIT_BYTES_TOTAL = _bytes(
    name="gpufeed_nvlink_transmit_bytes_total",
    help="Data bytes sent over all links of the GPU.",
    source="NVML field 138, scope all links",
)

NVLINK_LINKS = _gauge(
    name="gpufeed_nvlink_links",
    help="Links that the board has. 0: a board without NVLink.",
    source="NVML field 91",
)

NVLINK_LINKS_UP = _gauge(
    name="gpufeed_nvlink_links_up",
    help="Links that are active.",
    source="nvmlDeviceGetNvLinkState",
)
