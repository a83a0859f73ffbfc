# SPDX-License-Identifier: Apache-2.0
"""Layers, stragglers, waits and intensity: what is out of balance, in numbers a person can check."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.model.balance import STALL_BOUNDS_S, Layer, LayerCapacity, StallCounts
from gpufeed.model.gpu import GpuSlow
from gpufeed.model.ids import GpuKey, GpuUuid, StorageKey
from gpufeed.model.state import GpuTotals, StateCause
from gpufeed.signals import layers, stragglers
from gpufeed.signals.baselines import Baselines, Learned
from gpufeed.signals.capacity import nvlink_capacity, pcie_capacity, storage_capacity
from gpufeed.signals.intensity import peak_flops, tensor_intensity
from gpufeed.signals.layers import Layers
from gpufeed.signals.settings import Capacity, Settings
from gpufeed.signals.stalls import NONE, Stall, Waited, counted
from gpufeed.signals.stragglers import Stragglers
from gpufeed.signals.view import View
from gpufeed.signals.window import Window
from signals.story import CLOCK_HZ, COMPUTING, NFS, NVLINK_BYTES_PER_S, WAITING, Gpu, Host, S, Story, uuid

BUSY = StateCause("busy", "tensor")
PEER = StateCause("starved", "peer")
STORAGE = StateCause("starved", "storage")
READS = Host(read=4e9, reads=100.0, outstanding=1.0)
GIVES_5 = Settings(storage_capacity={NFS: Capacity(read_bytes_per_s=5e9)})


def view(story: Story, settings: Settings | None = None, baselines: Baselines | None = None) -> View:
    return View(
        timelines=story.node.memory.timelines,
        samples=story.node.state.samples,
        records=story.node.state.gpus,
        baselines=baselines or story.node.memory.baselines,
        settings=settings or story.node.memory.settings,
    )


def test_a_storage_that_gives_four_fifths_of_what_it_can_feeds_a_quarter_more_gpus() -> None:
    story = Story(GIVES_5)
    story.run(120, COMPUTING, READS)
    found = story.node.state.layers["storage_read"]
    assert found.device == "nfs:/data"
    assert found.demand_bytes_per_s == pytest.approx(4e9, rel=0.01)
    assert found.capacity == LayerCapacity(5e9, "configured")
    assert found.headroom_ratio == pytest.approx(0.2, abs=0.01)
    assert found.gpus_supportable == pytest.approx(2 / 0.8, rel=0.05)
    assert found.busy_s == pytest.approx(0.8 * 120, abs=0.8 * 10)  # seconds times the share in use
    assert story.node.state.storage_capacity == {(NFS, "read"): LayerCapacity(5e9, "configured")}


def test_seconds_of_a_layer_never_fall_and_its_demand_forgets_in_five_minutes() -> None:
    story = Story(GIVES_5)
    story.run(60, COMPUTING, READS)
    before = story.node.state.layers["storage_read"].busy_s
    story.run(400, COMPUTING, Host())
    after = story.node.state.layers["storage_read"]
    assert after.busy_s == pytest.approx(before, abs=0.8 * 10)
    assert after.busy_s >= before
    assert after.demand_bytes_per_s == 0
    assert after.gpus_supportable is None  # from next to nothing nothing is foretold


def test_interconnects_are_measured_by_what_exchanges_get_through_of_their_rate() -> None:
    story = Story()
    story.run(30, replace(COMPUTING, nvlink=0.4, fabric=0.2, pcie_receive=0.5))
    found = story.node.state.layers
    assert found["nvlink"].demand_bytes_per_s == pytest.approx(0.4 * NVLINK_BYTES_PER_S)
    assert found["nvlink"].headroom_ratio == pytest.approx(1 - 0.4 / 0.8)
    assert found["fabric"].headroom_ratio == pytest.approx(1 - 0.2 / 0.8)
    assert found["fabric"].device.startswith("mlx5_")
    assert found["pcie"].demand_bytes_per_s == pytest.approx(0.5 * 55e9, rel=0.01)
    assert found["pcie"].capacity == LayerCapacity(0.88 * 3.938e9 * 16, "spec")


def test_the_device_nearest_to_its_capacity_stands_for_its_layer() -> None:
    story = Story()
    story.run(30, replace(COMPUTING, nvlink=0.2), others=replace(COMPUTING, nvlink=0.4, links_up=9))
    found = story.node.state.layers["nvlink"]
    assert found.device == uuid(1)
    assert found.headroom_ratio == 0  # nine links carry four tenths of what eighteen could


def test_without_a_capacity_there_is_demand_and_nothing_else() -> None:
    story = Story()
    story.run(30, COMPUTING, READS)
    found = story.node.state.layers["storage_read"]
    assert found.demand_bytes_per_s == pytest.approx(4e9, rel=0.01)
    assert (found.capacity, found.headroom_ratio, found.gpus_supportable) == (None, None, None)


def test_a_learned_capacity_tells_headroom_but_foretells_nothing() -> None:
    story = Story()
    story.run(10, COMPUTING, READS)
    known = Baselines({("read_full", "nfs:/data"): Learned(8e9, 700.0)})
    assert storage_capacity(NFS, "read", view(story, baselines=known)) == LayerCapacity(8e9, "learned")
    assert storage_capacity(NFS, "write", view(story, baselines=known)) is None
    assert storage_capacity(StorageKey("block", "sda"), "read", view(story, baselines=known)) is None
    of = Layer(device="", busy_s=0, demand_bytes_per_s=4e9, capacity=LayerCapacity(8e9, "learned"))
    assert of.headroom_ratio == 0.5
    folded = layers.fold(Layers(), view(story, baselines=known), {}, story.now_ns, useful_s=10.0, length_s=5.0)
    assert folded.results["storage_read"].gpus_supportable is None


def test_a_target_configured_for_one_direction_says_nothing_of_the_other() -> None:
    story = Story(GIVES_5)
    story.run(10, COMPUTING, READS)
    assert storage_capacity(NFS, "write", view(story)) is None


def test_bytes_over_pcie_before_the_first_look_are_nobodys() -> None:
    story = Story()
    story.run(10, COMPUTING)
    key = GpuKey(uuid(0))
    old = layers.fold(
        Layers(), view(story), {key: GpuTotals(pcie_receive_bytes=9e12)}, story.now_ns, useful_s=1.0, length_s=5.0
    )
    assert "pcie" not in old.results
    now_ns = story.now_ns + 5 * S
    totals = {
        key: GpuTotals(pcie_receive_bytes=9e12 + 50e9),
        GpuKey(uuid(0), 3): GpuTotals(),
        GpuKey(GpuUuid("x")): GpuTotals(),
    }
    new = layers.fold(old, view(story), totals, now_ns, useful_s=1.0, length_s=5.0)
    assert new.results["pcie"].demand_bytes_per_s == pytest.approx(10e9)


def test_a_board_that_nobody_has_described_has_no_capacity() -> None:
    story = Story()
    story.run(5, COMPUTING)
    assert nvlink_capacity(GpuUuid("GPU-nobody"), view(story)) is None
    assert pcie_capacity(GpuUuid("GPU-nobody"), view(story)) is None
    bare = replace(view(story), samples={})
    assert nvlink_capacity(uuid(0), bare) == LayerCapacity(0.8 * NVLINK_BYTES_PER_S, "spec")
    assert pcie_capacity(uuid(0), bare) == LayerCapacity(0.88 * 3.938e9 * 16, "spec")


def blame(shares: dict[int, dict[StateCause, float]], story: Story | None = None) -> Stragglers:
    if story is None:
        story = Story(gpus=4)
        story.run(5, COMPUTING)
    of = {uuid(index): found for index, found in shares.items()}
    return stragglers.fold(Stragglers(), view(story), of, (story.now_ns - 4 * S, story.now_ns - 2 * S), 5.0)


def test_the_gpu_that_waits_for_nobody_while_the_others_wait_is_the_straggler() -> None:
    waiting = {BUSY: 0.6, PEER: 0.4}
    found = blame({0: {BUSY: 0.7, STORAGE: 0.3}, 1: waiting, 2: waiting, 3: waiting}).results
    assert found[uuid(0)].score == pytest.approx(0.4)
    assert [found[uuid(index)].score for index in (1, 2, 3)] == [0, 0, 0]
    assert [reason.input for reason in found[uuid(0)].reasons] == ["waits for its own storage"]
    assert (found[uuid(0)].reasons[0].value, found[uuid(0)].reasons[0].usual) == (0.3, 0.0)
    assert found[uuid(1)].reasons == ()


def test_where_all_wait_alike_nobody_here_is_to_blame() -> None:
    waiting = {BUSY: 0.6, PEER: 0.4}
    found = blame(dict.fromkeys(range(4), waiting)).results
    assert max(straggler.score for straggler in found.values()) < 1e-9


def test_a_slower_clock_and_a_narrower_link_are_named() -> None:
    story = Story(gpus=2)
    story.run(5, replace(COMPUTING, clock=0.5), others=COMPUTING)
    narrow = dict(story.node.state.samples)
    held = dict(narrow[GpuSlow])
    held[GpuKey(uuid(0))] = replace(
        held[GpuKey(uuid(0))], sample=GpuSlow(gpu=GpuKey(uuid(0)), pcie_generation=5, pcie_width=4)
    )
    narrow[GpuSlow] = held
    interval = (story.now_ns - 3 * S, story.now_ns - S)
    shares = {uuid(0): {BUSY: 1.0}, uuid(1): {BUSY: 0.5, PEER: 0.5}}
    found = stragglers.fold(Stragglers(), replace(view(story), samples=narrow), shares, interval, 5.0)
    reasons = {reason.input: (reason.value, reason.usual) for reason in found.results[uuid(0)].reasons}
    assert reasons == {"SM clock": (0.5 * CLOCK_HZ, 0.93 * CLOCK_HZ), "PCIe lanes": (4.0, 16.0)}


def test_reasons_stand_while_the_score_does_and_go_with_it() -> None:
    story = Story(gpus=2)
    story.run(5, COMPUTING)
    interval = (story.now_ns - 3 * S, story.now_ns - S)
    guilty = {uuid(0): {BUSY: 0.5, STORAGE: 0.5}, uuid(1): {BUSY: 0.5, PEER: 0.5}}
    quiet = {uuid(0): {BUSY: 1.0}, uuid(1): {BUSY: 1.0}}
    first = stragglers.fold(Stragglers(), view(story), guilty, interval, 5.0)
    then = stragglers.fold(first, view(story), quiet, (interval[0], interval[1] + 5 * S), 5.0)
    assert then.results[uuid(0)].score == pytest.approx(0.25)
    assert then.results[uuid(0)].reasons == first.results[uuid(0)].reasons
    for second in range(10, 320, 5):
        then = stragglers.fold(then, view(story), quiet, (interval[0], interval[1] + second * S), 5.0)
    assert (then.results[uuid(0)].score, then.results[uuid(0)].reasons) == (0.0, ())


def test_a_gpu_alone_makes_nobody_wait() -> None:
    assert blame({0: {BUSY: 1.0}}).results == {}


def test_a_story_has_a_straggler() -> None:
    story = Story(gpus=2)
    story.run(30, COMPUTING)
    reading = Host(blocked=4, running=0, io=0.6, read=1e9, reads=20.0, outstanding=4.0)
    story.run(60, WAITING, reading, others=Gpu(active=1.0, sm=0.1, power=0.3))
    scores = {index: story.node.state.stragglers[uuid(index)].score for index in (0, 1)}
    assert scores[0] > 0.2
    assert scores[1] == 0


def test_a_wait_is_counted_when_it_is_over_by_what_it_was_most_of() -> None:
    wait, over = Waited().after([(STORAGE, S), (BUSY, 0)])
    assert over is None
    wait, over = wait.after([(PEER, S * 7 // 10), (BUSY, S * 3 // 10)])
    assert over is None
    wait, over = wait.after([(BUSY, S)])
    assert (wait, over) == (NONE, Stall("storage", 2.0))
    assert NONE.after([(BUSY, S)]) == (NONE, None)
    assert Waited().after([(STORAGE, S * 4 // 10), (BUSY, S * 6 // 10)]) == (NONE, None)


@pytest.mark.parametrize(("cause", "word"), [("nvlink", "other"), ("unknown", "other"), ("fabric", "fabric")])
def test_waits_go_by_five_words(cause: str, word: str) -> None:
    assert Waited({cause: S}, S).ended().cause == word


@given(st.lists(st.floats(0, 1e4), max_size=30))
def test_every_wait_is_in_one_bucket(lengths: list[float]) -> None:
    found = counted({}, [Stall("peer", length) for length in lengths]).get("peer", StallCounts())
    assert sum(found.counts) == len(lengths)
    assert found.total_s == pytest.approx(sum(lengths))
    for place, bound in enumerate(STALL_BOUNDS_S):
        assert sum(found.counts[: place + 1]) == sum(length <= bound for length in lengths)


def test_a_node_counts_its_waits() -> None:
    story = Story()
    story.run(20, COMPUTING)
    story.run(10, WAITING, Host(blocked=4, running=0, io=0.6, read=1e9, reads=20.0, outstanding=4.0))
    story.run(20, COMPUTING, Host())
    found = story.node.state.stalls["storage"]
    assert sum(found.counts) == 2  # one for each GPU
    assert found.total_s == pytest.approx(20, abs=3)


def test_tensor_time_at_the_clock_of_the_peak_is_the_peak() -> None:
    story = Story()
    story.run(5, replace(COMPUTING, tensor=0.5, clock=1.0))
    found = tensor_intensity(story.node.state.gpus, story.node.state.samples)
    assert found[uuid(0)] == pytest.approx(0.5 * 1.98 / 1.83)
    assert story.node.state.tensor_intensity == found
    assert peak_flops(story.node.state.gpus)[uuid(0)]["bf16"] == pytest.approx(132 * 4096 * 1.83e9, rel=0.001)


def test_more_than_all_of_the_peak_is_all_of_it_and_no_reading_no_intensity() -> None:
    story = Story()
    story.run(5, replace(COMPUTING, tensor=1.0, clock=1.0), others=replace(COMPUTING, tensor=None))
    assert story.node.state.tensor_intensity == {uuid(0): 1.0}
    story.run(5, replace(COMPUTING, tensor=7.0))
    assert story.node.state.tensor_intensity == {}


def test_a_gpu_that_is_not_in_the_table_has_no_peak() -> None:
    story = Story()
    story.run(5, COMPUTING)
    gpus = {
        uuid: replace(record, identity=None) if index else record
        for index, (uuid, record) in enumerate(story.node.state.gpus.items())
    }
    assert set(peak_flops(gpus)) == {uuid(0)}
    assert set(tensor_intensity(gpus, story.node.state.samples)) == {uuid(0)}
    assert tensor_intensity(gpus, {}) == {}


@given(st.lists(st.tuples(st.integers(0, 60), st.floats(0, 1e12)), min_size=1, max_size=60))
def test_a_window_is_bounded_and_its_mean_lies_among_what_came(steps: list[tuple[int, float]]) -> None:
    window, now_ns = Window(), 0
    for pause_s, rate in steps:
        now_ns += pause_s * S
        window = window.after(now_ns, rate * 5, 5)
    assert len(window.pieces) <= 11
    assert window.mean is not None
    assert min(rate for _, rate in steps) <= window.mean * (1 + 1e-9)
    assert window.mean <= max(rate for _, rate in steps) * (1 + 1e-9)


def test_an_empty_window_has_no_mean() -> None:
    assert Window().mean is None
