# SPDX-License-Identifier: Apache-2.0
"""The fold as a whole: what it composes, what it keeps over a restart, what it costs."""

from dataclasses import replace

import msgspec
import pytest

from gpufeed.model.fabric import IbErrors, IbPort
from gpufeed.model.frame import Frame, FrameTime, InputStatus, ProbeCost, XidEvent
from gpufeed.model.gpu import GpuFast
from gpufeed.model.host import NodeInfo
from gpufeed.model.ids import GpuKey
from gpufeed.signals.baselines import Learned
from gpufeed.signals.saved import BOOT_ID_WAIT_FRAMES, SAVED_VERSION, Saved
from gpufeed.step import Node, Settings, acknowledge, forget, initial, restore, save, step
from signals.story import BOOT, COMPUTING, S, Story, failure, port, uuid

XID = (GpuKey(uuid(0)), "xid")


def lived(seconds: float = 3) -> Story:
    """A first life: a fatal XID on GPU 0, a flap of port 0, something learned."""
    story = Story()
    story.run(seconds)
    story.run(1, events=(XidEvent(at_ns=story.now_ns, xid=79, uuid=uuid(0)),))
    for state_id in (1, 4):
        reading = story.reading(
            "ib", "infiniband.slow", IbPort(port=port(0), state_id=state_id), collector="infiniband"
        )
        story.node = step(story.node, Frame(sequence=9, time=story.time, readings=(reading,), probe_pid=7))
    learned = replace(story.node.memory.baselines, entries={("read_latency", "nfs:/data"): Learned(0.002, 900.0)})
    story.node = replace(story.node, memory=replace(story.node.memory, baselines=learned))
    return story


def second_life(first: Story, boot_id: str | None = BOOT, after_ns: int = 10 * S) -> Story:
    """The daemon starts anew `after_ns` later and is given what was saved."""
    story = Story()
    story.now_ns = first.now_ns + after_ns
    story.node = restore(initial(Settings(), story.time), save(first.node))
    info = story.reading("host", "host.slow", NodeInfo(nodename="n", boot_id=boot_id), period_ns=10 * S)
    story.node = step(story.node, Frame(sequence=1, time=story.time, readings=(info,), probe_pid=8))
    return story


# what a frame does


def test_a_frame_moves_time_and_counts_frames() -> None:
    story = Story()
    story.run(2)
    state = story.node.state
    assert state.time == story.time
    assert (state.probe.is_up, state.probe.pid, state.probe.frames) == (True, 7, 4)
    gone = story.gap(1).state.probe
    assert (gone.is_up, gone.pid, gone.frames) == (False, 7, 4)


def test_cost_and_inputs_are_kept_until_said_anew() -> None:
    story = Story()
    cost = ProbeCost(cpu_ns=1, resident_bytes=2, nvml_calls=3, field_values=4, file_reads=5)
    said = InputStatus("gpm", uuid(0), "available")
    story.node = step(story.node, Frame(sequence=1, time=story.time, cost=cost, inputs=(said,), probe_pid=7))
    state = story.run(1).state
    assert state.probe.cost == cost
    assert state.inputs["gpm", uuid(0)] == said


def test_failures_are_counted_for_their_collector() -> None:
    story = Story()
    frame = Frame(
        sequence=1, time=story.time, failures=(failure(story, "nfs", "nfs.fast", "broken", "nfs"),), probe_pid=7
    )
    assert step(story.node, frame).state.collectors["nfs"].errors == {"broken": 1}


def test_readings_flaps_xids_and_verdicts_stand_in_one_state() -> None:
    state = lived().node.state
    assert state.latest(GpuFast)[GpuKey(uuid(0))].sample.power_w == pytest.approx(0.9 * 700)
    assert state.ib_flaps[port(0)] == 1
    assert state.xids[uuid(0)].by_xid == {79: 1}
    assert state.verdicts[XID].level == 2


def test_a_step_changes_nothing_of_the_node_before_it() -> None:
    story = Story()
    before = story.run(3)
    picture = (dict(before.state.samples), dict(before.state.attributions), dict(before.memory.timelines))
    story.run(2)
    assert (dict(before.state.samples), dict(before.state.attributions), dict(before.memory.timelines)) == picture


# acknowledging and forgetting


def test_an_acknowledged_fault_is_well_again() -> None:
    story = lived()
    story.node = acknowledge(story.node, uuid(0))
    story.run(1)
    assert XID not in story.node.state.verdicts  # nor is it said to be well: nobody says that XIDs can be read here


def test_a_forgotten_gpu_leaves_nothing_behind() -> None:
    story = lived()
    story.node = forget(story.node, uuid(0))
    story.count, story.gpus = 0, []
    state = story.run(1).state
    assert uuid(0) not in state.gpus
    assert GpuKey(uuid(0)) not in state.attributions
    assert XID not in state.verdicts
    assert state.gpus_expected == {"inventory": 1}


# over a restart


