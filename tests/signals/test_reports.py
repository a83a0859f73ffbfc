# SPDX-License-Identifier: Apache-2.0
"""What processes report, added up by job: counters never fall, rates are of the last half minute or more."""

from collections.abc import Hashable
from typing import Any

import pytest

from gpufeed.model.ids import GpuUuid, GroupName, JobKey, LaneId
from gpufeed.model.jobs import JobReport
from gpufeed.model.sample import Sample
from gpufeed.model.state import Held, JobProgress, JobView
from gpufeed.signals.reports import RATE_OVER_S, Reports, fold

JOB = JobKey("slurm", "7", "0")
A, B = GpuUuid("a"), GpuUuid("b")
JOBS = {uuid: JobView(scheduler="slurm", job_id="7", step="0") for uuid in (A, B)}
PEAKS = {uuid: {"bf16": 1e15} for uuid in (A, B)}


def report(pid: int, elapsed_s: float, waited_s: float | None = None, flops: float | None = None) -> JobReport:
    return JobReport(
        scheduler="slurm", job_id="7", step="0", pid=pid, elapsed_s=elapsed_s, data_wait_s=waited_s, model_flops=flops
    )


def told(previous: Reports, *reports: JobReport) -> Reports:
    held: dict[Hashable, Held[Any]] = {
        one.pid: Held(
            sample=one, lane=LaneId("reports"), group=GroupName("jobs.reports"), collector="jobs",
            read_at_ns=0, stale_at_ns=1,
        )
        for one in reports
    }  # fmt: skip
    return fold(previous, {JobReport: held}, JOBS, PEAKS)


def progress(of: Reports) -> JobProgress:
    return of.results[JOB]


def test_processes_of_a_job_are_added_up_and_one_that_begins_anew_takes_nothing_back() -> None:
    one = told(Reports(), report(1, 10, 4), report(2, 10, 6))
    assert progress(one).data_wait_s == 10
    two = told(one, report(1, 12, 5), report(2, 1, 0.5))
    assert progress(two).data_wait_s == pytest.approx(11.5)
    three = told(two, report(3, 5, 2))
    assert progress(three).data_wait_s == pytest.approx(13.5)
    assert told(three).results == {}


def test_rates_are_of_the_last_half_minute_or_more() -> None:
    now = told(Reports(), report(1, 0, 0, 0), report(2, 0, 0, 0))
    assert (progress(now).data_wait_ratio, progress(now).utilization_ratio) == (None, None)
    for second in range(2, 101, 2):
        share = 0.5 if second > 20 else 0.0
        waited = max(0.0, second - 20) * share
        now = told(now, report(1, second, waited, second * 4e14), report(2, second, waited, second * 4e14))
    assert progress(now).data_wait_ratio == pytest.approx(0.5)
    assert progress(now).utilization_ratio == pytest.approx(0.4)
    assert RATE_OVER_S <= 40


def test_what_a_job_does_not_report_is_absent() -> None:
    only_flops = told(told(Reports(), report(1, 1, None, 0.0)), report(1, 2, None, 5.0))
    assert (progress(only_flops).data_wait_s, progress(only_flops).data_wait_ratio) == (None, None)
    only_waits = told(told(Reports(), report(1, 1, 0.0)), report(1, 2, 0.5))
    assert (progress(only_waits).model_flops, progress(only_waits).utilization_ratio) == (None, None)
    assert progress(only_waits).data_wait_ratio == pytest.approx(0.5)


def test_without_a_peak_there_is_no_utilization() -> None:
    first = fold(Reports(), {}, JOBS, {})
    held = told(first, report(1, 1, None, 0.0))
    again = told(held, report(1, 2, None, 4e14))
    assert progress(again).utilization_ratio == pytest.approx(0.2)
    samples: dict[type[Sample], dict[Hashable, Held[Any]]] = {
        JobReport: {
            1: Held(
                sample=report(1, 3, None, 8e14), lane=LaneId("reports"), group=GroupName("jobs.reports"),
                collector="jobs", read_at_ns=0, stale_at_ns=1,
            )
        }
    }  # fmt: skip
    assert fold(again, samples, JOBS, {A: {"bf16": 1e15}}).results[JOB].utilization_ratio is None
