# SPDX-License-Identifier: Apache-2.0
"""Slots of a GPU's recent past: no nanosecond is lost, none counted twice, and memory has an end."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gpufeed.history.states import SLOT_NS, SLOTS, StateHistory
from gpufeed.model.frame import FrameTime
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.model.state import Attribution, NodeState, StateCause

KEY = GpuKey(GpuUuid("GPU-1"))
BUSY, STARVED = StateCause("busy", "tensor"), StateCause("starved", "storage")
S = 1_000_000_000


def node(until_ns: int, spent: dict[StateCause, int], key: GpuKey = KEY) -> NodeState:
    found = Attribution(state_ns=spent, tracked_ns=sum(spent.values()), decided_until_ns=until_ns, current=BUSY)
    return NodeState(time=FrameTime(until_ns, until_ns, until_ns), attributions={key: found})


def test_time_falls_into_the_slots_it_was_spent_in() -> None:
    history = StateHistory()
    history.append(node(12 * S, {BUSY: 4 * S}))  # from 8 s to 12 s
    history.append(node(14 * S, {BUSY: 5 * S, STARVED: 1 * S}))
    first, second = history.slots(KEY)
    assert (first.began_ns, first.spent_ns) == (5 * S, {BUSY: 2 * S})
    assert (second.began_ns, second.spent_ns) == (10 * S, {BUSY: 3 * S, STARVED: 1 * S})


def test_totals_that_begin_again_are_not_negative_time() -> None:
    history = StateHistory()
    history.append(node(10 * S, {BUSY: 8 * S}))
    history.append(node(4 * S, {STARVED: 3 * S}))
    spent = [one.spent_ns for one in history.slots(KEY)]
    assert all(value > 0 for slot in spent for value in slot.values())


def test_an_unknown_gpu_has_no_past() -> None:
    assert StateHistory().slots(KEY) == ()


def test_nothing_new_adds_nothing() -> None:
    history = StateHistory()
    for _ in range(3):
        history.append(node(3 * S, {BUSY: 3 * S}))
    assert [one.spent_ns for one in history.slots(KEY)] == [{BUSY: 3 * S}]


def test_half_an_hour_is_kept_and_no_more() -> None:
    history = StateHistory()
    history.append(node(10 * 3600 * S, {BUSY: 10 * 3600 * S}))
    slots = history.slots(KEY)
    assert len(slots) == SLOTS
    assert slots[-1].began_ns == 10 * 3600 * S - SLOT_NS


def test_gpus_above_the_limit_are_left_out_until_others_are_gone() -> None:
    history = StateHistory(max_gpus=1)
    other = GpuKey(GpuUuid("GPU-2"))
    both = node(S, {BUSY: S})
    both = replace(both, attributions={**both.attributions, other: both.attributions[KEY]})
    history.append(both)
    assert history.slots(other) == ()
    history.append(node(2 * S, {BUSY: 2 * S}, other))
    assert history.slots(other) != ()
    assert history.slots(KEY) == ()


@given(st.lists(st.tuples(st.integers(0, 40 * S), st.integers(0, 40 * S)), min_size=1, max_size=20))
def test_slots_add_up_to_all_the_time_there_was(steps: list[tuple[int, int]]) -> None:
    history, until_ns, spent = StateHistory(), 0, {BUSY: 0, STARVED: 0}
    for busy_ns, starved_ns in steps:
        spent = {BUSY: spent[BUSY] + busy_ns, STARVED: spent[STARVED] + starved_ns}
        until_ns += busy_ns + starved_ns
        history.append(node(until_ns, spent))
    slots = history.slots(KEY)
    for cause, total_ns in spent.items():
        assert sum(slot.spent_ns.get(cause, 0) for slot in slots) == total_ns
    assert all(sum(slot.spent_ns.values()) <= SLOT_NS + len(steps) * 2 for slot in slots)
    assert [slot.began_ns for slot in slots] == sorted({slot.began_ns for slot in slots})
