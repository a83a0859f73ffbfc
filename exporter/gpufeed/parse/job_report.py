# SPDX-License-Identifier: Apache-2.0
"""What a job reports of itself: JSON that anybody may have written."""

from math import isfinite
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from gpufeed.errors import ParseError

MAX_BYTES: Final = 4096
VERSION: Final = 1
_MOST: Final = 1e30
Amount = Annotated[float, Meta(ge=0, le=_MOST)]


class Report(Struct, frozen=True):
    """Everything since the process began to report. Unknown fields are a later version's and are passed over."""

    version: int
    pid: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    elapsed_s: Amount
    data_wait_s: Amount | None = None
    model_flops: Amount | None = None
    samples: Amount | None = None
    tokens: Amount | None = None
    steps: Annotated[int, Meta(ge=0, le=2**62)] | None = None
    dtype: Annotated[str, Meta(max_length=8)] = "bf16"


_decoder: Final = msgspec.json.Decoder(Report)


def parse_report(data: bytes) -> Report:
    """One report. Raises ParseError."""
    if len(data) > MAX_BYTES:
        raise ParseError(f"at most {MAX_BYTES} bytes", f"{len(data)} bytes")
    try:
        report = _decoder.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ParseError("a report", str(error)) from None
    if report.version != VERSION:
        raise ParseError(f"version {VERSION}", str(report.version))
    if not isfinite(report.elapsed_s) or (report.data_wait_s or 0.0) > report.elapsed_s * 1.01 + 1.0:
        raise ParseError("no more waiting than time has passed", str(report.data_wait_s))
    return report
