# SPDX-License-Identifier: Apache-2.0
"""What is usual: learned slowly, bounded, silent until there is enough of it."""

from collections.abc import Hashable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.model.fabric import IbCounters
from gpufeed.model.gpu import GpmInterval, GpuFast
from gpufeed.model.host import Pressure
from gpufeed.model.ids import GpuKey, GpuUuid, IbPortKey, StorageKey
from gpufeed.model.sample import Sample
from gpufeed.model.storage import StorageCounters
from gpufeed.signals.baselines import MAX_ENTRIES, Baselines, Learned, fold, nudged
from gpufeed.signals.meters import Timelines
from gpufeed.signals.timeline import Segment

S = 1_000_000_000
GPU = GpuKey(GpuUuid("GPU-0"))
NFS = StorageKey("nfs", "/data")
PORT = IbPortKey("mlx5_0", 1)


def learn(
    kind: type[Sample], subject: Hashable, values: Mapping[str, float], seconds: int = 700, power: float | None = None
) -> Baselines:
    """A second of the same values, so many times."""
    baselines = Baselines()
    for second in range(seconds):
        line = (Segment(second * S, (second + 1) * S, values),)
        timelines = {(kind, subject): line}
        if power is not None:
            timelines[GpuFast, subject] = (Segment(second * S, (second + 1) * S, {"power": power}),)
        baselines = fold(baselines, {}, timelines)
    return baselines


def test_ten_minutes_of_reads_say_what_a_read_takes() -> None:
    values = {"reads": 50.0, "read_latency": 0.002}
    assert learn(StorageCounters, NFS, values).usual("read_latency", "nfs:/data") == pytest.approx(0.002)
    assert learn(StorageCounters, NFS, values, seconds=500).usual("read_latency", "nfs:/data") is None
    assert learn(StorageCounters, NFS, {"reads": 1.0, "read_latency": 0.002}).entries == {}
    assert learn(StorageCounters, NFS, {"reads": 50.0}).entries == {}


def test_congestion_is_measured_by_what_a_busy_port_usually_waits() -> None:
    values = {"wait": 5e6, "transmit": 1e9}
    assert learn(IbCounters, PORT, values).usual("wait_per_byte", "mlx5_0/1") == pytest.approx(0.005)
    assert learn(IbCounters, PORT, {"wait": 5e6, "transmit": 1e3}).entries == {}
    assert learn(IbCounters, PORT, {"transmit": 1e9}).entries == {}


def test_an_idle_gpu_teaches_its_power() -> None:
    idle = learn(GpmInterval, GPU, {"graphics": 0.0, "tensor": 0.0}, power=72.0)
    assert idle.usual("power_idle", GPU.uuid) == pytest.approx(72)


@pytest.mark.parametrize("values", [{"graphics": 0.5}, {"tensor": 0.5}, {"graphics": 0.0}])
def test_a_gpu_that_works_or_whose_power_is_not_read_teaches_nothing(values: dict[str, float]) -> None:
    power = None if values == {"graphics": 0.0} else 300.0
    assert learn(GpmInterval, GPU, values, seconds=3, power=power).entries == {}


def test_a_target_is_full_at_the_rate_at_which_reads_queue_and_take_longer_than_usual() -> None:
    usual = learn(StorageCounters, NFS, {"reads": 50.0, "read_latency": 0.002, "read": 1e9, "read_outstanding": 1.0})
    assert ("read_full", "nfs:/data") not in usual.entries
    slow = {"reads": 50.0, "read_latency": 0.004, "read": 4e9, "read_outstanding": 8.0}
    for second in range(700, 1400):
        line = (Segment(second * S, (second + 1) * S, slow),)
        usual = fold(usual, {}, {(StorageCounters, NFS): line})
        if second == 900:
            assert usual.usual("read_full", "nfs:/data") is None  # not for ten minutes yet
    learned = usual.entries["read_full", "nfs:/data"]
    assert learned.value == pytest.approx(4e9)


def test_only_new_segments_teach() -> None:
    timelines: Timelines = {(StorageCounters, NFS): (Segment(0, S, {"reads": 50.0, "read_latency": 0.002}),)}
    once = fold(Baselines(), {}, timelines)
    assert fold(once, timelines, timelines).entries == once.entries
    assert (
        fold(
            Baselines(), {}, {(StorageCounters, NFS): (), (Pressure, ("", "io")): timelines[StorageCounters, NFS]}
        ).entries
        == {}
    )


def test_there_are_never_more_than_so_many() -> None:
    full = Baselines({("read_latency", str(number)): Learned(1.0, 1.0) for number in range(MAX_ENTRIES)})
    timelines: Timelines = {(StorageCounters, NFS): (Segment(0, S, {"reads": 50.0, "read_latency": 0.002}),)}
    after = fold(full, {}, timelines).entries
    assert len(after) == MAX_ENTRIES
    assert ("read_latency", "nfs:/data") in after


def test_what_was_watched_for_long_outlives_mounts_that_come_and_go() -> None:
    names = ["nfs:/data", *map(str, range(MAX_ENTRIES - 1))]
    baselines = Baselines({("read_latency", one): Learned(1.0, 5.0) for one in names})
    baselines = Baselines({**baselines.entries, ("read_latency", "nfs:/data"): Learned(0.002, 700.0)})
    for pod in range(20):
        line = (Segment(0, S, {"reads": 50.0, "read_latency": 0.1}),)
        baselines = fold(baselines, {}, {(StorageCounters, StorageKey("nfs", f"/pods/{pod}")): line})
    assert baselines.usual("read_latency", "nfs:/data") == 0.002
    assert len(baselines.entries) == MAX_ENTRIES


def test_a_quantile_comes_to_rest_where_its_share_is_below() -> None:
    learned = None
    for second in range(20_000):
        learned = nudged(learned, float(1 + second * 37 % 100), 0.9, 1.0)
    assert learned is not None
    assert 85 <= learned.value <= 95


@given(st.lists(st.tuples(st.floats(allow_nan=False), st.floats(0, 100)), min_size=1, max_size=30))
def test_one_wild_value_moves_it_only_a_little(values: list[tuple[float, float]]) -> None:
    learned = nudged(None, 1.0, 0.5, 1.0)
    for value, length_s in values:
        before = learned.value
        learned = nudged(learned, value, 0.5, length_s)
        assert before / 1.25 <= learned.value <= before * 1.25
