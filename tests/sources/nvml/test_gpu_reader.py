# SPDX-License-Identifier: Apache-2.0
"""A GPU's lane: it always says how the GPU is, loses one thing at a time, and finds what comes back."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpufeed.errors import Broken, DeviceLost, SourceError
from gpufeed.model.frame import XidEvent
from gpufeed.model.gpu import (
    GpmInterval,
    GpuCondition,
    GpuFast,
    GpuIdentity,
    GpuProcesses,
    GpuSlow,
    MigInstances,
    NvlinkTotals,
    PcieBytes,
)
from gpufeed.model.gpu_errors import GpuErrorDetail, GpuErrors
from gpufeed.model.nvlink import NvlinkLinks
from gpufeed.simulate.faults import Fault
from gpufeed.sources.contract import Outcome
from gpufeed.sources.nvml.gpu_reader import FAST, GPM, LINKS, NVLINK, PROCESSES, RARE, SLOW, XID, GpuReader
from gpufeed.units import NS_PER_S
from nvml_bench import Bench, enter, group, only, words

EVERY_TICK = (FAST, XID, GPM, NVLINK)
SECONDARY = (XID, GPM, NVLINK, PROCESSES, SLOW, LINKS, RARE)
LOST = Fault(effect="lost", gpu=0)


def condition(outcome: Outcome) -> str:
    return only(outcome, GpuCondition).condition


def settle(bench: Bench, reader: GpuReader) -> None:
    """Two ticks of everything: all is probed, GPM has its first sample."""
    for _ in range(2):
        for name in (*EVERY_TICK, PROCESSES, SLOW, LINKS, RARE):
            reader.read(name)
        bench.step()


def test_each_group_gives_its_samples(bench: Bench) -> None:
    reader, desk = bench.reader(1)
    settle(bench, reader)

    kinds = {name: {type(sample) for sample in reader.read(name).samples} for name in (FAST, *SECONDARY)}

    assert kinds == {
        FAST: {GpuCondition, GpuFast, PcieBytes},
        XID: set(),
        GPM: {GpmInterval},
        NVLINK: {NvlinkTotals},
        PROCESSES: {GpuProcesses},
        SLOW: {GpuIdentity, GpuSlow, GpuErrors, MigInstances},
        LINKS: {NvlinkLinks},
        RARE: {GpuIdentity, GpuErrorDetail},
    }
    assert desk.gpu_index == 1
    assert desk.gpu_uuid == bench.node.face.boards[1].uuid


def test_slow_readings_are_those_of_the_board(bench: Bench) -> None:
    reader, _ = bench.reader()

    slow = only(reader.read(SLOW), GpuSlow)

    assert (slow.pcie_generation, slow.pcie_width, slow.pcie_replays) == (5, 16, 0)
    assert (slow.persistence_enabled, slow.ecc_enabled, slow.mig_enabled, slow.recovery_action) == (
        True, True, False, 0,
    )  # fmt: skip


def test_slow_readings_come_from_calls_where_fields_are_not(bench: Bench) -> None:
    bench.node.set_faults(
        *(Fault(effect="not_supported", function="nvmlDeviceGetFieldValues", field=field) for field in (1, 94, 230))
    )
    reader, _ = bench.reader()

    slow = only(reader.read(SLOW), GpuSlow)

    assert (slow.ecc_enabled, slow.pcie_replays, slow.recovery_action) == (True, 0, None)


def test_a_recovery_action_is_told(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="answers", function="nvmlDeviceGetFieldValues", field=230, value=2.0))
    reader, _ = bench.reader()

    assert only(reader.read(SLOW), GpuSlow).recovery_action == 2


def test_a_fast_tick_costs_twelve_driver_calls(bench: Bench) -> None:
    reader, desk = bench.reader()
    settle(bench, reader)
    before, counted = bench.calls(), desk.counts.nvml_calls
    for name in EVERY_TICK:
        reader.read(name)

    assert bench.calls() - before == 12
    assert desk.counts.nvml_calls - counted == 12


def test_slow_and_rare_groups_cost_one_batch_each_and_the_calls_that_no_field_covers(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    cost = {}
    for name in (SLOW, LINKS, RARE):
        calls, fields = bench.calls(), bench.node.face.field_values
        reader.read(name)
        cost[name] = (bench.calls() - calls, bench.node.face.field_values - fields)

    assert cost == {
        # ECC mode, replays, recovery action, 8 of ECC and rows, 12 of PCIe; the calls: link 2, modes 4, codecs 2,
        # aperture, video clock, margin, fabric
        SLOW: (13, 23),
        LINKS: (2, 18 * 7),  # states; speed, two counters and three kinds of errors of each link
        RARE: (8, 4),  # who it is, device memory four times, SRAM four times, its status, spare rows
    }


@pytest.mark.parametrize(("text", "expected"), [("1\n", 1), ("-1\n", None), ("none\n", None), (None, None)])
def test_the_numa_node_is_that_of_the_slot_by_sysfs(bench: Bench, text: str | None, expected: int | None) -> None:
    board = bench.node.face.boards[0]
    slot = Path(bench.node.config().sysfs) / "bus/pci/devices" / board.pci_bus_id
    slot.mkdir(parents=True)
    if text is not None:
        (slot / "numa_node").write_text(text)
    reader, _ = bench.reader()

    assert only(reader.read(SLOW), GpuIdentity).numa_node == expected


def test_opening_a_lane_makes_no_call(bench: Bench) -> None:
    before = bench.calls()
    bench.reader()

    assert bench.calls() == before


# Loss and return


def test_a_lost_gpu_says_so_at_every_fast_read_and_is_not_called_meanwhile(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.set_faults(LOST)
    assert condition(reader.read(FAST)) == "lost"
    before = bench.calls()

    said = [condition(reader.read(FAST)) for _ in range(5)]

    assert said == ["lost"] * 5
    assert [reader.read(name) for name in SECONDARY] == [Outcome()] * len(SECONDARY)
    assert bench.calls() == before


def test_a_lost_gpu_keeps_its_uuid_and_the_words_of_the_driver(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.set_faults(LOST)

    outcome = reader.read(FAST)

    said = only(outcome, GpuCondition)
    assert said.uuid == bench.node.face.boards[0].uuid
    assert "GPU is lost" in said.detail
    assert outcome.samples == (said,)
    assert [(failure.device, failure.reason) for failure in outcome.failures] == [(said.uuid, "lost")]


def test_a_gpu_lost_at_start_is_named_by_its_index(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="lost", gpu=1))
    reader, _ = bench.reader(1)

    said = only(reader.read(FAST), GpuCondition)

    assert (said.index, said.uuid, said.condition) == (1, None, "lost")


def test_a_lost_gpu_is_looked_for_ever_more_rarely(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.set_faults(LOST)
    before = bench.node.face.calls["nvmlDeviceGetHandleByPciBusId_v2"]
    for _ in range(240):  # two minutes
        reader.read(FAST)
        bench.step()

    # after 1, 2, 4, 8, 16, 30, 30, 30 seconds
    assert bench.node.face.calls["nvmlDeviceGetHandleByPciBusId_v2"] - before <= 8


def test_a_gpu_that_comes_back_is_found_by_its_place_and_read_anew(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.set_faults(LOST)
    reader.read(FAST)
    bench.node.set_faults()
    bench.node.advance(NS_PER_S)

    outcome = reader.read(FAST)

    assert condition(outcome) == "ok"
    assert only(outcome, GpuFast).power_w is not None
    assert reader.read(GPM).samples == ()  # a new life: the first sample only seeds
    bench.step()
    assert reader.read(GPM).samples != ()
    assert bench.node.face.calls["nvmlDeviceGetHandleByPciBusId_v2"] == 1


def test_a_gpu_that_comes_and_goes_leaves_nothing_behind(bench: Bench) -> None:
    reader, _ = bench.reader()
    for _ in range(4):
        settle(bench, reader)
        bench.node.set_faults(LOST)
        reader.read(FAST)
        bench.node.set_faults()
        bench.node.advance(31 * NS_PER_S)
    settle(bench, reader)

    assert len(bench.node.face.gpm._taken) == 2
    assert len(bench.node.face.events._sets) == 1
    assert bench.node.face.initialized == 1


def test_a_gpu_found_lost_by_any_group_is_lost(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.set_faults(LOST)

    with pytest.raises(DeviceLost):
        reader.read(NVLINK)

    assert condition(reader.read(FAST)) == "lost"


@pytest.mark.parametrize(
    ("code", "word"), [(15, "lost"), (16, "reset_required"), (4, "denied"), (17, "denied"), (999, "error")]
)
def test_a_gpu_that_answers_nothing_is_in_the_condition_its_driver_says(bench: Bench, code: int, word: str) -> None:
    bench.node.set_faults(Fault(effect="error", gpu=0, code=code))
    reader, _ = bench.reader()

    assert condition(reader.read(FAST)) == word


def test_a_gpu_that_suddenly_answers_nothing_is_in_error_and_found_again(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.set_faults(Fault(effect="error", gpu=0, code=999))
    first = condition(reader.read(FAST))
    bench.node.set_faults()
    bench.node.advance(NS_PER_S)

    assert (first, condition(reader.read(FAST))) == ("error", "ok")


def test_another_gpu_goes_on_when_one_is_lost(bench: Bench) -> None:
    lost, _ = bench.reader(0)
    well, _ = bench.reader(1)
    for reader in (lost, well):
        reader.read(FAST)
    bench.node.set_faults(LOST)

    assert condition(lost.read(FAST)) == "lost"
    outcome = well.read(FAST)
    assert condition(outcome) == "ok"
    assert only(outcome, GpuFast).power_w is not None


def test_a_handle_that_is_gone_is_looked_up_anew(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.set_faults(Fault(effect="error", gpu=0, code=2))
    first = condition(reader.read(FAST))
    bench.node.set_faults()
    bench.node.advance(NS_PER_S)

    assert (first, condition(reader.read(FAST))) == ("error", "ok")


def test_an_invalid_argument_of_one_call_is_not_taken_for_a_lost_handle(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.set_faults(Fault(effect="error", function="nvmlGpmMetricsGet", gpu=0, code=2))
    bench.step()

    with pytest.raises(SourceError):
        reader.read(GPM)

    assert condition(reader.read(FAST)) == "ok"


def test_a_gpu_that_comes_and_goes_is_not_probed_at_every_return(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    before = bench.node.face.calls["nvmlDeviceGetName"]
    for _ in range(60):
        bench.node.set_faults(LOST)
        reader.read(FAST)
        bench.node.set_faults()
        bench.node.advance(NS_PER_S)
        reader.read(FAST)

    assert bench.node.face.calls["nvmlDeviceGetName"] - before <= 8


def test_a_gpu_that_was_well_for_long_is_looked_for_soon(bench: Bench) -> None:
    reader, _ = bench.reader()
    for _ in range(6):  # comes and goes: the pauses grow to half a minute
        bench.node.set_faults(LOST)
        reader.read(FAST)
        bench.node.set_faults()
        bench.node.advance(30 * NS_PER_S)
        reader.read(FAST)
    bench.node.advance(31 * NS_PER_S)
    reader.read(FAST)
    bench.node.set_faults(LOST)
    reader.read(FAST)
    bench.node.set_faults()
    bench.node.advance(NS_PER_S)

    assert condition(reader.read(FAST)) == "ok"


# One thing at a time


def test_one_failing_getter_loses_only_its_field(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.set_faults(Fault(effect="error", function="nvmlDeviceGetUtilizationRates", code=999))

    outcome = reader.read(FAST)

    assert condition(outcome) == "ok"
    assert only(outcome, GpuFast).utilization_ratio is None
    assert only(outcome, GpuFast).power_w is not None
    assert [failure.reason for failure in outcome.failures] == ["broken"]


def test_a_failing_slow_batch_loses_only_what_only_it_gives(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.set_faults(Fault(effect="error", function="nvmlDeviceGetFieldValues", code=999))

    outcome = reader.read(SLOW)

    assert only(outcome, GpuSlow).recovery_action is None
    assert only(outcome, GpuSlow).pcie_replays == 0
    assert only(outcome, GpuSlow).pcie_width == 16
    assert len(outcome.failures) == 1


def test_a_failing_gpm_fails_alone(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.set_faults(Fault(effect="error", function="nvmlGpmSampleGet", code=999))

    with pytest.raises(Broken):
        reader.read(GPM)

    assert only(reader.read(NVLINK), NvlinkTotals).receive_bytes is not None


def test_an_event_reaches_the_outcome(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.give_xid(0, 79)

    (event,) = reader.read(XID).events

    assert isinstance(event, XidEvent)
    assert event.xid == 79


def test_a_change_of_mig_mode_has_everything_probed_anew(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="not_supported", function="nvmlDeviceGetUtilizationRates"))
    reader, _ = bench.reader()
    settle(bench, reader)
    before = only(reader.read(FAST), GpuFast).utilization_ratio
    bench.node.set_faults()

    def wait(_set: Any, data: Any, _timeout_ms: int) -> int:
        kinds = [0x100] if not told else []
        told.append(1)
        if not kinds:
            return 10
        data.contents.eventType = kinds[0]
        return 0

    import pynvml

    told: list[int] = []
    event = ctypes.POINTER(pynvml.c_nvmlEventData_t)
    bench.put("nvmlEventSetWait_v2", (ctypes.c_void_p, event, ctypes.c_uint), wait)
    reader.read(XID)

    assert before is None
    assert only(reader.read(FAST), GpuFast).utilization_ratio is not None


def test_another_board_in_the_same_place_is_noticed(bench: Bench) -> None:
    from gpufeed.simulate.hardware import MODELS, boards

    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.face.boards = boards(MODELS["a100"], 2)

    reader.read(RARE)

    assert only(reader.read(SLOW), GpuIdentity).name == MODELS["a100"].name


# Inputs


def test_what_a_gpu_gives_is_said_once(bench: Bench) -> None:
    reader, _ = bench.reader()
    said: dict[str, str] = {}
    for name in (*EVERY_TICK, PROCESSES):
        said |= words(reader.read(name))

    assert said == dict.fromkeys(
        (
            "utilization", "memory", "power", "energy", "temperature", "clocks", "clock_events", "pcie_bytes",
            "xid", "gpm", "nvlink", "processes",
        ),
        "available",
    )  # fmt: skip
    assert [reader.read(name).inputs for name in (*EVERY_TICK, PROCESSES)] == [()] * 5


def test_gpm_before_hopper_is_unsupported_said_once_and_never_asked_for(a100: Bench) -> None:
    reader, _ = a100.reader()
    (status,) = reader.read(GPM).inputs
    before = a100.calls()

    assert (status.input, status.scope, status.state) == ("gpm", a100.node.face.boards[0].uuid, "unsupported")
    assert "Hopper" in status.reason
    assert reader.read(GPM) == Outcome()
    assert a100.calls() == before


@pytest.mark.parametrize(
    ("function", "fields", "name"),
    [
        ("nvmlDeviceGetUtilizationRates", (), "utilization"),
        ("nvmlDeviceGetClockInfo", (), "clocks"),
        ("nvmlDeviceGetPowerUsage", (185, 186), "power"),
        ("nvmlDeviceGetTotalEnergyConsumption", (83,), "energy"),
    ],
)
def test_a_getter_a_device_refuses_is_said_to_be_missing_with_the_drivers_words(
    bench: Bench, function: str, fields: tuple[int, ...], name: str
) -> None:
    bench.node.set_faults(
        Fault(effect="not_supported", function=function),
        *(Fault(effect="not_supported", function="nvmlDeviceGetFieldValues", field=field) for field in fields),
    )
    reader, _ = bench.reader()

    status = next(status for status in reader.read(FAST).inputs if status.input == name)

    assert status.state == "unsupported"
    assert function in status.reason
    assert reader.read(FAST).failures == ()


def test_a_denied_input_names_the_fix(bench: Bench) -> None:
    lists = ("Compute", "Graphics", "MPSCompute")
    bench.node.set_faults(
        *(Fault(effect="error", function=f"nvmlDeviceGet{name}RunningProcesses_v3", code=4) for name in lists)
    )
    reader, desk = bench.reader()

    (status,) = (status for status in reader.read(PROCESSES).inputs if status.input == "processes")

    assert status.state == "denied"
    assert "/dev/nvidia" in status.fix
    assert desk.board.gpu_pids == {}


def test_a_board_without_nvlink_says_so_once(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="answers", function="nvmlDeviceGetFieldValues", field=91, value=0.0))
    reader, _ = bench.reader()

    assert words(reader.read(NVLINK)) == {"nvlink": "unsupported"}
    assert reader.read(NVLINK) == Outcome()


def test_links_that_could_not_be_counted_at_first_are_counted_later(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="error", function="nvmlDeviceGetFieldValues", code=999))
    reader, _ = bench.reader()
    reader.read(FAST)
    with pytest.raises(Broken):
        reader.read(NVLINK)
    bench.node.set_faults()

    assert only(reader.read(NVLINK), NvlinkTotals).links == 18


def test_links_whose_bytes_cannot_be_counted_are_said_to_be_so(bench: Bench) -> None:
    bench.node.set_faults(
        *(
            Fault(effect="not_supported", function="nvmlDeviceGetFieldValues", field=field)
            for field in (138, 139, 197, 198, *range(74, 82))
        )
    )
    reader, _ = bench.reader()

    said = words(reader.read(NVLINK)) | words(reader.read(FAST))

    assert (said["nvlink"], said["pcie_bytes"], said["clock_events"]) == ("unsupported",) * 3


# Board


def test_processes_are_told_to_the_other_lanes(bench: Bench) -> None:
    reader, desk = bench.reader()
    reader.read(PROCESSES)

    uuid = bench.node.face.boards[0].uuid
    assert desk.board.gpu_pids == {desk.lane: (uuid, (int(bench.true("pid0")),))}
    assert desk.board.idle_gpus == set()


def test_a_gpu_nobody_uses_is_told_to_be_idle(tmp_path: Path) -> None:
    with enter(tmp_path, "idle_free") as node:
        bench = Bench(node)
        reader, desk = bench.reader()
        reader.read(PROCESSES)

        assert desk.board.idle_gpus == {desk.lane}
        assert desk.board.gpu_pids[desk.lane][1] == ()


def leave_by_loss(bench: Bench, reader: GpuReader) -> None:
    bench.node.set_faults(LOST)
    reader.read(FAST)


def leave_by_release(bench: Bench, reader: GpuReader) -> None:
    bench.board.released = True
    reader.read(FAST)


def leave_by_end(_bench: Bench, reader: GpuReader) -> None:
    reader.close()


@pytest.mark.parametrize("leave", [leave_by_loss, leave_by_release, leave_by_end])
def test_a_gpu_that_is_not_read_holds_no_processes(bench: Bench, leave: Callable[[Bench, GpuReader], None]) -> None:
    reader, desk = bench.reader()
    reader.read(PROCESSES)
    leave(bench, reader)

    assert desk.board.gpu_pids == {}
    assert desk.board.idle_gpus == set()


# Release


def test_a_released_gpu_closes_everything_and_says_so(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.board.released = True

    outcome = reader.read(FAST)

    assert condition(outcome) == "released"
    assert bench.node.face.initialized == 0
    assert not bench.node.face.gpm._taken
    assert not bench.node.face.events._sets
    before = bench.calls()
    assert [reader.read(name) for name in SECONDARY] == [Outcome()] * len(SECONDARY)
    assert condition(reader.read(FAST)) == "released"
    assert bench.calls() == before


def test_a_released_gpu_says_so_also_where_nvml_cannot_be_closed(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.set_faults(Fault(effect="error", function="nvmlShutdown"))
    bench.board.released = True

    said = only(reader.read(FAST), GpuCondition)

    assert said.condition == "released"
    assert "nvmlShutdown" in said.detail


def test_a_gpu_given_back_is_read_again(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.board.released = True
    reader.read(FAST)
    bench.board.released = False

    assert condition(reader.read(FAST)) == "ok"
    assert bench.node.face.initialized == 1


def test_no_call_is_made_while_nvml_is_closed_or_of_another_generation(bench: Bench) -> None:
    reader, _ = bench.reader()
    bench.board.nvml_is_open = False
    before = bench.calls()
    first = condition(reader.read(FAST))
    bench.board.nvml_is_open, bench.board.nvml_generation = True, 2

    assert (first, condition(reader.read(FAST))) == ("released", "released")
    assert bench.calls() == before


def test_closing_gives_back_what_was_taken(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    reader.close()

    assert bench.node.face.initialized == 0
    assert not bench.node.face.gpm._taken
    assert not bench.node.face.events._sets


def test_closing_a_gpu_whose_samples_cannot_be_freed_still_closes_nvml(bench: Bench) -> None:
    reader, _ = bench.reader()
    settle(bench, reader)
    bench.node.set_faults(
        Fault(effect="error", function="nvmlGpmSampleFree"), Fault(effect="error", function="nvmlEventSetFree")
    )
    reader.close()

    assert bench.node.face.initialized == 0


def test_the_group_names_are_those_of_the_configuration() -> None:
    assert {*EVERY_TICK, *SECONDARY} == {
        group(name)
        for name in (
            "nvml.fast", "nvml.slow", "nvml.rare", "nvml.processes", "nvlink.fast", "nvlink.slow", "gpm.fast",
            "xid.events",
        )
    }  # fmt: skip
