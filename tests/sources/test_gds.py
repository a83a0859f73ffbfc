# SPDX-License-Identifier: Apache-2.0
"""GPUDirect Storage: counted, not counted, not there."""

import errno

import pytest

from gpufeed.errors import Absent
from gpufeed.model.desired import CollectorOptions
from gpufeed.model.storage import StorageInfo
from gpufeed.sources.gds import GdsSource
from host_bench import HostBench, read, samples_of, statuses
from storage_bench import counters, lanes, refusing, scan

SOURCE = GdsSource()
STATS = "proc/driver/nvidia-fs/stats"
ON = """\
NVFS Driver(version: 2.20.5)
IO stats: Enabled, peer IO stats: Disabled

Reads                           : n=1203 ok=1200 err=2 readMiB=4800 io_state_err=1
Reads                           : Bandwidth(MiB/s)=900 Avg-Latency(usec)=4200
Writes                          : n=50 ok=50 err=1 writeMiB=200 io_state_err=0 pg-cache=0 pg-cache-fail=0
Ops                             : Read=3 Write=1 BatchIO=0
"""
OFF = """\
NVFS Driver(version: 2.17.5)
IO stats: Disabled, peer IO stats: Disabled

Reads                           : err=0 io_state_err=0
Writes                          : err=0 io_state_err=0 pg-cache=0 pg-cache-fail=0 pg-cache-eio=0
Ops                             : Read=0 Write=0 BatchIO=0
"""


def test_the_node_is_one_target(bench: HostBench) -> None:
    bench.write(STATS, ON)
    (sample,) = counters(bench, SOURCE).values()
    assert (sample.storage.kind, sample.storage.target) == ("gds", "node")
    assert (sample.read_bytes, sample.write_bytes) == (4800 << 20, 200 << 20)
    assert (sample.reads, sample.writes, sample.errors, sample.inflight) == (1200, 50, 3, 4)
    assert (sample.read_s, sample.application_read_bytes) == (None, None)
    outcome = scan(bench, SOURCE)
    assert [info.source for info in samples_of(outcome, StorageInfo)] == ["nvidia-fs 2.20.5"]
    assert statuses(outcome)["gds", ""].state == "available"


def test_statistics_that_are_switched_off_are_unknown_and_the_switch_is_named(bench: HostBench) -> None:
    """gds-nvidia-fs#31, #78: 'no GDS traffic'."""
    bench.write(STATS, OFF)
    (sample,) = counters(bench, SOURCE).values()
    assert (sample.read_bytes, sample.write_bytes, sample.reads, sample.writes) == (None, None, None, None)
    assert (sample.errors, sample.inflight) == (0, 0)
    status = statuses(scan(bench, SOURCE))["gds", ""]
    assert (status.state, "rw_stats_enabled" in status.fix) == ("unsupported", True)


def test_statistics_switched_on_later_are_read_by_the_same_lane(bench: HostBench) -> None:
    bench.write(STATS, OFF)
    (plan,) = lanes(scan(bench, SOURCE))
    bench.write(STATS, ON)
    assert lanes(scan(bench, SOURCE)) == (plan,)
    assert counters(bench, SOURCE)["node"].reads == 1200


def test_without_the_driver_there_is_nothing_and_nothing_is_wrong(bench: HostBench) -> None:
    outcome = scan(bench, SOURCE)
    assert (outcome.samples, outcome.failures, outcome.lanes) == ((), (), ())
    assert statuses(outcome)["gds", ""].state == "absent"


def test_garbage_is_one_counted_error(bench: HostBench) -> None:
    bench.write(STATS, b"\xff\x00 nothing of the kind\n")
    outcome = scan(bench, SOURCE)
    assert ([failure.reason for failure in outcome.failures], outcome.lanes) == (["parse"], ())
    assert statuses(outcome)["gds", ""].state == "broken"


def test_a_file_that_is_not_for_us_is_said(bench: HostBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write(STATS, ON)
    refusing(monkeypatch, "open", errno.EACCES, "/nvidia-fs")
    outcome = scan(bench, SOURCE)
    assert statuses(outcome)["gds", ""].state == "denied"
    assert [failure.reason for failure in outcome.failures] == ["denied"]


def test_a_driver_that_is_unloaded_is_gone_and_no_error(bench: HostBench) -> None:
    bench.write(STATS, ON)
    (plan,) = lanes(scan(bench, SOURCE))
    reader = bench.open(plan)
    (bench.root / STATS).unlink()
    with pytest.raises(Absent):
        read(reader, "gds.fast")
    reader.close()
    assert scan(bench, SOURCE).lanes == ()


def test_a_collector_switched_off_has_no_lane(bench: HostBench) -> None:
    bench.options["gds"] = CollectorOptions(enabled=False)
    assert SOURCE.plan(bench.config) == ()