def test_in_the_same_boot_counts_latches_and_flaps_go_on() -> None:
    story = second_life(lived())
    story.run(2)
    state = story.node.state
    assert state.xids[uuid(0)].by_xid == {79: 1}
    assert state.xids[uuid(0)].by_class["unusable"] == 1
    assert state.ib_flaps[port(0)] == 1
    assert state.verdicts[XID].level == 2
    assert state.attributions[GpuKey(uuid(0))].current == ("fault", "xid")
    assert story.node.memory.baselines.entries["read_latency", "nfs:/data"] == Learned(0.002, 900.0)


def test_what_the_kernel_log_says_again_after_a_restart_does_not_count_again() -> None:
    first = lived()
    story = second_life(first)
    known = XidEvent(at_ns=first.now_ns - S, xid=79, uuid=uuid(0), origin="kernel_log")
    missed = XidEvent(at_ns=first.now_ns + S, xid=31, uuid=uuid(0), origin="kernel_log")
    story.run(1, events=(known, missed))
    assert story.node.state.xids[uuid(0)].by_xid == {79: 1, 31: 1}


def test_a_reboot_clears_counts_and_latches_but_not_what_should_be_there() -> None:
    story = second_life(lived(), boot_id="boot-2")
    story.count, story.gpus = 1, [COMPUTING]
    story.run(35)
    state = story.node.state
    assert state.xids[uuid(0)].by_xid == {}
    assert state.ib_flaps[port(0)] == 0
    assert XID not in state.verdicts
    assert state.gpus_expected == {"inventory": 2}
    assert state.gpus[uuid(1)].condition == "missing"  # was in its slot before the reboot
    assert state.attributions[GpuKey(uuid(1))].current == ("fault", "lost")
    assert story.node.memory.baselines.entries["read_latency", "nfs:/data"] == Learned(0.002, 900.0)


def test_what_was_saved_is_used_only_once_the_boot_is_known() -> None:
    first = lived()
    story = Story()
    story.now_ns = first.now_ns + 10 * S
    story.node = restore(initial(Settings(), story.time), save(first.node))
    story.node = step(story.node, Frame(sequence=1, time=story.time, probe_pid=8))
    assert story.node.memory.saved is not None
    story.run(2)
    assert story.node.memory.saved is None


@pytest.mark.parametrize(("moved_s", "count"), [(0, {79: 1}), (3600, {})])
def test_a_host_that_never_says_its_boot_id_is_judged_by_its_clocks(moved_s: int, count: dict[int, int]) -> None:
    first = lived()
    story = Story()
    story.now_ns = first.now_ns + 10 * S
    story.node = restore(initial(Settings(), story.time), save(first.node))
    for sequence in range(BOOT_ID_WAIT_FRAMES):
        story.now_ns += S // 4
        moved = FrameTime(story.now_ns, story.now_ns, story.time.wall_ns + moved_s * S)
        story.node = step(story.node, Frame(sequence=sequence, time=moved, probe_pid=8))
    assert story.node.memory.saved is None
    story.run(1)
    assert story.node.state.xids[uuid(0)].by_xid == count


def test_an_earlier_moment_of_the_boot_clock_is_another_boot() -> None:
    story = second_life(lived(), boot_id=None, after_ns=-3 * S)
    assert story.node.memory.saved is None
    story.run(1)
    assert story.node.state.xids[uuid(0)].by_xid == {}


def test_what_has_happened_since_the_start_is_kept_beside_what_was_saved() -> None:
    first = lived()
    story = Story()
    story.now_ns = first.now_ns + 10 * S
    story.node = initial(Settings(), story.time)
    story.run(1, events=(XidEvent(at_ns=story.now_ns, xid=31, uuid=uuid(0)),))
    errors = story.reading(
        "ib", "infiniband.slow", IbErrors(port=port(5), errors={"link_downed": 1}, hw_events={}), collector="infiniband"
    )
    story.node = step(story.node, Frame(sequence=9, time=story.time, readings=(errors,), probe_pid=7))
    story.node = restore(story.node, save(first.node))
    story.run(1)
    assert story.node.state.xids[uuid(0)].by_xid == {79: 1, 31: 1}
    assert story.node.state.ib_flaps[port(0)] == 1
    assert story.node.state.verdicts[XID].level == 2


@pytest.mark.parametrize("data", [None, b"", b"nonsense", b"\xc1", msgspec.msgpack.encode([1, 2])])
def test_damaged_or_absent_state_is_as_if_there_had_been_none(data: bytes | None) -> None:
    node = initial(Settings(), FrameTime(S, S, S))
    assert restore(node, data) == node


def test_state_of_another_version_is_left_alone() -> None:
    node: Node = lived().node
    saved = msgspec.msgpack.decode(save(node), type=Saved)
    newer = msgspec.msgpack.encode(msgspec.structs.replace(saved, version=SAVED_VERSION + 1))
    assert restore(node, newer) is node


def test_saving_what_was_restored_gives_the_same_again() -> None:
    story = second_life(lived())
    story.run(1)
    again = msgspec.msgpack.decode(save(story.node), type=Saved)
    assert again.boot_id == BOOT
    assert again.totals[uuid(0)].by_xid == {79: 1}
    assert set(again.slots) == {"0000:18:00.0", "0000:2a:00.0"}
    assert [saved.flaps for saved in again.ports if saved.port == port(0)] == [1]
