# SPDX-License-Identifier: Apache-2.0
"""What holds whatever the frames say: no time is lost or invented, nothing falls, nothing raises."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gpufeed.model.frame import Frame, FrameTime
from gpufeed.model.ids import GpuKey
from gpufeed.model.state import CAUSES, Attribution, NodeState, StateCause
from gpufeed.signals.ledger import added, split
from gpufeed.step import Node, Settings, initial, restore, save, step
from signals.anything import any_of
from signals.story import COMPUTING, FREE, WAITING, Gpu, Host, S, Story

PAIRS = [StateCause(state, cause) for state, causes in CAUSES.items() for cause in causes]
RATIO = st.floats(0, 1)
GPUS = st.sampled_from([COMPUTING, WAITING, FREE]) | st.builds(
    Gpu,
    active=st.none() | RATIO,
    sm=st.none() | RATIO,
    tensor=st.none() | RATIO,
    dram=RATIO,
    has_gpm=st.booleans(),
    has_utilization=st.booleans(),
    memory=st.none() | RATIO,
    processes=st.none() | st.integers(0, 2),
    power=RATIO,
    clock=RATIO,
    nvlink=RATIO,
    fabric=RATIO,
    pcie_receive=RATIO,
    condition=st.sampled_from(["ok", "ok", "ok", "lost", "reset_required", "denied", "error", "released"]),
    recovery_action=st.none() | st.integers(0, 7),
)
HOSTS = st.builds(
    Host,
    tasks=st.booleans(),
    running=st.integers(0, 40),
    blocked=st.integers(0, 40),
    cores=st.floats(0, 64),
    io=st.none() | RATIO,
    cpu=st.none() | RATIO,
    memory=st.none() | RATIO,
    storage=st.booleans(),
    read=st.floats(0, 1e10),
    write=st.floats(0, 1e10),
    outstanding=st.floats(0, 20),
)
DEEDS = st.lists(
    st.tuples(st.just("run"), st.integers(1, 12), GPUS, HOSTS)
    | st.tuples(st.just("gap"), st.integers(1, 12), st.none(), st.none())
    | st.tuples(st.just("stuck"), st.integers(1, 24), st.none(), st.none())
    | st.tuples(st.just("silent"), st.integers(1, 12), st.none(), st.none())
    | st.tuples(st.just("reset"), st.just(1), st.none(), st.none())
    | st.tuples(st.just("pause"), st.integers(1, 60), st.none(), st.none()),
    max_size=8,
)


def assert_sound(state: NodeState, before: NodeState) -> None:
    for key, attribution in state.attributions.items():
        record = state.gpus[key.uuid]
        assert sum(attribution.state_ns.values()) == attribution.tracked_ns
        assert attribution.tracked_ns == attribution.decided_until_ns - record.first_seen_ns
        assert all(ns >= 0 and pair in PAIRS for pair, ns in attribution.state_ns.items())
        assert attribution.current in PAIRS
        assert_grew(attribution, before.attributions.get(key))
    for uuid, totals in state.gpu_totals.items():
        old = before.gpu_totals.get(uuid)
        for engine, active_s in totals.engine_active_s.items():
            assert active_s >= (0.0 if old is None else old.engine_active_s.get(engine, 0.0))
    for port, flaps in state.ib_flaps.items():
        assert flaps >= before.ib_flaps.get(port, 0)


def assert_grew(now: Attribution, before: Attribution | None) -> None:
    if before is not None:
        assert now.decided_until_ns >= before.decided_until_ns
        assert all(now.state_ns[pair] >= ns for pair, ns in before.state_ns.items())


def do(story: Story, deed: tuple[str, int, Any, Any]) -> None:
    what, half_seconds, gpu, host = deed
    if what == "run":
        story.silent, story.busy_since_ns = frozenset(), {}
        story.run(half_seconds / 2, gpu, host, others=COMPUTING)
    elif what == "gap":
        story.gap(half_seconds / 2)
    elif what == "stuck":
        story.silent, story.busy_since_ns = frozenset({"gpu0"}), {"gpu0": story.now_ns}
        story.run(half_seconds / 2)
    elif what == "silent":
        story.silent, story.busy_since_ns = frozenset({"gpu0", "nfs", "jobs", "pressure"}), {}
        story.run(half_seconds / 2)
    elif what == "reset":
        story.totals.clear()
    else:
        story.now_ns += half_seconds * S // 2  # nothing came at all


@given(DEEDS)
@settings(max_examples=60)
def test_time_is_neither_lost_nor_invented(deeds: list[tuple[str, int, Any, Any]]) -> None:
    story = Story()
    story.run(1)
    for deed in deeds:
        before = story.node.state
        do(story, deed)
        assert_sound(story.node.state, before)
        for attribution in story.node.state.attributions.values():
            assert story.node.state.time.monotonic_ns - attribution.decided_until_ns <= 3 * S


@given(st.lists(any_of(Frame), max_size=4))
@settings(max_examples=80)
def test_no_well_typed_frame_makes_the_fold_raise(frames: list[Frame]) -> None:
    node = initial(Settings(expected_gpus=2), FrameTime(0, 0, 0))
    for frame in frames:
        before = node.state
        node = step(node, frame)
        assert_sound(node.state, before)
    assert isinstance(save(node), bytes)


@given(any_of(Frame), st.integers(1, 20))
@settings(max_examples=60)
def test_a_wild_frame_in_a_running_story_spoils_no_sum(frame: Frame, later: int) -> None:
    story = Story()
    story.run(2)
    before = story.node.state
    wild = replace_time(frame, FrameTime(story.now_ns + S, story.now_ns + S, 0))
    story.node = step(story.node, wild)
    assert_sound(story.node.state, before)
    story.now_ns += S
    story.run(later / 2)
    assert_sound(story.node.state, before)


def replace_time(frame: Frame, time: FrameTime) -> Frame:
    return Frame(**{**{name: getattr(frame, name) for name in frame.__struct_fields__}, "time": time})


@given(st.integers(0, 10**18), st.lists(st.tuples(st.sampled_from(PAIRS), st.floats()), min_size=1, max_size=6))
def test_a_split_adds_up_exactly(length_ns: int, shares: list[tuple[StateCause, float]]) -> None:
    parts = split(length_ns, shares)
    assert sum(ns for _, ns in parts) == length_ns
    assert all(ns >= 0 for _, ns in parts)
    assert sum(added({}, parts).values()) == length_ns


@given(st.integers(1, 10**12), st.floats(0, 1), st.floats(0, 1))
def test_a_split_interval_splits_as_a_whole_one_but_for_a_nanosecond(length_ns: int, cut: float, active: float) -> None:
    shares = [(PAIRS[0], active), (PAIRS[1], 1 - active)]
    middle_ns = round(length_ns * cut)
    halves = added(added({}, split(middle_ns, shares)), split(length_ns - middle_ns, shares))
    whole = added({}, split(length_ns, shares))
    assert all(abs(halves.get(pair, 0) - whole.get(pair, 0)) <= 1 for pair, _ in shares)


@given(st.binary(max_size=200))
def test_garbage_for_a_saved_state_is_as_if_there_were_none(data: bytes) -> None:
    node = initial(Settings(), FrameTime(0, 0, 0))
    assert restore(node, data) == node


@given(st.data())
def test_a_damaged_saved_state_never_raises(data: st.DataObject) -> None:
    story = Story()
    story.run(3)
    saved = bytearray(save(story.node))
    for _ in range(data.draw(st.integers(1, 4))):
        saved[data.draw(st.integers(0, len(saved) - 1))] = data.draw(st.integers(0, 255))
    fresh: Node = Story().node
    node = restore(fresh, bytes(saved[: data.draw(st.integers(1, len(saved)))]))
    again = Story()
    again.node = replace(node)
    again.run(2)
    assert_sound(again.node.state, fresh.state)
    assert GpuKey(again.identity(0).gpu.uuid) in again.node.state.attributions
