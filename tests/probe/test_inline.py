# SPDX-License-Identifier: Apache-2.0
"""The probe without threads: due groups in order, failures alone, hot-plug, reload, a call that does not return."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from msgspec import Struct

from gpufeed.errors import Absent, DeviceLost
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import Frame, GpuEvent, InputStatus
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.sample import Extension
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.sources.contract import Desk, DeviceFailure, Group, LanePlan, Outcome
from gpufeed.units import NS_PER_MS, NS_PER_S

FAST = Group(name=GroupName("host.fast"), collector="host", period_ns=500 * NS_PER_MS)
SLOW = Group(name=GroupName("host.slow"), collector="host", period_ns=2 * NS_PER_S)


class Spec(Struct, frozen=True):
    """Which script a lane follows."""

    name: str = "plain"
    version: int = 1


@dataclass
class Script:
    """What readers of this test do, by lane name; and what they have done."""

    answers: dict[str, Any] = field(default_factory=dict)
    opening: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)


@dataclass
class ScriptedReader:
    script: Script
    desk: Desk

    def read(self, group: GroupName) -> Outcome:
        lane = str(self.desk.lane)
        self.script.asked.append((lane, group))
        answer = self.script.answers.get(lane, value(len(self.script.asked)))
        if callable(answer):
            answer = answer(group)
        if isinstance(answer, Exception):
            raise answer
        return cast("Outcome", answer)

    def close(self) -> None:
        self.script.closed.append(str(self.desk.lane))


@dataclass
class ScriptedSource:
    """Plans lanes as told."""

    script: Script
    plans: tuple[LanePlan, ...] = ()
    name: str = "scripted"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:  # noqa: ARG002 - the contract's
        return self.plans

    def open(self, spec: Struct, desk: Desk) -> ScriptedReader:  # noqa: ARG002 - the contract's
        self.script.opened.append(str(desk.lane))
        error = self.script.opening.get(str(desk.lane))
        if error is not None:
            raise error
        return ScriptedReader(self.script, desk)

    def lane(self, name: str, *groups: Group, version: int = 1) -> LanePlan:
        return LanePlan(lane=LaneId(name), groups=groups or (FAST,), open=self.open, spec=Spec(name, version))


def value(number: float) -> Outcome:
    return Outcome(samples=(Extension(source="t", metric="n", labels=(), value=number),))


class Bench:
    """A probe, its clock and its script."""

    def __init__(self, *names: str, groups: tuple[Group, ...] = (FAST,)) -> None:
        self.clock = SteppedClock()
        self.script = Script()
        self.source = ScriptedSource(self.script)
        self.source.plans = tuple(self.source.lane(name, *groups) for name in names)
        self.is_blocked = False
        self.config = ProbeConfig(runtime_dir="/nowhere")
        self.probe = InlineProbe(self.config, (self.source,), self.clock, lambda: self.is_blocked)

    def after(self, duration_ns: int) -> Frame:
        self.clock.advance(duration_ns)
        return self.probe.tick()

    def lanes_of(self, frame: Frame) -> list[str]:
        return [str(reading.lane) for reading in frame.readings]


def test_a_lane_is_opened_and_read_at_once_and_then_by_its_period() -> None:
    bench = Bench("a")
    assert bench.lanes_of(bench.probe.tick()) == ["a"]
    assert bench.lanes_of(bench.after(250 * NS_PER_MS)) == []
    assert bench.lanes_of(bench.after(250 * NS_PER_MS)) == ["a"]


def test_a_long_pause_is_followed_by_one_read_not_by_a_burst() -> None:
    bench = Bench("a")
    bench.probe.tick()
    bench.after(10 * NS_PER_S)
    assert bench.script.asked == [("a", "host.fast")] * 2
    assert bench.lanes_of(bench.after(250 * NS_PER_MS)) == []


def test_frames_are_numbered_and_carry_their_own_time() -> None:
    bench = Bench("a")
    first, second = bench.probe.tick(), bench.after(NS_PER_S)
    assert (first.sequence, second.sequence) == (1, 2)
    assert second.time.monotonic_ns - first.time.monotonic_ns == NS_PER_S


def test_groups_of_one_lane_keep_their_own_periods() -> None:
    bench = Bench("a", groups=(FAST, SLOW))
    for _ in range(9):
        bench.probe.tick()
        bench.clock.advance(500 * NS_PER_MS)
    assert [group for _, group in bench.script.asked].count("host.fast") == 9
    assert [group for _, group in bench.script.asked].count("host.slow") == 3


def test_a_lane_that_fails_fails_alone_and_says_why() -> None:
    bench = Bench("good", "bad")
    bench.script.answers["bad"] = DeviceLost("fell off the bus")
    frame = bench.probe.tick()
    assert bench.lanes_of(frame) == ["good"]
    assert [(failure.lane, failure.reason, failure.detail) for failure in frame.failures] == [
        ("bad", "lost", "fell off the bus")
    ]


def test_an_exception_nobody_expected_is_broken_and_logged_once_with_its_trace() -> None:
    bench = Bench("bad")
    bench.script.answers["bad"] = ZeroDivisionError("division by zero")
    frames = [bench.after(500 * NS_PER_MS) for _ in range(3)]
    assert [failure.reason for frame in frames for failure in frame.failures] == ["broken"] * 3
    lines = bench.probe.logs()
    assert len(lines) == 1
    assert "Traceback" in lines[0].text
    assert "ZeroDivisionError" in lines[0].text


def test_recovery_is_logged_with_the_length_of_the_outage() -> None:
    bench = Bench("bad")
    bench.script.answers["bad"] = DeviceLost("gone")
    bench.after(0)
    bench.after(500 * NS_PER_MS)
    bench.probe.logs()
    del bench.script.answers["bad"]
    bench.after(500 * NS_PER_MS)
    assert [line.text for line in bench.probe.logs()] == ["lane=bad group=host.fast recovered=lost after_s=1.0"]


def test_one_device_of_a_read_that_fails_stands_beside_the_samples_of_the_others() -> None:
    bench = Bench("a")
    failed = DeviceFailure(device="mlx5_1", reason="absent", detail="no port")
    bench.script.answers["a"] = Outcome(samples=value(7).samples, failures=(failed,))
    frame = bench.probe.tick()
    assert len(frame.readings[0].samples) == 1
    assert [(failure.reason, failure.detail) for failure in frame.failures] == [("absent", "mlx5_1: no port")]


def test_a_device_that_fails_is_logged_when_it_starts_and_when_it_ends() -> None:
    bench = Bench("a")
    failed = DeviceFailure(device="mlx5_1", reason="lost", detail="no answer")
    bench.script.answers["a"] = Outcome(failures=(failed,))
    for _ in range(3):
        bench.after(500 * NS_PER_MS)
    bench.script.answers["a"] = Outcome()
    bench.after(500 * NS_PER_MS)
    assert [line.text for line in bench.probe.logs()] == [
        "lane=a group=host.fast device=mlx5_1 reason=lost detail='no answer'",
        "lane=a group=host.fast device=mlx5_1 recovered=lost after_s=1.5",
    ]


def test_a_reader_that_cannot_be_opened_is_tried_again_with_growing_pauses() -> None:
    bench = Bench("a")
    bench.script.opening["a"] = Absent("no driver")
    tried_s = []
    for second in range(64):
        before = len(bench.script.opened)
        bench.probe.tick()
        if len(bench.script.opened) > before:
            tried_s.append(second)
        bench.clock.advance(NS_PER_S)
    assert tried_s == [0, 1, 3, 7, 15, 31, 61]


def test_a_reader_that_opens_at_last_is_read_at_once() -> None:
    bench = Bench("a")
    bench.script.opening["a"] = Absent("no driver")
    assert [failure.reason for failure in bench.probe.tick().failures] == ["absent"]
    bench.script.opening.clear()
    assert bench.lanes_of(bench.after(NS_PER_S)) == ["a"]


def test_a_reader_that_fails_and_fails_is_opened_anew() -> None:
    bench = Bench("a")
    bench.script.answers["a"] = DeviceLost("gone")
    for _ in range(5):
        bench.after(500 * NS_PER_MS)
    assert bench.script.closed == ["a"]
    bench.after(NS_PER_S)
    assert bench.script.opened == ["a", "a"]


def test_what_is_absent_is_no_reason_to_open_anew() -> None:
    bench = Bench("a")
    bench.script.answers["a"] = Absent("no such file")
    for _ in range(20):
        bench.after(500 * NS_PER_MS)
    assert bench.script.opened == ["a"]


def test_a_read_that_does_not_return_keeps_its_lane_busy_and_no_other() -> None:
    bench = Bench("a", "hung")
    bench.probe.tick()
    began_ns = bench.clock.monotonic_ns() + 500 * NS_PER_MS
    bench.script.answers["a"] = lambda _group: answer(bench, is_blocked=False)
    bench.script.answers["hung"] = lambda _group: answer(bench, is_blocked=True)
    frames = [bench.after(500 * NS_PER_MS) for _ in range(20)]
    assert all(bench.lanes_of(frame) == ["a"] for frame in frames)
    assert {lane.lane: lane.busy_since_ns for lane in frames[-1].lanes} == {"a": None, "hung": began_ns}
    bench.script.answers["hung"] = lambda _group: answer(bench, is_blocked=False)
    assert sorted(bench.lanes_of(bench.after(500 * NS_PER_MS))) == ["a", "hung"]


def answer(bench: Bench, *, is_blocked: bool) -> Outcome:
    """As a simulated driver has it: what it says of blocking is about its last call."""
    bench.is_blocked = is_blocked
    return value(0)


def test_events_of_a_read_that_did_not_return_come_when_it_does() -> None:
    bench = Bench("hung")
    bench.probe.tick()
    event = GpuEvent(at_ns=1, kind="mig_changed", uuid=None)
    bench.is_blocked = True
    bench.script.answers["hung"] = Outcome(events=(event,))
    assert bench.after(NS_PER_S).events == ()
    bench.is_blocked = False
    bench.script.answers["hung"] = Outcome()
    assert bench.after(NS_PER_S).events == (event,)


def test_an_open_that_does_not_return_is_outstanding_too() -> None:
    bench = Bench("hung")
    bench.is_blocked = True
    frame = bench.probe.tick()
    assert frame.lanes[0].busy_since_ns == frame.time.monotonic_ns
    bench.is_blocked = False
    assert bench.lanes_of(bench.after(NS_PER_S)) == ["hung"]


def test_lanes_that_a_scan_found_run_and_those_it_misses_are_withdrawn() -> None:
    bench = Bench("scan")
    one, two = bench.source.lane("gpu0"), bench.source.lane("gpu1")
    bench.script.answers["scan"] = Outcome(lanes=(one, two))
    assert bench.lanes_of(bench.probe.tick()) == ["scan", "gpu0", "gpu1"]
    bench.script.answers["scan"] = Outcome(lanes=(two,))
    frame = bench.after(500 * NS_PER_MS)
    assert frame.withdrawn == ("gpu0",)
    assert [lane.lane for lane in frame.lanes] == ["scan", "gpu1"]
    assert bench.script.closed == ["gpu0"]
    assert bench.script.opened == ["scan", "gpu0", "gpu1"]


def test_a_scan_that_says_nothing_of_lanes_leaves_them() -> None:
    bench = Bench("scan")
    bench.script.answers["scan"] = Outcome(lanes=(bench.source.lane("gpu0"),))
    bench.probe.tick()
    bench.script.answers["scan"] = DeviceLost("driver gone")
    assert bench.after(500 * NS_PER_MS).withdrawn == ()
    bench.script.answers["scan"] = Outcome()
    frame = bench.after(500 * NS_PER_MS)
    assert frame.withdrawn == ()
    assert [lane.lane for lane in frame.lanes] == ["scan", "gpu0"]


def test_reload_keeps_equal_lanes_and_replaces_changed_ones() -> None:
    bench = Bench("same", "changed", "gone")
    bench.probe.tick()
    bench.source.plans = (bench.source.lane("same"), bench.source.lane("changed", version=2), bench.source.lane("new"))
    bench.probe.desire(bench.config)
    frame = bench.after(NS_PER_MS)
    assert sorted(frame.withdrawn) == ["changed", "gone"]
    assert bench.lanes_of(frame) == ["changed", "new"]
    assert bench.script.opened == ["same", "changed", "gone", "changed", "new"]


def test_a_scan_that_is_withdrawn_takes_its_lanes_with_it() -> None:
    bench = Bench("scan")
    bench.script.answers["scan"] = Outcome(lanes=(bench.source.lane("gpu0"),))
    bench.probe.tick()
    bench.source.plans = ()
    bench.probe.desire(bench.config)
    assert sorted(bench.probe.tick().withdrawn) == ["gpu0", "scan"]


def test_two_lanes_of_one_name_are_one_lane_and_a_line_in_the_log() -> None:
    bench = Bench()
    bench.source.plans = (bench.source.lane("a", version=1), bench.source.lane("a", version=2))
    bench.probe.desire(bench.config)
    assert [lane.lane for lane in bench.probe.tick().lanes] == ["a"]
    assert ["planned=twice" in line.text for line in bench.probe.logs()] == [True]


def test_an_input_status_is_said_once_and_again_when_it_changes() -> None:
    bench = Bench("a")
    available = InputStatus(input="gpm", scope="gpu0", state="available")
    bench.script.answers["a"] = Outcome(inputs=(available,))
    assert bench.probe.tick().inputs == (available,)
    assert bench.after(NS_PER_S).inputs == ()
    denied = InputStatus(input="gpm", scope="gpu0", state="denied", reason="not root", fix="add a capability")
    bench.script.answers["a"] = Outcome(inputs=(denied,))
    assert bench.after(NS_PER_S).inputs == (denied,)


def test_text_of_strange_devices_leaves_clean() -> None:
    bench = Bench("a")
    bench.script.answers["a"] = DeviceLost("line one\nline\x00two \udcff" + "x" * 5000)
    detail = bench.probe.tick().failures[0].detail
    assert detail.startswith("line one\N{REPLACEMENT CHARACTER}line\N{REPLACEMENT CHARACTER}two ")
    assert len(detail) == 1024
    detail.encode()


@pytest.mark.parametrize("junk", [None, 7, Outcome(events=("xid",)), Outcome(lanes=("gpu0",))])  # type: ignore[arg-type] # a reader of another package
def test_a_reader_that_breaks_the_contract_is_broken(junk: object) -> None:
    bench = Bench("a")
    bench.script.answers["a"] = lambda _group: junk
    frame = bench.probe.tick()
    assert [failure.reason for failure in frame.failures] == ["broken"]
    assert frame.readings == ()


def test_idle_gpus_are_read_once_a_second() -> None:
    bench = Bench("gpu0")
    bench.probe.board.idle_gpus.add(LaneId("gpu0"))
    frames = [bench.after(500 * NS_PER_MS) for _ in range(12)]
    assert frames[-1].lanes[0].fast_period_ns == NS_PER_S
    assert sum(len(frame.readings) for frame in frames[4:]) == 4


def test_close_closes_every_reader() -> None:
    bench = Bench("a", "b")
    bench.probe.tick()
    bench.probe.close()
    assert bench.script.closed == ["a", "b"]
