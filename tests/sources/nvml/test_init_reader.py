# SPDX-License-Identifier: Apache-2.0
"""The driver as a whole: absent, late, mismatched, replaced, released; and the lanes of its GPUs."""

from pathlib import Path
from typing import Any

import pytest

from gpufeed.model.frame import GpuEvent, InputStatus
from gpufeed.model.gpu import DriverInfo
from gpufeed.simulate.faults import Fault
from gpufeed.sources.contract import Board, Desk, Group, Outcome
from gpufeed.sources.nvml.gpu_reader import FAST, GpuSpec
from gpufeed.sources.nvml.init_reader import DRIVER, RELEASE, InitReader, InitSpec
from gpufeed.units import NS_PER_S
from nvml_bench import Bench, enter, only

INIT = "nvmlInitWithFlags"
MISMATCH = 18
GROUPS = (Group(name=FAST, collector="nvml", period_ns=NS_PER_S // 2),)


@pytest.fixture
def closed(bench: Bench) -> Bench:
    """Nobody has opened NVML yet."""
    bench.board = Board()
    return bench


def init_reader(bench: Bench) -> tuple[InitReader, Desk]:
    desk = bench.desk("nvml-init")
    return InitReader(InitSpec(gpu_groups=GROUPS), desk), desk


def status(outcome: Outcome) -> InputStatus:
    (found,) = outcome.inputs
    return found


def generations(outcome: Outcome) -> list[int]:
    specs = (plan.spec for plan in outcome.lanes or ())
    return [spec.generation for spec in specs if isinstance(spec, GpuSpec)]


def look_for(bench: Bench, reader: InitReader, seconds: int) -> list[Outcome]:
    outcomes = []
    for _ in range(seconds // 10):
        outcomes.append(reader.read(DRIVER))
        bench.node.advance(10 * NS_PER_S)
    return outcomes


def events(outcomes: list[Outcome]) -> list[str]:
    return [event.kind for outcome in outcomes for event in outcome.events if isinstance(event, GpuEvent)]


def test_a_driver_gives_its_versions_and_a_lane_for_each_gpu(closed: Bench) -> None:
    reader, desk = init_reader(closed)

    outcome = reader.read(DRIVER)

    assert outcome.samples == (
        DriverInfo(
            driver_version="570.124.06", nvml_version="12.570.124.06", cuda_version="12.8", device_count=2
        ),
    )  # fmt: skip
    plans = outcome.lanes or ()
    assert [(plan.lane, plan.groups) for plan in plans] == [("gpu0", GROUPS), ("gpu1", GROUPS)]
    assert [plan.spec for plan in plans] == [
        GpuSpec(index=index, generation=1, driver_version="570.124.06") for index in (0, 1)
    ]
    assert (desk.board.nvml_is_open, desk.board.nvml_generation) == (True, 1)
    assert status(outcome).state == "available"


def test_looking_again_keeps_the_lanes_that_are_there(closed: Bench) -> None:
    reader, _ = init_reader(closed)
    reader.read(DRIVER)

    outcome = reader.read(DRIVER)

    assert outcome.lanes is None
    assert outcome.inputs == ()
    assert only(outcome, DriverInfo).device_count == 2


def test_opening_the_lane_makes_no_call(closed: Bench) -> None:
    before = closed.calls()
    init_reader(closed)

    assert closed.calls() == before


@pytest.mark.parametrize(
    ("code", "state", "fix"),
    [
        (9, "absent", "modprobe nvidia"),
        (12, "broken", "reinstall"),
        (4, "denied", "/dev/nvidia"),
        (17, "denied", "/dev/nvidia"),
        (18, "broken", "reboot"),
        (999, "broken", ""),
    ],
)
def test_what_stands_in_the_way_is_said_with_its_fix(closed: Bench, code: int, state: str, fix: str) -> None:
    closed.node.set_faults(Fault(effect="error", function=INIT, code=code))
    reader, desk = init_reader(closed)

    outcome = reader.read(DRIVER)

    said = status(outcome)
    assert (said.input, said.scope, said.state) == ("nvml", "", state)
    assert fix in said.fix
    assert said.reason
    assert [failure.reason for failure in outcome.failures] == [state]
    assert outcome.lanes == ()
    assert not desk.board.nvml_is_open


def test_a_driver_that_comes_later_is_found(tmp_path: Path) -> None:
    with enter(tmp_path, "driver_absent_then_present") as node:
        bench = Bench(node, Board())
        reader, _ = init_reader(bench)

        outcomes = look_for(bench, reader, 50)

        assert status(outcomes[0]).state == "absent"
        found = [outcome for outcome in outcomes if outcome.lanes]
        assert generations(found[0]) == [1, 1]
        assert outcomes.index(found[0]) <= 3


def test_an_absent_driver_is_looked_for_ever_more_rarely_and_said_once(closed: Bench) -> None:
    closed.node.set_faults(Fault(effect="error", function=INIT, code=9))
    reader, _ = init_reader(closed)

    outcomes = look_for(closed, reader, 600)

    assert closed.node.face.calls[INIT] <= 22  # a look each 30 seconds
    assert closed.node.face.calls[INIT] >= 15
    assert [len(outcome.inputs) for outcome in outcomes] == [1] + [0] * 59
    assert all(outcome.failures for outcome in outcomes)


def test_a_driver_whose_versions_cannot_be_read_is_not_left_open(closed: Bench) -> None:
    closed.node.set_faults(Fault(effect="error", function="nvmlDeviceGetCount_v2", code=999))
    reader, desk = init_reader(closed)

    outcome = reader.read(DRIVER)

    assert outcome.failures[0].reason == "broken"
    assert closed.node.face.initialized == 0
    assert not desk.board.nvml_is_open


# A driver that changes below us


def test_a_mismatch_at_the_first_word_is_no_reason_to_start_anew(closed: Bench) -> None:
    closed.node.set_faults(Fault(effect="error", function=INIT, code=MISMATCH))
    reader, _ = init_reader(closed)

    assert events(look_for(closed, reader, 120)) == []


def test_a_mismatch_after_a_fitting_driver_asks_for_a_new_probe_once(closed: Bench) -> None:
    reader, _ = init_reader(closed)
    reader.read(DRIVER)
    closed.board.released = True
    reader.read(RELEASE)
    closed.board.released = False
    closed.node.set_faults(Fault(effect="error", function=INIT, code=MISMATCH))

    outcomes = look_for(closed, reader, 120)

    assert events(outcomes) == ["driver_changed"]
    assert outcomes[0].lanes == ()


def test_a_mismatch_after_a_driver_that_was_unloaded_asks_for_a_new_probe(closed: Bench) -> None:
    closed.node.set_faults(Fault(effect="error", function=INIT, code=9))
    reader, _ = init_reader(closed)
    reader.read(DRIVER)
    closed.node.advance(10 * NS_PER_S)
    closed.node.set_faults(Fault(effect="error", function=INIT, code=MISMATCH))

    assert events(look_for(closed, reader, 60)) == ["driver_changed"]


def test_another_driver_version_asks_for_a_new_probe_once(closed: Bench) -> None:
    reader, _ = init_reader(closed)
    reader.read(DRIVER)
    closed.node._node.truth.driver_version = "580.95.05"
    closed.step()

    outcomes = look_for(closed, reader, 30)

    assert events(outcomes) == ["driver_changed"]
    (event,) = outcomes[0].events
    assert isinstance(event, GpuEvent)
    assert "570.124.06" in event.detail
    assert "580.95.05" in event.detail


def test_another_number_of_gpus_makes_new_lanes_of_a_new_generation(closed: Bench) -> None:
    from gpufeed.simulate.hardware import MODELS, boards

    reader, desk = init_reader(closed)
    reader.read(DRIVER)
    closed.node.face.boards = boards(MODELS["h100"], 3)

    assert generations(reader.read(DRIVER)) == [2, 2, 2]
    assert desk.board.nvml_generation == 2


def test_nvml_closed_by_somebody_else_is_opened_anew(closed: Bench) -> None:
    reader, desk = init_reader(closed)
    reader.read(DRIVER)
    closed.node.face.initialized = 0

    lost = reader.read(DRIVER)
    was_open = desk.board.nvml_is_open
    closed.node.advance(10 * NS_PER_S)

    assert lost.lanes == ()
    assert not was_open
    assert generations(reader.read(DRIVER)) == [2, 2]


def test_a_passing_failure_keeps_the_lanes(closed: Bench) -> None:
    reader, desk = init_reader(closed)
    reader.read(DRIVER)
    closed.node.set_faults(Fault(effect="error", function="nvmlDeviceGetCount_v2", code=999))

    outcome = reader.read(DRIVER)

    assert outcome.lanes is None
    assert desk.board.nvml_is_open
    closed.node.set_faults()
    closed.node.advance(10 * NS_PER_S)
    assert status(reader.read(DRIVER)).state == "available"


# Release


@pytest.mark.parametrize("name", [RELEASE, DRIVER])
def test_released_nvml_is_closed_and_said_to_be_so(closed: Bench, name: Any) -> None:
    reader, desk = init_reader(closed)
    reader.read(DRIVER)
    closed.board.released = True

    outcome = reader.read(name)

    assert closed.node.face.initialized == 0
    assert not desk.board.nvml_is_open
    assert status(outcome).state == "released"
    assert reader.read(RELEASE) == Outcome()


def test_nvml_given_back_is_opened_at_once_as_a_new_generation(closed: Bench) -> None:
    reader, _ = init_reader(closed)
    reader.read(DRIVER)
    closed.board.released = True
    reader.read(RELEASE)
    closed.board.released = False

    assert reader.read(RELEASE) == Outcome()
    assert generations(reader.read(DRIVER)) == [2, 2]


def test_a_successor_that_has_opened_nvml_is_not_closed_by_the_one_before(closed: Bench) -> None:
    before, desk = init_reader(closed)
    before.read(DRIVER)
    after, _ = init_reader(closed)
    after.read(DRIVER)

    before.close()

    assert (desk.board.nvml_is_open, desk.board.nvml_generation) == (True, 2)
    assert closed.node.face.initialized == 1
    after.close()
    assert not desk.board.nvml_is_open
