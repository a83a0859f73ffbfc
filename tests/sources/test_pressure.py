# SPDX-License-Identifier: Apache-2.0
"""Pressure of the node."""

import errno
import os

import pytest

from gpufeed.model.desired import CollectorOptions
from gpufeed.model.host import Pressure
from gpufeed.sources.pressure import PressureSource
from host_bench import HostBench, failing, open_files, read, samples_of, statuses

SOME = "some avg10=0.00 avg60=0.00 avg300=0.00 total=4500000\n"
FULL = "full avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n"


def fill(bench: HostBench) -> None:
    for resource in ("cpu", "io", "memory"):
        bench.write(f"proc/pressure/{resource}", SOME + FULL)


def test_waiting_and_stalled_are_read_and_full_of_the_processors_is_not(bench: HostBench) -> None:
    fill(bench)
    outcome = read(bench.only_reader(PressureSource()), "pressure.fast")
    assert samples_of(outcome, Pressure) == [
        Pressure(resource="cpu", waiting_s=4.5, stalled_s=None),
        Pressure(resource="io", waiting_s=4.5, stalled_s=1.5),
        Pressure(resource="memory", waiting_s=4.5, stalled_s=1.5),
    ]
    assert outcome.failures == ()


def test_irq_has_full_only_and_nobody_misses_it(bench: HostBench) -> None:
    fill(bench)
    reader = bench.only_reader(PressureSource())
    assert ("pressure", "irq") not in statuses(read(reader, "pressure.fast"))
    bench.write("proc/pressure/irq", FULL)
    outcome = read(reader, "pressure.fast")
    assert samples_of(outcome, Pressure)[-1] == Pressure(resource="irq", stalled_s=1.5)


def test_a_status_is_said_once_and_again_when_it_changes(bench: HostBench) -> None:
    fill(bench)
    reader = bench.only_reader(PressureSource())
    assert statuses(read(reader, "pressure.fast"))["pressure", "io"].state == "available"
    assert read(reader, "pressure.fast").inputs == ()
    bench.write("proc/pressure/io", "garbage")
    outcome = read(reader, "pressure.fast")
    assert [(status.scope, status.state) for status in outcome.inputs] == [("io", "broken")]
    assert [(failure.device, failure.reason) for failure in outcome.failures] == [("io", "parse")]
    assert len(outcome.samples) == 2


def test_pressure_switched_off_is_unsupported_with_its_fix(bench: HostBench, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(bench)
    monkeypatch.setattr(os, "pread", failing(os.pread, OSError(errno.EOPNOTSUPP, "off")))
    outcome = read(bench.only_reader(PressureSource()), "pressure.fast")
    status = statuses(outcome)["pressure", "cpu"]
    assert (status.state, "psi=1" in status.fix) == ("unsupported", True)
    assert (outcome.samples, outcome.failures) == ((), ())


def test_an_old_kernel_has_no_pressure_and_that_is_no_failure(bench: HostBench) -> None:
    outcome = read(bench.only_reader(PressureSource()), "pressure.fast")
    assert {status.state for status in outcome.inputs} == {"absent"}
    assert outcome.failures == ()


def test_a_file_that_cannot_be_read_leaves_the_others(bench: HostBench) -> None:
    fill(bench)
    bench.refuse("proc/pressure/io")
    outcome = read(bench.only_reader(PressureSource()), "pressure.fast")
    assert [sample.resource for sample in samples_of(outcome, Pressure)] == ["cpu", "memory"]
    assert [failure.reason for failure in outcome.failures] == ["broken"]
    assert statuses(outcome)["pressure", "io"].state == "broken"


def test_a_collector_switched_off_has_no_lane(bench: HostBench) -> None:
    bench.options["pressure"] = CollectorOptions(enabled=False)
    assert PressureSource().plan(bench.config) == ()


def test_closing_lets_go_of_the_files(bench: HostBench) -> None:
    fill(bench)
    before = open_files()
    reader = bench.only_reader(PressureSource())
    read(reader, "pressure.fast")
    assert open_files() == before + 3
    reader.close()
    assert open_files() == before
