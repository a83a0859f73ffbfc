# SPDX-License-Identifier: Apache-2.0
"""XIDs count once each, per GPU, class and code."""

from typing import Literal

import pytest

from gpufeed.model.frame import Frame, FrameTime, XidEvent
from gpufeed.model.gpu import GpuIdentity
from gpufeed.model.ids import GpuKey, GpuUuid, LaneId
from gpufeed.model.state import GpuRecord, XidTotals
from gpufeed.signals.xids import CLASSES, TWIN_NS, WAITING_MAX, Xids, fold, restored

S = 1_000_000_000
NOW_NS = 1_000 * S
WALL_S = 1_700_000_000
GPU = GpuUuid("GPU-0")
RECORD = GpuRecord(
    uuid=GPU,
    index=0,
    lane=LaneId("gpu0"),
    identity=GpuIdentity(gpu=GpuKey(GPU), index=0, pci_bus_id="0000:18:00.0"),
    condition="ok",
)
RECORDS = {GPU: RECORD}


def event(
    xid: int = 79,
    at_ns: int = NOW_NS,
    origin: Literal["nvml", "kernel_log"] = "nvml",
    uuid: GpuUuid | None = GPU,
    slot: str | None = None,
) -> XidEvent:
    return XidEvent(at_ns=at_ns, xid=xid, uuid=uuid, pci_bus_id=slot, origin=origin)


def frame(*events: XidEvent, at_ns: int = NOW_NS) -> Frame:
    return Frame(sequence=1, time=FrameTime(at_ns, at_ns, WALL_S * S + at_ns - NOW_NS), events=events)


def told(*events: XidEvent, cutoff_ns: int = NOW_NS - 100 * S, at_ns: int = NOW_NS) -> Xids:
    return fold(Xids(cutoff_ns=cutoff_ns), frame(*events, at_ns=at_ns), RECORDS)


def test_every_class_is_there_from_the_start() -> None:
    assert told().totals[GPU] == XidTotals(by_class=dict.fromkeys(CLASSES, 0))


def test_an_event_counts_by_class_and_code_and_says_when() -> None:
    totals = told(event(79, NOW_NS - 2 * S), event(31, NOW_NS)).totals[GPU]
    assert totals.by_class == {"unusable": 1, "contained": 0, "app": 1, "link": 0, "info": 0}
    assert totals.by_xid == {79: 1, 31: 1}
    assert totals.last_wall_s == {79: WALL_S - 2, 31: WALL_S}


@pytest.mark.parametrize(
    ("apart_ns", "origins", "count"),
    [
        (S, ("nvml", "kernel_log"), 1),
        (-S, ("kernel_log", "nvml"), 1),
        (S, ("nvml", "nvml"), 2),
        (TWIN_NS + 1, ("nvml", "kernel_log"), 2),
    ],
)
def test_the_drivers_and_the_kernels_report_of_one_event_count_once(
    apart_ns: int, origins: tuple[Literal["nvml", "kernel_log"], ...], count: int
) -> None:
    first = told(event(origin=origins[0], at_ns=NOW_NS - 10 * S))
    second = fold(first, frame(event(origin=origins[1], at_ns=NOW_NS - 10 * S + apart_ns)), RECORDS)
    assert second.totals[GPU].by_xid == {79: count}


def test_two_events_and_their_two_twins_are_two() -> None:
    both = [event(origin="nvml"), event(origin="nvml"), event(origin="kernel_log"), event(origin="kernel_log")]
    assert told(*both).totals[GPU].by_xid == {79: 2}


def test_reports_without_a_twin_are_forgotten() -> None:
    first = told(event())
    later_ns = NOW_NS + 3 * TWIN_NS
    assert fold(first, frame(event(31, later_ns), at_ns=later_ns), RECORDS).reports[0].xid == 31


def test_the_kernel_log_knows_gpus_by_slot_and_writes_it_without_a_function() -> None:
    assert told(event(uuid=None, slot="0000:18:00", origin="kernel_log")).totals[GPU].by_xid == {79: 1}


def test_an_event_of_an_unknown_gpu_waits_for_it() -> None:
    for homeless in (event(uuid=GpuUuid("GPU-9")), event(uuid=None, slot="0000:99:00.0"), event(uuid=None)):
        xids = told(homeless)
        assert xids.totals[GPU].by_xid == {}
        assert xids.homeless == (homeless,)
    waiting = fold(Xids(cutoff_ns=0), frame(event()), {})
    assert fold(waiting, frame(), RECORDS).totals[GPU].by_xid == {79: 1}
    flood = fold(Xids(cutoff_ns=0), frame(*[event()] * 100), {})
    assert len(flood.homeless) == WAITING_MAX


def test_what_the_kernel_log_says_of_before_our_start_is_history() -> None:
    old = event(at_ns=NOW_NS - 50 * S, origin="kernel_log")
    xids = told(old, cutoff_ns=NOW_NS - 10 * S)
    assert xids.totals[GPU].by_xid == {}
    assert xids.totals[GPU].by_class["unusable"] == 0
    assert xids.totals[GPU].last_wall_s == {79: WALL_S - 50}
    newer = event(at_ns=NOW_NS - 5 * S, origin="kernel_log")
    assert fold(xids, frame(newer), RECORDS).totals[GPU].by_xid == {79: 1}


def test_a_restart_neither_repeats_nor_loses_an_event() -> None:
    saved_at_ns = NOW_NS - 30 * S
    counted_then = event(at_ns=NOW_NS - 50 * S, origin="kernel_log")
    missed = event(119, at_ns=NOW_NS - 20 * S, origin="kernel_log")
    early = told(counted_then, missed, event(31), cutoff_ns=NOW_NS - 10 * S)
    saved = {GPU: XidTotals(by_class={"unusable": 1}, by_xid={79: 1}, last_wall_s={79: WALL_S - 50.0})}
    xids = fold(restored(early, saved, saved_at_ns), frame(), RECORDS)
    assert xids.totals[GPU].by_xid == {79: 1, 119: 1, 31: 1}
    assert xids.totals[GPU].by_class["unusable"] == 2


def test_totals_of_a_gpu_that_has_not_been_seen_again_are_kept() -> None:
    other = GpuUuid("GPU-9")
    saved = {other: XidTotals(by_class={"app": 2}, by_xid={31: 2})}
    assert restored(told(), saved, 0).totals[other] == saved[other]


def test_a_frame_without_events_changes_nothing() -> None:
    xids = told(event())
    assert fold(xids, frame(), RECORDS) is xids


def logged(sequence: int, at_ns: int = NOW_NS) -> XidEvent:
    return XidEvent(at_ns=at_ns, xid=79, uuid=None, pci_bus_id="0000:18:00", origin="kernel_log", sequence=sequence)


def test_a_probe_that_is_replaced_reads_the_log_again_and_nothing_counts_twice() -> None:
    first = told(logged(7), logged(8, NOW_NS + 20 * S), at_ns=NOW_NS + 20 * S)
    again = fold(first, frame(logged(7), logged(8), logged(9, NOW_NS + 60 * S), at_ns=NOW_NS + 60 * S), RECORDS)
    assert first.totals[GPU].by_xid == {79: 2}
    assert again.totals[GPU].by_xid == {79: 3}
    assert again.log_sequence == 9
