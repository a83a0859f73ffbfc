# SPDX-License-Identifier: Apache-2.0
"""A part of a board: what is its own, and what is not taken for its own."""

import pytest

from gpufeed.model.gpu import GpuFast, GpuProcess, GpuProcesses, MigInstance, MigInstances
from gpufeed.model.ids import GpuKey, GpuUuid, GroupName, LaneId
from gpufeed.model.sample import Sample
from gpufeed.model.state import Held, StateCause
from gpufeed.signals.baselines import Baselines
from gpufeed.signals.decision import decide
from gpufeed.signals.features import GpuFeatures
from gpufeed.signals.instance import instance_features
from gpufeed.signals.inventory import is_part_held
from gpufeed.signals.samples import Samples
from gpufeed.signals.settings import Settings
from gpufeed.signals.view import View

BOARD = GpuKey(GpuUuid("GPU-0"))
FIRST, SECOND = GpuKey(BOARD.uuid, 1), GpuKey(BOARD.uuid, 2)


def holding(*samples: Sample) -> Samples:
    found: dict[type[Sample], dict[object, Held[Sample]]] = {}
    for sample in samples:
        found.setdefault(type(sample), {})[sample.subject] = Held(
            sample=sample, lane=LaneId("gpu0"), group=GroupName("x"), collector="nvml", read_at_ns=0, stale_at_ns=1
        )
    return found


def view(samples: Samples) -> View:
    return View(timelines={}, samples=samples, records={}, baselines=Baselines(), settings=Settings())


@pytest.mark.parametrize(
    ("is_sharing", "waiting"), [(False, StateCause("starved", "unknown")), (True, StateCause("unknown", "unsupported"))]
)
def test_what_the_host_does_counts_only_while_one_instance_alone_is_held(is_sharing: bool, waiting: StateCause) -> None:
    of = GpuFeatures(active=0.25, has_gpm=True, sm=0.25, tensor=0.2, dram=0.1, is_held=True, is_sharing=is_sharing)
    shares = dict(decide(FIRST, view({}), of, (0, 10**9), is_company=False).shares)
    assert shares[waiting] == pytest.approx(0.75)
    assert shares[StateCause("busy", "tensor")] == pytest.approx(0.25)


def test_an_instance_is_held_by_its_own_processes_and_memory_alone() -> None:
    mine = GpuProcesses(gpu=GpuKey(BOARD.uuid, 1, 0), processes=(GpuProcess(pid=7),))
    none = GpuProcesses(gpu=GpuKey(BOARD.uuid, 2, 0), processes=())
    samples = holding(mine, none)
    assert [is_part_held(key, samples) for key in (FIRST, SECOND, BOARD)] == [True, False, True]
    full = holding(GpuFast(gpu=SECOND, memory_used_bytes=4 << 30, memory_total_bytes=10 << 30))
    assert [is_part_held(key, full) for key in (FIRST, SECOND)] == [None, True]


def test_without_gpm_nothing_is_said_of_an_instance() -> None:
    split = MigInstances(gpu=BOARD, instances=(MigInstance(1, 0), MigInstance(2, 0)))
    assert instance_features(FIRST, view(holding(split)), 0, 10**9) is None


@pytest.mark.parametrize(
    ("key", "other", "is_within"),
    [
        (GpuKey(BOARD.uuid, 1, 0), BOARD, True),
        (GpuKey(BOARD.uuid, 1, 0), FIRST, True),
        (GpuKey(BOARD.uuid, 1, 0), SECOND, False),
        (GpuKey(BOARD.uuid, 1, 0), GpuKey(BOARD.uuid, 1, 1), False),
        (BOARD, FIRST, False),
        (BOARD, GpuKey(GpuUuid("GPU-1")), False),
    ],
)
def test_a_part_is_within_its_instance_and_its_board(key: GpuKey, other: GpuKey, is_within: bool) -> None:
    assert key.is_within(other) is is_within
