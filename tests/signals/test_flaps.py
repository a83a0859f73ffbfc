# SPDX-License-Identifier: Apache-2.0
"""A flap is an outage that ended, however it was seen, and counts once."""

import pytest

from gpufeed.model.fabric import IbErrors, IbPort
from gpufeed.model.frame import Reading
from gpufeed.model.ids import GroupName, IbPortKey, LaneId
from gpufeed.signals.flaps import Flaps, fold

PORT = IbPortKey("mlx5_0", 1)


def told(*steps: str | int | None) -> int:
    """`up`, `down`: state of the port; a number: its own count of outages; None: it counts none."""
    flaps = Flaps()
    for moment, what in enumerate(steps):
        if isinstance(what, str):
            sample: IbPort | IbErrors = IbPort(port=PORT, state_id=4 if what == "up" else 1)
        else:
            sample = IbErrors(port=PORT, errors={} if what is None else {"link_downed": what}, hw_events={})
        reading = Reading(
            lane=LaneId("ib"),
            group=GroupName("infiniband.slow"),
            collector="infiniband",
            began_ns=moment,
            ended_ns=moment,
            period_ns=1,
            samples=(sample,),
        )
        flaps = fold(flaps, [reading])
    return flaps.counts[PORT]


@pytest.mark.parametrize(
    ("steps", "flaps"),
    [
        (("up",), 0),
        (("down", "up"), 0),  # was down when first seen
        (("up", "down"), 0),  # has not ended
        (("up", "down", "down", "up"), 1),
        (("up", "down", "up", "down", "up"), 2),
        (("up", 0, 1, "up"), 1),  # too short to be seen as a state
        (("up", 0, 3, "up"), 3),
        (("up", 0, "down", 1, "up"), 1),  # seen, then counted
        (("up", 0, 1, "down", "up"), 1),  # counted, then seen
        (("up", 0, "down", "up", 1, "up"), 1),  # counted only after it ended
        (("up", 0, "down", "up", 3, "up"), 3),
        (("up", 5, 2, "up"), 0),  # its counters were reset
        (("up", None, "down", "up"), 1),
        ((0, 4, "up"), 0),  # outages before it was ever up are another's
    ],
)
def test_flaps(steps: tuple[str | int | None, ...], flaps: int) -> None:
    assert told(*steps) == flaps
