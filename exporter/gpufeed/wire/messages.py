# SPDX-License-Identifier: Apache-2.0
"""Every message between server and probe. Tagged, array-like: a field is only ever added at the end, with a default.

`PROTOCOL_VERSION` changes when that rule cannot be kept. It is the version of recordings too.
"""

from typing import Final, Literal

from msgspec import Struct

from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import Frame

PROTOCOL_VERSION: Final = 1
MAX_MESSAGE_BYTES: Final = 8 * 1024 * 1024
"""A frame of 16 GPUs with every link is below 200 kB; a state blob below 2 MB."""


class Hello(Struct, frozen=True, array_like=True, tag="hello"):
    """First message of either side. A different `build_id` means that an upgrade happened under us."""

    protocol: int
    build_id: str
    pid: int


class Desired(Struct, frozen=True, array_like=True, tag="desired"):
    """Server to probe: run these lanes. The probe reconciles by equality and echoes the generation."""

    generation: int
    config: ProbeConfig


class Applied(Struct, frozen=True, array_like=True, tag="applied"):
    """Probe to server: the echo of `Desired`."""

    generation: int


class Log(Struct, frozen=True, array_like=True, tag="log"):
    """Probe to server: a line for the one log of the daemon. The text is clean already."""

    level: int
    logger: str
    text: str


class Release(Struct, frozen=True, array_like=True, tag="release"):
    """Server to probe: close NVML now, so that a reset or a driver unload can proceed."""

    until_ns: int  # monotonic: taken back by itself then


class Resume(Struct, frozen=True, array_like=True, tag="resume"):
    """Server to probe: open NVML again."""


class Blob(Struct, frozen=True, array_like=True, tag="blob"):
    """State to keep over a restart. Server to probe: save it. Probe to server: this was found."""

    name: str
    data: bytes | None  # None: nothing is there, or it could not be read


class BlobSaved(Struct, frozen=True, array_like=True, tag="blob_saved"):
    """Probe to server: a blob was written and synced, or could not be."""

    name: str
    error: str = ""


class Shutdown(Struct, frozen=True, array_like=True, tag="shutdown"):
    """Server to probe: finish what is outstanding, close NVML, end. Probe to server: I am about to end, and why."""

    reason: Literal["stop", "replace", "driver_changed", "server_gone"] = "stop"


Message = Hello | Desired | Applied | Frame | Log | Release | Resume | Blob | BlobSaved | Shutdown
