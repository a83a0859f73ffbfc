# SPDX-License-Identifier: Apache-2.0
"""NVLink as calls, link by link, and the fabric that the links of a node with switches belong to."""

import ctypes
from typing import Any, Final

import pynvml

from gpufeed.simulate.nvml.field import AMPERE, HOPPER, require_link
from gpufeed.simulate.nvml.library import (
    ARGUMENT_VERSION_MISMATCH,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    UINT,
    UINT_P,
    ULONGLONG_P,
    Gpu,
    Status,
    Table,
)
from gpufeed.simulate.nvml.link_fields import errors_of
from gpufeed.simulate.nvml.personality import FABRIC_V3_SINCE, version_of

TABLE: Final = Table()

_PEER_GPU: Final = 0
_PEER_SWITCH: Final = 2
_COUNTERS: Final = ("replay", "recovery", "crc_flit", "crc_data")
_COUNTERS_OF_HOPPER: Final = ("replay", "recovery", "crc", "crc")
_FABRIC_V2: Final = 0x0200_0024
_FABRIC_V3: Final = 0x0300_0028
_CLUSTER: Final = bytes(range(0x10, 0x20))


class OldFabricInfo(ctypes.Structure):
    """nvmlGpuFabricInfo_t."""

    _fields_ = (
        ("clusterUuid", ctypes.c_uint8 * 16),
        ("status", ctypes.c_uint),
        ("cliqueId", ctypes.c_uint),
        ("state", ctypes.c_uint8),
    )


class FabricInfo(ctypes.Structure):
    """nvmlGpuFabricInfo_v3_t; version 2 ends before the summary."""

    _fields_ = (
        ("version", ctypes.c_uint),
        ("clusterUuid", ctypes.c_uint8 * 16),
        ("status", ctypes.c_uint),
        ("cliqueId", ctypes.c_uint),
        ("state", ctypes.c_uint8),
        ("healthMask", ctypes.c_uint),
        ("healthSummary", ctypes.c_uint8),
    )


@TABLE.device("nvmlDeviceGetNvLinkState", UINT, UINT_P)
def _state(gpu: Gpu, link: int, out: Any) -> None:
    require_link(gpu, link)
    out[0] = int(link < gpu.moment.whole("links_up"))


@TABLE.device("nvmlDeviceGetNvLinkVersion", UINT, UINT_P)
def _version(gpu: Gpu, link: int, out: Any) -> None:
    require_link(gpu, link)
    out[0] = gpu.board.model.nvlink_version


@TABLE.device("nvmlDeviceGetNvLinkErrorCounter", UINT, UINT, ULONGLONG_P)
def _errors(gpu: Gpu, link: int, counter: int, out: Any) -> None:
    require_link(gpu, link)
    architecture = gpu.board.model.architecture
    if architecture > HOPPER or counter >= len(_COUNTERS):
        raise Status(NOT_SUPPORTED)
    kinds = _COUNTERS if architecture <= AMPERE else _COUNTERS_OF_HOPPER
    out[0] = errors_of(gpu, link, kinds[counter])


@TABLE.device("nvmlDeviceGetNvLinkRemoteDeviceType", UINT, UINT_P)
def _remote_type(gpu: Gpu, link: int, out: Any) -> None:
    _require_active(gpu, link)
    out[0] = _PEER_SWITCH if gpu.board.model.nvlink_peer == "switch" else _PEER_GPU


@TABLE.device("nvmlDeviceGetNvLinkRemotePciInfo_v2", UINT, ctypes.POINTER(pynvml.nvmlPciInfo_t))
def _remote_pci(gpu: Gpu, link: int, out: Any) -> None:
    _require_active(gpu, link)
    boards, info = gpu.face.boards, out.contents
    if gpu.board.model.nvlink_peer == "gpu":
        peer = boards[(gpu.index + 1 + link // 2) % len(boards)]
        info.busId = f"0000{peer.pci_bus_id}".upper().encode()
    elif gpu.board.model.architecture <= AMPERE:
        info.busId = f"00000000:{0xC4 + link % 6:02X}:00.0".encode()
    else:
        info.busId = b"FFFFFFFF:FF:FF.0"  # switches show themselves no more


@TABLE.device("nvmlDeviceGetGpuFabricInfo", ctypes.POINTER(OldFabricInfo))
def _old_fabric(gpu: Gpu, out: Any) -> None:
    if gpu.board.model.architecture < HOPPER:
        raise Status(NOT_SUPPORTED)
    out.contents.clusterUuid[:] = _CLUSTER
    out.contents.status = gpu.moment.whole("fabric_status")
    out.contents.cliqueId = 1
    out.contents.state = gpu.moment.whole("fabric_state")


@TABLE.device("nvmlDeviceGetGpuFabricInfoV", ctypes.POINTER(FabricInfo))
def _fabric(gpu: Gpu, out: Any) -> None:
    info, versions = out.contents, {_FABRIC_V2}
    if version_of(gpu.moment.header.driver_version) >= FABRIC_V3_SINCE:
        versions.add(_FABRIC_V3)
    if info.version not in versions:
        raise Status(ARGUMENT_VERSION_MISMATCH)
    if gpu.board.model.architecture < HOPPER:
        raise Status(NOT_SUPPORTED)
    info.clusterUuid[:] = _CLUSTER
    info.status = gpu.moment.whole("fabric_status")
    info.cliqueId = 1
    info.state = gpu.moment.whole("fabric_state")
    info.healthMask = gpu.moment.whole("fabric_health_mask")
    if info.version == _FABRIC_V3:
        info.healthSummary = gpu.moment.whole("fabric_health_summary")


def _require_active(gpu: Gpu, link: int) -> None:
    """What is at the other end of a link is known only while it is trained."""
    require_link(gpu, link)
    if link >= gpu.moment.whole("links_up"):
        raise Status(INVALID_ARGUMENT)
