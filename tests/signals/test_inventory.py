# SPDX-License-Identifier: Apache-2.0
"""Which GPUs there are and should be, and how each is found."""

from dataclasses import replace

from gpufeed.model.frame import Frame, FrameTime, LaneStatus
from gpufeed.model.gpu import GpuCondition, GpuIdentity, GpuProcesses, PciGpus
from gpufeed.model.ids import GpuKey, GpuUuid, LaneId
from gpufeed.signals.inventory import Around, Inventory, expected, fold, forget, holds_memory
from gpufeed.signals.samples import fold as fold_samples
from gpufeed.signals.settings import Settings
from gpufeed.step import Node, step
from signals.story import COMPUTING, FREE, PCI_SLOTS, Host, S, Story, uuid


def condition(story: Story, index: int = 0) -> str:
    return story.node.state.gpus[uuid(index)].condition


def tell(story: Story, frame: Frame) -> Node:
    story.node = step(story.node, frame)
    return story.node


def test_a_gpu_is_known_from_its_identity_on() -> None:
    story = Story()
    story.run(1)
    record = story.node.state.gpus[uuid(1)]
    assert (record.index, record.lane, record.condition, record.processes) == (1, "gpu1", "ok", 1)
    assert record.first_seen_ns == story.attribution(1).decided_until_ns - story.attribution(1).tracked_ns


def test_expected_counts_by_who_says_so() -> None:
    story = Story(Settings(expected_gpus=8))
    assert story.run(1).state.gpus_expected == {"config": 8, "inventory": 2}
    pci = story.reading("pci", "pci.slow", PciGpus(bus_ids=PCI_SLOTS[:3]), period_ns=10 * S)
    story.now_ns += S
    node = tell(story, Frame(sequence=9, time=story.time, readings=(pci,), probe_pid=7))
    assert node.state.gpus_expected == {"config": 8, "inventory": 2, "pci": 3}
    assert expected(Inventory(), {}, Settings()) == {}


def test_a_lost_gpu_that_does_not_know_its_name_is_told_by_lane_and_index() -> None:
    story = Story()
    story.run(1)
    lost = story.reading("gpu0", "nvml.fast", GpuCondition(index=0, condition="lost", detail="fell off"))
    tell(story, Frame(sequence=9, time=story.time, readings=(lost,), probe_pid=7))
    assert condition(story) == "lost"
    assert condition(story, 1) == "ok"
    assert story.node.state.gpus[uuid(0)].detail == "fell off"


def test_a_gpu_whose_call_does_not_return_is_hung_until_it_answers() -> None:
    story = Story()
    story.run(1)
    story.silent, story.busy_since_ns = frozenset({"gpu0"}), {"gpu0": story.now_ns}
    story.run(8)
    assert (condition(story), condition(story, 1)) == ("hung", "ok")
    story.silent, story.busy_since_ns = frozenset(), {}
    story.run(1)
    assert condition(story) == "ok"


def test_a_hung_lane_that_never_learned_its_uuid_is_told_by_index() -> None:
    story = Story()
    story.run(1)
    nameless = LaneStatus(
        lane=LaneId("gpu1"), collector="nvml", busy_since_ns=0, late_after_ns=1, stuck_after_ns=2, gpu=1
    )
    tell(story, Frame(sequence=9, time=story.time, lanes=(nameless,), probe_pid=7))
    assert (condition(story), condition(story, 1)) == ("ok", "hung")


def test_a_gpu_without_a_lane_is_missing_only_after_the_driver_has_answered_for_a_while() -> None:
    story = Story()
    story.run(1)
    story.count, story.gpus = 1, [COMPUTING]
    story.run(29)
    assert condition(story, 1) == "ok"
    story.run(2)
    assert condition(story, 1) == "missing"
    story.count, story.gpus = 2, [COMPUTING] * 2
    story.run(11)
    assert condition(story, 1) == "ok"


def test_without_a_driver_gpus_are_unread_not_missing() -> None:
    story = Story()
    story.run(1)
    for _ in range(100):
        story.now_ns += S
        tell(story, Frame(sequence=9, time=story.time, withdrawn=(LaneId("nvml-init"), LaneId("gpu0")), probe_pid=7))
    assert condition(story) == "error"
    story.run(1)
    assert condition(story) == "ok"


def test_a_lost_gpu_stays_lost_without_a_driver_and_without_a_lane() -> None:
    story = Story()
    story.run(1)
    story.run(1, replace(COMPUTING, condition="lost"), others=COMPUTING)
    tell(story, Frame(sequence=9, time=story.time, withdrawn=(LaneId("nvml-init"), LaneId("gpu0")), probe_pid=7))
    assert condition(story) == "lost"
    story.silent = frozenset({"gpu0"})
    story.count, story.gpus = 0, []
    story.run(60)
    assert condition(story) == "lost"


