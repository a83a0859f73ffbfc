# SPDX-License-Identifier: Apache-2.0
"""What each XID means, as data: its class, how it weighs on the GPU's health, and what to do first.

Classes follow what a person has to do, not which unit reported. Sources: NVIDIA's published XID catalogue in its
immediate-action and investigation columns, and the public health checkers of large fleets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

XidWord = Literal["unusable", "contained", "app", "link", "info"]

DOUBLE_BIT_ERROR: Final = 48
"""Fatal, unless the driver reports within a minute that it contained the error."""
CONTAINED_ERROR: Final = 94
"""The companion of 48 that says so: only the application that used the memory dies."""


@dataclass(frozen=True, slots=True)
class XidClass:
    """How an XID is counted and answered. `level` is what it does to the GPU's health until a reset: 0, 1 or 2."""

    word: XidWord
    level: Literal[0, 1, 2]
    meaning: str
    action: str  # app, gpu_reset, node_reboot, drain, replace, tune, investigate


def classify(xid: int) -> XidClass:
    """The class of an XID; one that is not in the catalogue is `info`, and says that it is not."""
    return XIDS.get(xid, UNLISTED)


UNLISTED: Final = XidClass("info", 0, "not in the catalogue of this version", "investigate")


def _unusable(meaning: str, action: str = "gpu_reset") -> XidClass:
    return XidClass("unusable", 2, meaning, action)


def _contained(meaning: str, action: str = "gpu_reset") -> XidClass:
    return XidClass("contained", 1, meaning, action)


def _handled(meaning: str) -> XidClass:
    return XidClass("contained", 0, meaning, "investigate")


def _app(meaning: str) -> XidClass:
    return XidClass("app", 0, meaning, "app")


def _link(meaning: str, action: str = "investigate") -> XidClass:
    return XidClass("link", 1, meaning, action)


def _info(meaning: str, action: str = "investigate") -> XidClass:
    return XidClass("info", 0, meaning, action)


def _wear(meaning: str, action: str = "investigate") -> XidClass:
    return XidClass("info", 1, meaning, action)


_COPY_ENGINE: Final = _app("copy engine exception")
_NVLINK5: Final = _link("NVLink 5 unit error; how severe stands in its decode table, not in its number")
_RETIRED_CODE: Final = _info("code of older parts, unused since Ampere")

XIDS: Final[Mapping[int, XidClass]] = MappingProxyType(
    {
        8: _app("a channel made no progress"),
        11: _app("corrupt command stream"),
        13: _app("exception in the compute or graphics engine, often an access out of bounds"),
        25: _app("corrupt command stream"),
        31: _app("page fault by a GPU context"),
        32: _app("corrupt command stream"),
        37: _info("front-end microcontroller firmware error"),
        38: _info("front-end microcontroller firmware error"),
        **dict.fromkeys((39, 40, 41, 70, 71, 72, 75, 76, 77), _COPY_ENGINE),
        43: _app("a context was stopped after a fault of its software; the GPU is well"),
        44: _info("engine fault during a context switch"),
        45: _app("channel removed because of an earlier error, or because its application ended"),
        46: _unusable("the GPU stopped making progress"),
        DOUBLE_BIT_ERROR: _unusable("double-bit memory error that was not contained"),
        54: _wear("auxiliary power is not connected"),
        **dict.fromkeys((56, 57, 58, 65, 73, 81), _RETIRED_CODE),
        60: _info("video engine exception", "app"),
        61: _wear("internal microcontroller breakpoint"),
        62: _unusable("internal microcontroller halt"),
        63: _handled("row remap or page retirement recorded"),
        64: _unusable("row remap or page retirement failed", "replace"),
        66: _info("illegal access by the driver"),
        67: _info("illegal access by the driver"),
        68: _app("video engine exception"),
        69: _app("graphics class error"),
        74: _link("NVLink error"),
        78: _info("virtual GPU did not start"),
        79: _unusable("the GPU has fallen off the bus", "node_reboot"),
        80: _app("corrupt data was sent to the GPU"),
        88: _info("video engine exception", "app"),
        89: _info("video engine exception", "app"),
        92: _contained("high rate of single-bit memory errors", "investigate"),
        93: _handled("write wear limit of the board's information ROM"),
        CONTAINED_ERROR: _contained("contained memory error: only the application that met it dies"),
        95: _unusable("uncontained memory error: every application on the GPU is affected"),
        96: _info("video engine exception", "app"),
        97: _info("video engine exception", "app"),
        109: _unusable("context switch timeout"),
        110: _unusable("security fault"),
        119: _unusable("the GPU's system processor did not answer a call"),
        120: _unusable("the GPU's system processor failed"),
        121: _contained("correctable error of the link to the CPU", "investigate"),
        122: _info("reading the board's flash failed"),
        123: _info("writing the board's flash failed"),
        124: _info("erasing the board's flash failed"),
        125: _info("file system error in the board's information ROM"),
        **dict.fromkeys(range(126, 135), _COPY_ENGINE),
        136: _unusable("link training failed"),
        137: XidClass(
            "link", 0, "NVLink access was refused, often after an application failed at the other end", "app"
        ),
        140: _unusable("unrecovered memory error"),
        141: _info("fast path error"),
        143: _unusable("the GPU could not be initialised"),
        **dict.fromkeys(range(144, 151), _NVLINK5),
        151: _wear("key rotation error of confidential computing", "node_reboot"),
        154: _info("the recovery action the GPU asks for has changed"),
        155: _link("NVLink error reported by software", "gpu_reset"),
        156: _contained("a unit of the GPU was retired"),
        157: _contained("retiring a unit of the GPU failed", "investigate"),
        158: _unusable("fatal timeout of the GPU"),
        159: _link("error of the coherent link to the CPU"),
        160: _handled("a channel was retired"),
        161: _contained("retiring a channel failed", "investigate"),
        162: _info("power smoothing hardware engaged again"),
        163: _info("power smoothing hardware disengaged"),
        164: _wear("power smoothing hardware nears the end of its life", "replace"),
        165: _wear("power smoothing hardware is worn out", "replace"),
        166: _wear("secure NVLink error"),
        167: _unusable("fatal PCIe timeout", "node_reboot"),
        168: _contained("memory capacity reduced after errors"),
        169: _wear("security microcontroller halt"),
        170: _wear("secure NVLink error"),
        171: _info("detail of a double-bit error: in device memory"),
        172: _info("detail of a double-bit error: inside the chip"),
    }
)
