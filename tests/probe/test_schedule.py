# SPDX-License-Identifier: Apache-2.0
"""Due times: phase, lateness, no bursts, spacing."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from gpufeed.model.ids import GroupName
from gpufeed.probe.schedule import Schedule
from gpufeed.sources.contract import Group

FAST = Group(name=GroupName("gpm.fast"), collector="gpm", period_ns=500)
SLOW = Group(name=GroupName("nvml.slow"), collector="nvml", period_ns=10_000)


def due_after(schedule: Schedule, began_ns: int, ended_ns: int) -> int:
    schedule.done(FAST.name, began_ns, ended_ns)
    following = schedule.next()
    assert following is not None
    return following[0]


def test_all_groups_are_due_at_once_in_the_order_of_the_plan() -> None:
    schedule = Schedule((SLOW, FAST), 7)
    assert schedule.next() == (7, SLOW.name)
    schedule.done(SLOW.name, 7, 8)
    assert schedule.next() == (7, FAST.name)


def test_a_read_in_time_keeps_the_phase() -> None:
    assert due_after(Schedule((FAST,), 1000), 1100, 1150) == 1500


def test_a_late_read_starts_a_new_phase() -> None:
    assert due_after(Schedule((FAST,), 1000), 1400, 1410) == 1900


def test_a_read_longer_than_its_period_is_followed_by_a_pause() -> None:
    assert due_after(Schedule((FAST,), 1000), 1000, 9000) == 9062


def test_the_governor_lengthens_fast_groups_only() -> None:
    schedule = Schedule((FAST, SLOW), 0)
    schedule.fast_period_ns = 20_000
    assert schedule.period_ns(FAST.name) == 20_000
    assert schedule.period_ns(SLOW.name) == 10_000


def test_the_governor_never_shortens() -> None:
    schedule = Schedule((FAST,), 0)
    schedule.fast_period_ns = 100
    assert schedule.period_ns(FAST.name) == 500


def test_nothing_is_due_where_there_is_no_group() -> None:
    assert Schedule((), 0).next() is None


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 3000)), max_size=40))
def test_reads_never_begin_closer_than_three_quarters_of_a_period(delays: list[tuple[int, int]]) -> None:
    schedule = Schedule((FAST,), 0)
    began, due = [], 0
    for late, long in delays:
        began.append(due + late)
        due = due_after(schedule, due + late, due + late + long)
    assert all(after - before >= 375 for before, after in itertools.pairwise(began))