def test_another_board_in_the_same_slot_ends_the_record_of_the_one_before() -> None:
    story = Story()
    story.run(1)
    other = GpuIdentity(gpu=GpuKey(GpuUuid("GPU-new")), index=0, pci_bus_id=PCI_SLOTS[0])
    tell(story, Frame(sequence=9, time=story.time, readings=(story.reading("gpu0", "nvml.rare", other),), probe_pid=7))
    assert set(story.node.state.gpus) == {"GPU-new", uuid(1)}
    assert set(story.node.state.attributions) == {GpuKey(GpuUuid("GPU-new")), GpuKey(uuid(1))}
    assert story.node.state.gpus_expected["inventory"] == 2


def test_a_board_in_another_slot_is_expected_there_only() -> None:
    story = Story()
    story.run(1)
    moved = GpuIdentity(gpu=GpuKey(uuid(0)), index=0, pci_bus_id=PCI_SLOTS[3])
    tell(story, Frame(sequence=9, time=story.time, readings=(story.reading("gpu0", "nvml.rare", moved),), probe_pid=7))
    assert story.node.state.gpus_expected["inventory"] == 2
    nowhere = GpuIdentity(gpu=GpuKey(GpuUuid("GPU-x")), index=5)
    reading = story.reading("gpu5", "nvml.rare", nowhere)
    tell(story, Frame(sequence=9, time=story.time, readings=(reading,), probe_pid=7))
    assert "GPU-x" in story.node.state.gpus
    assert story.node.state.gpus_expected["inventory"] == 2


def test_an_index_that_is_anothers_by_now_does_not_touch_a_missing_gpu() -> None:
    story = Story()
    story.run(1)
    missing = replace(story.node.memory.inventory.records[uuid(0)], condition="missing")
    inventory = replace(story.node.memory.inventory, records={**story.node.memory.inventory.records, uuid(0): missing})
    said = GpuCondition(index=0, condition="lost")
    frame = Frame(sequence=9, time=story.time, readings=(story.reading("gpu0", "nvml.fast", said),))
    around = Around(frame=frame, samples=story.node.state.samples, lanes=story.node.state.lanes, settings=Settings())
    assert fold(inventory, around).records[uuid(0)].condition == "missing"


def test_in_use_is_remembered_and_processes_are_counted() -> None:
    story = Story()
    story.run(5, FREE, Host(tasks=False))
    record = story.node.state.gpus[uuid(0)]
    assert (record.in_use_at_ns, record.processes) == (None, 0)
    story.run(1, replace(FREE, processes=2))
    used_at_ns = story.node.state.gpus[uuid(0)].in_use_at_ns
    assert used_at_ns == story.now_ns
    story.run(30, FREE)
    assert story.node.state.gpus[uuid(0)].in_use_at_ns == used_at_ns


def test_memory_beyond_what_an_unused_board_shows_is_held() -> None:
    gibibyte = 1024**3
    assert not holds_memory(None, 80 * gibibyte)
    assert not holds_memory(0.5 * gibibyte, None)
    assert not holds_memory(0.7 * gibibyte, 80 * gibibyte)  # one per cent is 0.8
    assert holds_memory(0.7 * gibibyte, 16 * gibibyte)


def test_a_gpu_taken_out_on_purpose_is_forgotten() -> None:
    story = Story()
    inventory = forget(story.run(1).memory.inventory, uuid(0))
    assert set(inventory.records) == {uuid(1)}
    assert expected(inventory, {}, Settings()) == {"inventory": 1}
    assert uuid(0) not in inventory.laneless_since_ns


def test_instances_are_no_gpus_of_their_own() -> None:
    slice_of = GpuIdentity(gpu=GpuKey(uuid(0), gi=1, ci=0), index=0)
    story = Story()
    frame = Frame(sequence=1, time=FrameTime(S, S, S), readings=(story.reading("gpu0", "nvml.rare", slice_of),))
    around = Around(frame=frame, samples=fold_samples({}, frame, frozenset()), lanes={}, settings=Settings())
    assert fold(Inventory(), around).records == {}


def test_processes_that_cannot_be_listed_are_not_none() -> None:
    story = Story()
    story.run(1, replace(COMPUTING, processes=None))
    assert story.node.state.gpus[uuid(0)].processes is None
    assert GpuProcesses not in {kind for kind, held in story.node.state.samples.items() if held}
