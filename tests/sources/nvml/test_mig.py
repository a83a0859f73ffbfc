# SPDX-License-Identifier: Apache-2.0
"""Boards that are split: every instance tells what is its own, and nothing stays of one that is gone."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gpufeed.clock import read_frame_time
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.model.frame import GpuEvent
from gpufeed.model.gpu import GpmInterval, GpuFast, GpuProcesses, GpuSlow, MigInstance, MigInstances
from gpufeed.model.ids import GpuKey, GpuUuid, LaneId
from gpufeed.model.state import NodeState
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.activity import Incident
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.faults import Fault
from gpufeed.simulate.hardware import MODELS
from gpufeed.simulate.mig import LAYOUTS
from gpufeed.simulate.scenarios import HEALTHY
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.sources.nvml.gpu_reader import FAST, GPM, PROCESSES, SLOW, XID, GpuReader
from gpufeed.step import Settings, initial, step
from gpufeed.units import NS_PER_S
from nvml_bench import Bench, enter, only

S = NS_PER_S
TICK_NS = S // 2


@contextmanager
def split(path: Path, layout: str, model: str = "h100", *incidents: Incident) -> Iterator[Bench]:
    with enter(path, replace(HEALTHY, mig_layout=layout, incidents=incidents), model=model) as node:  # type: ignore[arg-type]
        yield Bench(node)


def said(reader: GpuReader) -> tuple[MigInstance, ...]:
    return only(reader.read(SLOW), MigInstances).instances


def keys(reader: GpuReader, group: str, kind: type[GpuFast | GpuProcesses | GpmInterval | GpuSlow]) -> list[GpuKey]:
    return [sample.gpu for sample in reader.read(group).samples if isinstance(sample, kind)]  # type: ignore[arg-type]


def uuid_of(reader: GpuReader) -> GpuUuid:
    return only(reader.read(SLOW), MigInstances).gpu.uuid


@pytest.mark.parametrize(
    ("layout", "instances"),
    [
        ("off", []),
        ("empty", []),
        ("7x1g", [(7, 0), (8, 0), (9, 0), (10, 0), (11, 0), (12, 0), (13, 0)]),
        ("mixed", [(2, 0), (5, 0), (9, 0)]),  # with holes at places 1, 3, 4 and 6
        ("shared", [(1, 0), (1, 1), (6, 0)]),
    ],
)
def test_every_instance_is_found_and_holes_are_passed_over(
    layout: str, instances: list[tuple[int, int]], tmp_path: Path
) -> None:
    with split(tmp_path, layout) as bench:
        reader, _ = bench.reader()
        assert [(each.gi, each.ci) for each in said(reader)] == instances


def test_a_generation_without_mig_has_no_instances(tmp_path: Path) -> None:
    with enter(tmp_path, model="l40s") as node:
        assert said(Bench(node).reader()[0]) == ()


def test_memory_is_of_the_gpu_instance_and_processes_are_of_the_compute_instance(tmp_path: Path) -> None:
    with split(tmp_path, "shared") as bench:
        reader, desk = bench.reader()
        uuid = uuid_of(reader)
        outcome = reader.read(PROCESSES)
        fast = {sample.gpu: sample for sample in outcome.samples if isinstance(sample, GpuFast)}
        processes = {sample.gpu: sample for sample in outcome.samples if isinstance(sample, GpuProcesses)}

        # the two compute instances share the memory of theirs: it is counted once
        assert set(fast) == {GpuKey(uuid, 1), GpuKey(uuid, 6)}
        assert {key: each.memory_total_bytes for key, each in fast.items()} == dict.fromkeys(
            fast, MODELS["h100"].memory_bytes // 2
        )
        assert {key: len(each.processes) for key, each in processes.items()} == {
            GpuKey(uuid, 1, 0): 1,
            GpuKey(uuid, 1, 1): 0,
            GpuKey(uuid, 6, 0): 0,
        }
        assert desk.board.gpu_pids[LaneId("gpu0")] == (uuid, (int(bench.true("pid0")),))
        assert all(each.power_w is None and each.temperature_c is None for each in fast.values())


def test_engines_are_each_instances_own_and_links_stay_the_boards(tmp_path: Path) -> None:
    with split(tmp_path, "mixed") as bench:
        reader, _ = bench.reader()
        uuid = uuid_of(reader)
        reader.read(PROCESSES)
        reader.read(GPM)
        before = bench.true("sm_s")
        bench.step()
        found = {sample.gpu: sample for sample in reader.read(GPM).samples if isinstance(sample, GpmInterval)}

        assert set(found) == {GpuKey(uuid), GpuKey(uuid, 2), GpuKey(uuid, 5), GpuKey(uuid, 9)}
        assert found[GpuKey(uuid, 2)].sm_ratio == pytest.approx((bench.true("sm_s") - before) / 0.5, abs=1e-6)
        assert found[GpuKey(uuid, 5)].sm_ratio == 0
        assert found[GpuKey(uuid)].pcie_receive_bytes_per_s is not None
        assert {found[GpuKey(uuid, gi)].pcie_receive_bytes_per_s for gi in (2, 5, 9)} == {None}
        assert {found[GpuKey(uuid, gi)].nvlink_receive_bytes_per_s for gi in (2, 5, 9)} == {None}


def test_without_gpm_nothing_is_said_of_engines_and_memory_is_there(tmp_path: Path) -> None:
    with split(tmp_path, "mixed", "a100") as bench:
        reader, _ = bench.reader()
        uuid = uuid_of(reader)
        assert keys(reader, PROCESSES, GpuFast) == [GpuKey(uuid, 2), GpuKey(uuid, 5), GpuKey(uuid, 9)]
        assert keys(reader, GPM, GpmInterval) == []
        assert only(reader.read(FAST), GpuFast).utilization_ratio is None


def test_an_event_finds_the_new_instances_and_gpm_begins_anew(tmp_path: Path) -> None:
    with split(tmp_path, "mixed", "h100", Incident(kind="mig", from_ns=2 * S, mig_layout="7x1g")) as bench:
        reader, _ = bench.reader()
        uuid = uuid_of(reader)
        for group in (XID, PROCESSES, GPM):
            reader.read(group)
        bench.step(5)
        events = reader.read(XID).events
        assert [event.kind for event in events if isinstance(event, GpuEvent)] == ["mig_changed"]
        assert keys(reader, PROCESSES, GpuProcesses) == [GpuKey(uuid, gi, 0) for gi in range(7, 14)]
        assert keys(reader, GPM, GpmInterval) == []  # no interval reaches from one life into another
        bench.step()
        assert keys(reader, GPM, GpmInterval) == [GpuKey(uuid), *(GpuKey(uuid, gi) for gi in range(7, 14))]


def test_without_an_event_an_instance_that_is_gone_is_missed_and_the_others_looked_for(tmp_path: Path) -> None:
    with split(tmp_path, "mixed", "h100", Incident(kind="mig", from_ns=2 * S, mig_layout="shared")) as bench:
        reader, _ = bench.reader()
        uuid = uuid_of(reader)
        reader.read(PROCESSES)
        bench.step(5)
        first = reader.read(PROCESSES)
        assert first.samples == ()
        assert first.failures == ()
        assert keys(reader, PROCESSES, GpuProcesses) == [GpuKey(uuid, 1, 0), GpuKey(uuid, 1, 1), GpuKey(uuid, 6, 0)]


def test_mig_switched_off_without_an_event_gives_back_what_the_whole_board_has(tmp_path: Path) -> None:
    with split(tmp_path, "mixed", "h100", Incident(kind="mig", from_ns=2 * S, mig_layout="off")) as bench:
        reader, _ = bench.reader()
        reader.read(SLOW)
        assert only(reader.read(FAST), GpuFast).utilization_ratio is None
        bench.step(5)
        assert said(reader) == ()
        assert only(reader.read(FAST), GpuFast).utilization_ratio is not None


def test_a_mode_that_cannot_be_read_for_once_ends_no_instance(tmp_path: Path) -> None:
    with split(tmp_path, "mixed") as bench:
        reader, _ = bench.reader()
        assert len(said(reader)) == 3
        bench.node.set_faults(Fault(effect="error", code=999, function="nvmlDeviceGetMigMode", gpu=0))
        assert len(said(reader)) == 3


def test_a_handle_that_stands_for_another_instance_is_not_believed(tmp_path: Path) -> None:
    with split(tmp_path, "mixed") as bench:
        reader, _ = bench.reader()
        reader.read(PROCESSES)
        bench.node.set_faults(
            Fault(effect="error", code=2, function="nvmlDeviceGetGpuInstanceId", gpu=0),
        )
        assert reader.read(PROCESSES).samples == ()
        bench.node.set_faults()
        assert len(keys(reader, PROCESSES, GpuProcesses)) == 3


def test_one_instance_that_may_not_be_looked_at_is_named_and_the_board_goes_on(tmp_path: Path) -> None:
    with split(tmp_path, "mixed") as bench:
        bench.node.set_faults(
            Fault(effect="error", code=4, function="nvmlDeviceGetMigDeviceHandleByIndex", gpu=0),
        )
        reader, _ = bench.reader()
        outcome = reader.read(SLOW)
        assert only(outcome, MigInstances).instances == ()
        assert {failure.reason for failure in outcome.failures} == {"denied"}
        assert only(reader.read(FAST), GpuFast).power_w is not None


def test_gpm_that_fails_for_instances_leaves_the_boards(tmp_path: Path) -> None:
    with split(tmp_path, "mixed") as bench:
        bench.node.set_faults(Fault(effect="not_supported", function="nvmlGpmMigSampleGet"))
        reader, _ = bench.reader()
        uuid = uuid_of(reader)
        reader.read(GPM)
        bench.step()
        assert keys(reader, GPM, GpmInterval) == [GpuKey(uuid)]


class Drive:
    """A node of two boards, its probe and the fold."""

    def __init__(self, scenario: object, root: Path, model: str = "h100") -> None:
        self.clock = SteppedClock()
        self.simulated = SteppedNode(scenario, model, 2, root=root, clock=self.clock)  # type: ignore[arg-type]
        self.node = initial(Settings(), read_frame_time(self.clock))

    def run(self, seconds: int) -> list[NodeState]:
        states = []
        with self.simulated:
            probe = InlineProbe(self.simulated.config(), BUILTIN, self.clock, self.simulated.is_blocked)
            for _ in range(seconds * S // TICK_NS):
                self.node = step(self.node, probe.tick())
                states.append(self.node.state)
                self.simulated.advance(TICK_NS)
            probe.close()
        return states


def rows_of(state: NodeState, name: str) -> list[tuple[str, ...]]:
    return [
        labels
        for family in families(state, ServerFacts())
        if family.definition.name == name
        for labels, _ in family.rows
    ]


SPLIT_FAMILIES = (
    "gpu_memory_used_bytes",
    "gpu_processes",
    "gpu_engine_active_seconds_total",
    "gpu_state_seconds_total",
)
BOARD_FAMILIES = ("gpu_power_watts", "gpu_energy_joules_total", "gpu_clock_hertz", "gpu_pcie_receive_bytes_total")


def test_a_family_has_rows_of_the_board_or_of_its_instances_and_never_both(tmp_path: Path) -> None:
    state = Drive("mig", tmp_path).run(8)[-1]
    for name in SPLIT_FAMILIES:
        rows = rows_of(state, f"gpufeed_{name}")
        assert {row[2] for row in rows} == {"2", "5", "9"}, name
    for name in BOARD_FAMILIES:
        rows = rows_of(state, f"gpufeed_{name}")
        assert rows, name
        assert len(rows) == len(set(rows)), name


def test_time_is_attributed_to_each_instance_and_adds_up(tmp_path: Path) -> None:
    drive = Drive("mig", tmp_path)
    for state in drive.run(15):
        for found in state.attributions.values():
            assert sum(found.state_ns.values()) == found.tracked_ns
    uuid = next(uuid for uuid, gpu in drive.node.state.gpus.items() if gpu.index == 0)
    used, empty = (drive.node.state.attributions[GpuKey(uuid, gi)] for gi in (2, 5))
    assert used.current.state == "busy"
    assert (empty.current.state, empty.current.cause) == ("idle_free", "")
    assert used.tracked_ns > 10 * S


def test_without_gpm_an_instances_time_is_unknown(tmp_path: Path) -> None:
    drive = Drive("mig", tmp_path, "a100")
    drive.run(8)
    uuid = next(uuid for uuid, gpu in drive.node.state.gpus.items() if gpu.index == 0)
    assert {pair.state for pair in drive.node.state.attributions[GpuKey(uuid, 2)].state_ns} == {"unknown"}


def test_nothing_stays_of_instances_that_were_destroyed(tmp_path: Path) -> None:
    states = Drive("mig_recreated", tmp_path).run(25)
    uuid = next(uuid for uuid, gpu in states[-1].gpus.items() if gpu.index == 1)
    before, after = states[16], states[-1]
    assert {key.gi for key in before.attributions if key.uuid == uuid and key.is_instance} == set(range(7, 14))
    assert {key.gi for key in after.attributions if key.uuid == uuid and key.is_instance} == {2, 5, 9}
    for name in SPLIT_FAMILIES:
        rows = [row for row in rows_of(after, f"gpufeed_{name}") if row[1] == uuid]
        assert {row[2] for row in rows} == {"2", "5", "9"}, name


def test_a_lost_board_takes_the_time_of_its_instances_with_it(tmp_path: Path) -> None:
    lost = replace(HEALTHY, mig_layout="mixed", incidents=(Incident(kind="lost", gpu=0, from_ns=10 * S),))
    drive = Drive(lost, tmp_path)
    drive.run(25)
    state = drive.node.state
    uuid = next(uuid for uuid, gpu in state.gpus.items() if gpu.index == 0)
    assert {found.current for key, found in state.attributions.items() if key.uuid == uuid} == {("fault", "lost")}
    assert {key.gi for key in state.attributions if key.uuid == uuid} == {None, 2, 5, 9}


def test_every_layout_fits_its_board() -> None:
    for layout in LAYOUTS.values():
        places = {each.gi: each for each in layout}
        assert sum(each.slices for each in places.values()) <= 7
        assert sum(each.memory_slices for each in places.values()) <= 8
        assert len({each.place for each in layout}) == len(layout)
