# SPDX-License-Identifier: Apache-2.0
"""GPUs as families: absent is absent, zero is zero, and what alerts stand on stands."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from exposition import nodes
from exposition.reading import rows_of
from gpufeed.model.frame import FrameTime
from gpufeed.model.gpu import GpmInterval, GpuFast, GpuProcesses, GpuSlow, PcieBytes
from gpufeed.model.ids import GpuUuid
from gpufeed.model.state import CAUSES, Attribution, GpuRecord, GpuTotals, NodeState, StateCause

SECOND = nodes.SECOND
G0 = {"gpu": "0", "uuid": nodes.uuid(0)}


def bare(**records: GpuRecord) -> NodeState:
    """A node of which nothing is known but that it has these GPUs."""
    gpus: Mapping[GpuUuid, GpuRecord] = {record.uuid: record for record in records.values()}
    return NodeState(time=nodes.TIME, gpus=gpus)


def test_readings_come_out_in_their_unit_under_the_index_and_uuid_of_their_gpu() -> None:
    state = nodes.node(gpus=3)
    assert rows_of(state, "gpufeed_gpu_energy_joules_total") == [
        (G0, 123456.5),
        ({"gpu": "1", "uuid": nodes.uuid(1)}, 123457.5),
        ({"gpu": "2", "uuid": nodes.uuid(2)}, 123458.5),
    ]
    assert rows_of(state, "gpufeed_gpu_temperature_celsius")[0] == (G0 | {"sensor": "gpu"}, 61.0)
    assert rows_of(state, "gpufeed_gpu_pcie_receive_bytes_total")[0] == (G0, 5_000_000_000.0)


def test_a_gpu_that_cannot_give_a_value_has_no_row_and_one_that_measured_zero_has() -> None:
    state = nodes.with_samples(
        bare(a=nodes.record(0), b=nodes.record(1)),
        GpuFast(gpu=nodes.key(0), power_w=0.0),
        GpuFast(gpu=nodes.key(1), utilization_ratio=0.0),
    )
    assert rows_of(state, "gpufeed_gpu_power_watts") == [(G0, 0.0)]
    assert rows_of(state, "gpufeed_gpu_utilization_ratio") == [({"gpu": "1", "uuid": nodes.uuid(1)}, 0.0)]
    assert rows_of(state, "gpufeed_gpu_memory_used_bytes") == []
    assert rows_of(state, "gpufeed_gpu_clock_event_seconds_total") == []
    assert rows_of(state, "gpufeed_gpu_clock_event_active") == []


@pytest.mark.parametrize(
    ("condition", "up", "present"),
    [
        ("ok", 1, 1),
        ("denied", 1, 1),
        ("released", 1, 1),
        ("lost", 0, 0),
        ("missing", 0, 0),
        ("hung", 0, 1),
        ("reset_required", 0, 1),
    ],
)
def test_a_gpu_is_up_unless_it_is_of_no_use(condition: str, up: int, present: int) -> None:
    state = bare(a=nodes.record(0, condition=condition))
    assert rows_of(state, "gpufeed_gpu_up") == [(G0, up)]
    assert rows_of(state, "gpufeed_gpus_present") == [({}, present)]


def test_a_gpu_without_readings_keeps_its_description_its_xids_and_whether_it_is_up() -> None:
    state = bare(a=nodes.record(0, condition="lost"))
    [(labels, value)] = rows_of(state, "gpufeed_gpu_info")
    assert value == 1
    assert labels == G0 | {
        "name": "NVIDIA H100 80GB HBM3",
        "serial": "1650123000",
        "pci_bus_id": "0000:18:00.0",
        "minor": "0",
        "architecture": "hopper",
        "part_number": "692-2G520-0200-000",
        "vbios": "96.00.74.00.01",
        "inforom": "G520.0200.00.05",
        "numa_node": "0",
        "module_id": "1",
    }
    classes = {labels["class"]: value for labels, value in rows_of(state, "gpufeed_gpu_xid_class_errors_total")}
    assert classes == {"unusable": 0, "contained": 0, "app": 0, "link": 0, "info": 0}
    assert rows_of(state, "gpufeed_gpu_xid_errors_total") == []


def test_what_is_not_known_of_a_gpu_is_an_empty_label() -> None:
    identity = replace_identity(nodes.record(0), serial=None, numa_node=None)
    [(labels, _)] = rows_of(bare(a=identity), "gpufeed_gpu_info")
    assert (labels["serial"], labels["numa_node"], labels["name"]) == ("", "", "NVIDIA H100 80GB HBM3")


def replace_identity(record: GpuRecord, **changes: object) -> GpuRecord:
    from msgspec.structs import replace as changed

    assert record.identity is not None
    return replace(record, identity=changed(record.identity, **changes))


def test_a_gpu_whose_identity_was_never_read_has_no_info() -> None:
    state = bare(a=nodes.record(0, identity=None))
    assert rows_of(state, "gpufeed_gpu_info") == []
    assert rows_of(state, "gpufeed_gpu_up") == [(G0, 1)]


def test_readings_of_a_gpu_that_is_not_remembered_are_left_out() -> None:
    state = nodes.with_samples(bare(a=nodes.record(0)), GpuFast(gpu=nodes.key(5), power_w=1.0))
    assert rows_of(state, "gpufeed_gpu_power_watts") == []


def test_without_driver_and_gpus_nothing_is_said_of_how_many_are_present() -> None:
    assert rows_of(NodeState(time=nodes.TIME), "gpufeed_gpus_present") == []


def test_gpus_that_should_be_there_make_none_present_a_fact() -> None:
    state = NodeState(time=nodes.TIME, gpus_expected={"pci": 8})
    assert rows_of(state, "gpufeed_gpus_present") == [({}, 0)]
    assert rows_of(state, "gpufeed_gpus_expected") == [({"origin": "pci"}, 8)]


def test_use_is_remembered_for_15_minutes() -> None:
    used_at = 100 * SECOND
    gpu = nodes.record(0, in_use_at_ns=used_at)
    for later_ns, recently in ((15 * 60 * SECOND, 1), (15 * 60 * SECOND + 1, 0)):
        now = FrameTime(monotonic_ns=used_at + later_ns, boottime_ns=0, wall_ns=0)
        state = replace(bare(a=gpu), time=now)
        assert rows_of(state, "gpufeed_gpu_in_use_recently") == [(G0, recently)]
        assert rows_of(state, "gpufeed_host_in_use_recently") == [({}, recently)]


def test_a_gpu_that_was_never_used_is_not_in_use() -> None:
    assert rows_of(bare(a=nodes.record(0, in_use_at_ns=None)), "gpufeed_gpu_in_use_recently") == [(G0, 0)]


@pytest.mark.parametrize(
    ("code", "rows"),
    [
        (0, {"none": 1}),
        (1, {"none": 0, "gpu_reset": 1}),
        (4, {"none": 0, "drain_and_reset": 1}),
        (99, {"none": 0, "code_99": 1}),
    ],
)
def test_the_recovery_action_has_a_row_when_in_force_and_none_always(code: int, rows: dict[str, int]) -> None:
    state = nodes.with_samples(bare(a=nodes.record(0)), GpuSlow(gpu=nodes.key(0), recovery_action=code))
    assert {labels["action"]: value for labels, value in rows_of(state, "gpufeed_gpu_recovery_action")} == rows


def test_a_driver_that_knows_no_recovery_action_gives_no_row() -> None:
    state = nodes.with_samples(bare(a=nodes.record(0)), GpuSlow(gpu=nodes.key(0), ecc_enabled=False))
    assert rows_of(state, "gpufeed_gpu_recovery_action") == []
    assert rows_of(state, "gpufeed_gpu_ecc_enabled") == [(G0, 0)]
    assert rows_of(state, "gpufeed_gpu_mig_enabled") == []


def test_clock_events_of_the_moment_have_a_row_for_every_reason() -> None:
    state = nodes.with_samples(bare(a=nodes.record(0)), GpuFast(gpu=nodes.key(0), clock_events=0x4 | 0x40))
    active = {labels["reason"]: value for labels, value in rows_of(state, "gpufeed_gpu_clock_event_active")}
    assert {reason for reason, value in active.items() if value} == {"sw_power_cap", "hw_thermal"}
    assert active["hw_power_brake"] == 0


def test_clock_event_counters_are_seconds() -> None:
    sample = GpuFast(gpu=nodes.key(0), clock_event_ns={"hw_thermal": 1_500_000_000})
    state = nodes.with_samples(bare(a=nodes.record(0)), sample)
    assert rows_of(state, "gpufeed_gpu_clock_event_seconds_total") == [(G0 | {"reason": "hw_thermal"}, 1.5)]


def test_engine_seconds_and_ratios_are_apart() -> None:
    state = nodes.node(gpus=1)
    seconds = {labels["engine"]: value for labels, value in rows_of(state, "gpufeed_gpu_engine_active_seconds_total")}
    ratios = {labels["engine"]: value for labels, value in rows_of(state, "gpufeed_gpu_engine_active_ratio")}
    assert seconds == {"graphics": 98.0, "sm": 90.0, "tensor": 55.0, "dram": 40.0}
    assert ratios == {"graphics": 0.98, "sm": 0.9, "tensor": 0.55, "dram": 0.4}


def test_where_a_board_is_split_its_instances_have_rows_and_it_has_none() -> None:
    one, two = nodes.key(0, 1, 0), nodes.key(0, 2, 0)
    other = nodes.key(1)
    state = nodes.with_samples(
        bare(a=nodes.record(0), b=nodes.record(1)),
        *(GpuFast(gpu=gpu, memory_used_bytes=7, power_w=70.0) for gpu in (nodes.key(0), other)),
        *(GpuFast(gpu=gpu, memory_used_bytes=3, power_w=30.0) for gpu in (two, one)),
        *(GpuProcesses(gpu=gpu, processes=()) for gpu in (nodes.key(0), one)),
        *(GpmInterval(gpu=gpu, began_ns=0, ended_ns=1, sm_ratio=0.5) for gpu in (nodes.key(0), one)),
    )
    state = replace(
        state,
        gpu_totals=dict.fromkeys((nodes.key(0), one), GpuTotals(engine_active_s={"sm": 1.0}, pcie_receive_bytes=9.0)),
        attributions=dict.fromkeys((nodes.key(0), one), nodes.attribution()),
    )
    sliced = {"gpu": "0", "uuid": nodes.uuid(0), "gpu_instance": "1", "compute_instance": "0"}
    assert rows_of(state, "gpufeed_gpu_memory_used_bytes") == [
        (sliced, 3),
        (sliced | {"gpu_instance": "2"}, 3),
        ({"gpu": "1", "uuid": nodes.uuid(1)}, 7),
    ]
    assert [labels for labels, _ in rows_of(state, "gpufeed_gpu_power_watts")] == [
        G0,
        {"gpu": "1", "uuid": nodes.uuid(1)},
    ]
    assert rows_of(state, "gpufeed_gpu_processes") == [(sliced, 0)]
    assert rows_of(state, "gpufeed_gpu_engine_active_ratio") == [(sliced | {"engine": "sm"}, 0.5)]
    assert rows_of(state, "gpufeed_gpu_engine_active_seconds_total") == [(sliced | {"engine": "sm"}, 1.0)]
    assert rows_of(state, "gpufeed_gpu_pcie_receive_bytes_total") == [(G0, 9.0)]
    assert [labels for labels, _ in rows_of(state, "gpufeed_gpu_tracked_seconds_total")] == [sliced]
    states = rows_of(state, "gpufeed_gpu_state_seconds_total")
    assert {labels["gpu_instance"] for labels, _ in states} == {"1"}


def test_totals_vanish_with_the_readings_they_are_made_of() -> None:
    totals = GpuTotals(engine_active_s={"sm": 1.0}, pipe_active_s={"hmma": 1.0}, pcie_receive_bytes=9.0)
    silent = replace(bare(a=nodes.record(0)), gpu_totals={nodes.key(0): totals})
    names = ("gpu_engine_active_seconds_total", "gpu_pipe_active_seconds_total", "gpu_pcie_receive_bytes_total")
    assert [rows_of(silent, f"gpufeed_{name}") for name in names] == [[], [], []]
    counting = nodes.with_samples(silent, PcieBytes(gpu=nodes.key(0), receive_bytes=1))
    assert [len(rows_of(counting, f"gpufeed_{name}")) for name in names] == [0, 0, 1]
    sampling = nodes.with_samples(silent, GpmInterval(gpu=nodes.key(0), began_ns=0, ended_ns=1))
    assert [len(rows_of(sampling, f"gpufeed_{name}")) for name in names] == [1, 1, 1]


def attributed(spent: dict[StateCause, int]) -> NodeState:
    found = Attribution(
        state_ns=spent,
        tracked_ns=sum(spent.values()),
        decided_until_ns=nodes.NOW - 3 * SECOND,
        current=StateCause("busy", "tensor"),
    )
    return replace(bare(a=nodes.record(0)), attributions={nodes.key(0): found})


def test_a_new_gpu_has_the_usual_states_at_zero_and_no_others() -> None:
    pairs = {
        (labels["state"], labels["cause"]): value
        for labels, value in rows_of(attributed({}), "gpufeed_gpu_state_seconds_total")
    }
    assert pairs == dict.fromkeys(
        [
            ("busy", "tensor"), ("busy", "memory"), ("busy", "other"), ("communicating", "nvlink"),
            ("communicating", "fabric"), ("starved", "storage"), ("starved", "host_cpu"), ("starved", "unknown"),
            ("idle_held", ""), ("idle_free", ""),
        ],
        0,
    )  # fmt: skip


def test_a_state_appears_with_its_first_second() -> None:
    spent = {StateCause("fault", "lost"): 1, StateCause("fault", "xid"): 0, StateCause("idle_free", ""): 5 * SECOND}
    pairs = {
        (labels["state"], labels["cause"]): value
        for labels, value in rows_of(attributed(spent), "gpufeed_gpu_state_seconds_total")
    }
    assert pairs[("fault", "lost")] == 1e-9
    assert ("fault", "xid") not in pairs
    assert pairs[("idle_free", "")] == 5.0


def test_state_seconds_add_up_to_the_tracked_seconds_after_ten_years() -> None:
    pairs = [StateCause(state, cause) for state, causes in CAUSES.items() for cause in causes]
    state = attributed({pair: 10**16 + 3 * place + 1 for place, pair in enumerate(pairs)})
    total = sum(value for _, value in rows_of(state, "gpufeed_gpu_state_seconds_total"))
    [(_, tracked)] = rows_of(state, "gpufeed_gpu_tracked_seconds_total")
    assert tracked > 3e8
    assert total == pytest.approx(tracked, abs=1e-6)


def test_what_is_decided_is_said_on_the_wall_clock() -> None:
    [(_, until)] = rows_of(attributed({}), "gpufeed_attribution_decided_timestamp_seconds")
    assert until == 1_700_000_000 - 3
    assert rows_of(bare(a=nodes.record(0)), "gpufeed_attribution_decided_timestamp_seconds") == []
