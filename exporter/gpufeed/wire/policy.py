# SPDX-License-Identifier: Apache-2.0
"""When a probe may be killed: never inside a driver call. Killing a monitor there has frozen GPUs."""

from collections.abc import Iterable
from typing import Final

from gpufeed.model.frame import LaneStatus
from gpufeed.model.ids import CollectorName

DRIVER_COLLECTORS: Final[frozenset[CollectorName]] = frozenset({"nvml", "nvlink", "gpm", "xid"})
_DRIVER_PREFIX: Final = "nvml"


def has_driver_call(lanes: Iterable[LaneStatus]) -> bool:
    """Whether one of these lanes is, or may be, inside an NVML call."""
    return any(lane.busy_since_ns is not None and _is_driver_call(lane) for lane in lanes)


def _is_driver_call(lane: LaneStatus) -> bool:
    """By the name of the call; a GPU lane that names none is taken to be in one."""
    if lane.call:
        return lane.call.startswith(_DRIVER_PREFIX)
    return lane.collector in DRIVER_COLLECTORS
