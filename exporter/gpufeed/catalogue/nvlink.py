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
    source="NVML field 139, scope all links; 204 of each link since NVLink 5",
)

NVLINK_TRANSMIT_BYTES_TOTAL = _bytes(
    name="gpufeed_nvlink_transmit_bytes_total",
    help="Data bytes sent over all links of the GPU.",
    source="NVML field 138, scope all links; 202 of each link since NVLink 5",
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

NVLINK_ERRORS_TOTAL = MetricDef(
    name="gpufeed_nvlink_errors_total",
    type="counter",
    unit="count",
    help="Errors of all links of the GPU, by kind as its generation counts them. Kinds overlap: do not add them up.",
    labels=(*GPU_LABELS, "type"),
    source="NVML fields 32 to 59, 96 to 119 (until Ampere), 161 to 163 (Hopper), 206 to 221 (Blackwell)",
    profile="default",
    collector="nvlink",
)

_LINK_LABELS = (*GPU_LABELS, "link")
_of_link = partial(MetricDef, collector="nvlink", labels=_LINK_LABELS, sheds="link")

NVLINK_UP = _of_link(
    name="gpufeed_nvlink_up",
    type="gauge",
    unit="boolean",
    help="1: the link is trained. It may still lead nowhere: see gpufeed_gpu_fabric_state. Default: links not up only.",
    source="NVML field 165, nvmlDeviceGetNvLinkState",
    profile="default",
)

NVLINK_LINK_ERRORS_TOTAL = _of_link(
    name="gpufeed_nvlink_link_errors_total",
    type="counter",
    unit="count",
    help="Errors of one link by kind. Default: only what is above zero.",
    labels=(*_LINK_LABELS, "type"),
    source="as gpufeed_nvlink_errors_total",
    profile="default",
)

NVLINK_LINK_RECEIVE_BYTES_TOTAL = _of_link(
    name="gpufeed_nvlink_link_receive_bytes_total",
    type="counter",
    unit="bytes",
    help="Data bytes received over one link.",
    source="NVML field 139; 204 since NVLink 5",
    profile="full",
)

NVLINK_LINK_TRANSMIT_BYTES_TOTAL = _of_link(
    name="gpufeed_nvlink_link_transmit_bytes_total",
    type="counter",
    unit="bytes",
    help="Data bytes sent over one link.",
    source="NVML field 138; 202 since NVLink 5",
    profile="full",
)

NVLINK_SPEED_BYTES_PER_SECOND = _of_link(
    name="gpufeed_nvlink_speed_bytes_per_second",
    type="gauge",
    unit="bytes_per_second",
    help="Speed of one direction of a link, as the driver reports it.",
    source="NVML field 164",
    profile="full",
)

NVLINK_BIT_ERROR_RATIO = _of_link(
    name="gpufeed_nvlink_bit_error_ratio",
    type="gauge",
    unit="ratio",
    help="Bits in error per bit received on a link: effective (behind error correction) or of symbols. Blackwell on.",
    labels=(*_LINK_LABELS, "type"),
    source="NVML fields 220, 222, unpacked",
    profile="full",
)

NVLINK_INFO = _of_link(
    name="gpufeed_nvlink_info",
    type="info",
    unit="info",
    help="What a link is and where it leads. Switches of recent systems do not show their PCI address.",
    labels=(*_LINK_LABELS, "version", "remote_type", "remote_pci_bus_id"),
    source="NVML field 166, nvmlDeviceGetNvLinkRemoteDeviceType, nvmlDeviceGetNvLinkRemotePciInfo_v2",
    profile="full",
)
