# SPDX-License-Identifier: Apache-2.0
"""Processor time of the node as counters."""

from hypothesis import given
from hypothesis import strategies as st

from gpufeed.model.host import HostCpu
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.state import Held
from gpufeed.signals.cpu_time import fold
from gpufeed.signals.samples import Samples


def of(**seconds: float) -> Samples:
    sample = HostCpu(seconds=seconds, cpus=2)
    held = Held(sample=sample, lane=LaneId("host"), group=GroupName("f"), collector="host", read_at_ns=0, stale_at_ns=1)
    return {HostCpu: {"host": held}}


def test_what_is_read_first_is_what_there_is() -> None:
    assert fold({}, of(user=5.0, iowait=2.0)) == {"user": 5.0, "iowait": 2.0}


def test_iowait_that_goes_back_stands_still_until_it_has_caught_up() -> None:
    before = fold({}, of(user=5.0, idle=9.0, iowait=2.0))
    between = fold(before, of(user=6.0, idle=8.5, iowait=1.0))
    assert between == {"user": 6.0, "idle": 9.0, "iowait": 2.0}
    assert fold(between, of(user=7.0, idle=9.5, iowait=2.5)) == {"user": 7.0, "idle": 9.5, "iowait": 2.5}


def test_counters_that_begin_anew_are_followed() -> None:
    before = fold({}, of(user=500.0, iowait=200.0))
    assert fold(before, of(user=1.0, iowait=199.0)) == {"user": 1.0, "iowait": 199.0}
    assert fold(before, of(user=501.0, iowait=3.0)) == {"user": 501.0, "iowait": 3.0}


def test_nothing_new_changes_nothing() -> None:
    assert fold({"user": 5.0}, {}) == {"user": 5.0}


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), max_size=20))
def test_a_fall_of_any_counter_is_a_new_beginning_of_a_counter_that_cannot_step_back(
    readings: list[tuple[float, float]],
) -> None:
    known: dict[str, float] = {}
    for user, idle in readings:
        new = dict(fold(known, of(user=user, idle=idle)))
        if known and new["idle"] < known["idle"]:
            assert user < known["user"] or idle < known["idle"] - 6.0
        known = new
