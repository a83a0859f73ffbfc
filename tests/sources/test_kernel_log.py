# SPDX-License-Identifier: Apache-2.0
"""XIDs by the kernel log."""

import os

import pytest

from gpufeed.model.desired import CollectorOptions
from gpufeed.model.frame import XidEvent
from gpufeed.sources import kernel_log
from gpufeed.sources.contract import Outcome
from gpufeed.sources.kernel_log import KernelLogSource
from gpufeed.units import NS_PER_S
from host_bench import HostBench, read, statuses

LOST = "NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus."


def record(number: int, at_s: float, text: str) -> str:
    return f"4,{number},{round(at_s * 1_000_000)},-;{text}\n"


def xids(outcome: Outcome) -> list[XidEvent]:
    return [event for event in outcome.events if isinstance(event, XidEvent)]


def test_what_stood_there_has_the_logs_time_and_what_comes_is_as_old_as_the_look(bench: HostBench) -> None:
    now_ns = bench.clock.monotonic_ns()
    before_s = now_ns / NS_PER_S - 300
    old = record(1, before_s, LOST) + " SUBSYSTEM=pci\n"
    bench.write("dev/kmsg", old)
    reader = bench.only_reader(KernelLogSource())
    (first,) = xids(read(reader, "xid.log"))
    assert (first.xid, first.pci_bus_id, first.origin, first.sequence) == (79, "0000:18:00", "kernel_log", 1)
    assert first.at_ns == now_ns - 300 * NS_PER_S
    assert first.uuid is None

    # the log's clock has drifted a minute ahead of ours, as it does within weeks
    bench.clock.advance(NS_PER_S)
    bench.write("dev/kmsg", old + record(2, before_s + 361, LOST.replace("79", "31")))
    (second,) = xids(read(reader, "xid.log"))
    assert (second.xid, second.at_ns) == (31, bench.clock.monotonic_ns())
    assert xids(read(reader, "xid.log")) == []


def test_time_asleep_is_taken_off_the_logs_time(bench: HostBench) -> None:
    bench.clock.suspend(3600 * NS_PER_S)
    now_ns, boot_ns = bench.clock.monotonic_ns(), bench.clock.boottime_ns()
    bench.write("dev/kmsg", record(1, boot_ns / NS_PER_S - 5, LOST))
    (event,) = xids(read(bench.only_reader(KernelLogSource()), "xid.log"))
    assert event.at_ns == now_ns - 5 * NS_PER_S


def test_a_line_that_is_half_written_waits_for_its_end(bench: HostBench) -> None:
    whole = record(1, 5, LOST)
    bench.write("dev/kmsg", whole[:30])
    reader = bench.only_reader(KernelLogSource())
    assert xids(read(reader, "xid.log")) == []
    bench.write("dev/kmsg", whole)
    assert [event.xid for event in xids(read(reader, "xid.log"))] == [79]


def test_a_log_that_may_not_be_read_is_said_once_and_looked_for_again(bench: HostBench) -> None:
    reader = bench.only_reader(KernelLogSource())
    assert statuses(read(reader, "xid.log"))["kernel_log", ""].state == "absent"
    assert read(reader, "xid.log").inputs == ()
    bench.write("dev/kmsg", record(1, 5, LOST))
    found = read(reader, "xid.log")
    assert statuses(found)["kernel_log", ""].state == "available"
    assert len(found.events) == 1


def test_without_the_collector_there_is_no_lane(bench: HostBench) -> None:
    bench.options["xid"] = CollectorOptions(enabled=False)
    assert KernelLogSource().plan(bench.config) == ()


def test_a_look_never_waits_for_a_writer(bench: HostBench) -> None:
    path = bench.root / "dev/kmsg"
    path.parent.mkdir()
    os.mkfifo(path)
    keeper = os.open(path, os.O_RDWR)  # a pipe that has a writer answers EAGAIN, as the log does
    try:
        reader = bench.only_reader(KernelLogSource())
        assert read(reader, "xid.log").events == ()
        os.write(keeper, record(7, 5, LOST).encode())
        (event,) = xids(read(reader, "xid.log"))
        assert event.at_ns == bench.clock.monotonic_ns()
        reader.close()
    finally:
        os.close(keeper)


def test_a_storm_is_read_over_several_looks(bench: HostBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_log, "_MAX_READS", 2)
    storm = "".join(record(number, 5, "x" * 8000) for number in range(6))
    bench.write("dev/kmsg", storm + record(6, 5, LOST))
    reader = bench.only_reader(KernelLogSource())
    seen = [len(read(reader, "xid.log").events) for _ in range(3)]
    assert seen == [0, 1, 0]
