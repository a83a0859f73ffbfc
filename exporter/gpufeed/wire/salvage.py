# SPDX-License-Identifier: Apache-2.0
"""A frame that does not fit its types, without the readings that are to blame.

One source that puts a text where a number belongs would otherwise cost the whole probe, again and again. The normal
path never comes here.
"""

from typing import Any, Final

import msgspec

from gpufeed.errors import WireError
from gpufeed.model.frame import Failure, Frame, Reading

_TAG: Final = "frame"
_FIELDS: Final = ("tag", *Frame.__struct_fields__)
_READINGS: Final = _FIELDS.index("readings")
_FAILURES: Final = _FIELDS.index("failures")


def salvage_frame(body: bytes | memoryview, problem: str) -> Frame:
    """The frame without what does not decode, each of it named as a failure. Raises WireError if that is not enough."""
    try:
        rows = msgspec.msgpack.decode(body)
        if not isinstance(rows, list) or len(rows) <= _FAILURES or rows[0] != _TAG:
            raise WireError(f"not a message: {problem}")
        readings, rejected = _sorted_out(rows[_READINGS])
        rows[_READINGS] = readings
        frame = msgspec.convert(rows, Frame)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        raise WireError(f"not a message: {error}") from error
    return msgspec.structs.replace(frame, failures=frame.failures + tuple(rejected))


def _sorted_out(rows: list[Any]) -> tuple[list[Any], list[Failure]]:
    kept, rejected = [], []
    for row in rows:
        try:
            msgspec.convert(row, Reading)
        except msgspec.ValidationError as error:
            rejected.append(_as_failure(row, str(error)))
        else:
            kept.append(row)
    return kept, rejected


def _as_failure(row: list[Any], problem: str) -> Failure:
    """Who sent it and when are fields that probe code writes, not sources. Raises ValidationError."""
    lane, group, collector, _began_ns, ended_ns = row[:5]
    return msgspec.convert([lane, group, collector, ended_ns, "broken", problem], Failure)
