# SPDX-License-Identifier: Apache-2.0
"""What jobs report of themselves, added up over their processes: counters that never fall, and their present rates."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gpufeed.model.ids import GpuUuid, JobKey
from gpufeed.model.jobs import JobReport
from gpufeed.model.state import JobProgress, JobView
from gpufeed.signals.samples import Samples, all_of

RATE_OVER_S: Final = 30.0
"""The rates are of the last one to two times this long."""
MAX_JOBS: Final = 64


@dataclass(frozen=True, slots=True)
class Mark:
    """One process's own time, and what it had reported then."""

    elapsed_s: float
    model_flops: float
    data_wait_s: float


@dataclass(frozen=True, slots=True)
class Reporter:
    """One process: its last report, and two older ones that rates are taken from."""

    last: Mark
    older: Mark
    newer: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """Of all jobs."""

    reporters: Mapping[tuple[JobKey, int], Reporter] = field(default_factory=dict)
    results: Mapping[JobKey, JobProgress] = field(default_factory=dict)


def fold(
    previous: Reports,
    samples: Samples,
    jobs: Mapping[GpuUuid, JobView],
    peaks: Mapping[GpuUuid, Mapping[str, float]],
) -> Reports:
    """With what is reported now. Jobs that nobody reports of any more are gone."""
    reporters: dict[tuple[JobKey, int], Reporter] = {}
    results: dict[JobKey, JobProgress] = {}
    grouped: dict[JobKey, list[JobReport]] = {}
    for report in all_of(samples, JobReport):
        grouped.setdefault(JobKey(report.scheduler, report.job_id, report.step), []).append(report)
    for key, reports in sorted(grouped.items())[:MAX_JOBS]:
        before = previous.results.get(key, JobProgress())
        flops, waited_s = before.model_flops, before.data_wait_s
        for report in reports:
            mark = Mark(report.elapsed_s, report.model_flops or 0.0, report.data_wait_s or 0.0)
            known = previous.reporters.get((key, report.pid))
            last = known.last if known is not None and known.last.elapsed_s <= mark.elapsed_s else Mark(0.0, 0.0, 0.0)
            if report.model_flops is not None:
                flops = (flops or 0.0) + max(0.0, mark.model_flops - last.model_flops)
            if report.data_wait_s is not None:
                waited_s = (waited_s or 0.0) + max(0.0, mark.data_wait_s - last.data_wait_s)
            reporters[key, report.pid] = _followed(known if last.elapsed_s else None, mark)
        found = [reporters[key, report.pid] for report in reports]
        uuids = [uuid for uuid, job in jobs.items() if (job.scheduler, job.job_id) == (key.scheduler, key.job_id)]
        results[key] = replace(
            before,
            model_flops=flops,
            data_wait_s=waited_s,
            data_wait_ratio=_data_wait(found) if waited_s is not None else None,
            utilization_ratio=_utilization(found, [peaks.get(uuid, {}).get(reports[0].dtype) for uuid in uuids])
            if flops is not None
            else None,
        )
    return Reports(reporters=reporters, results=results)


def _followed(known: Reporter | None, mark: Mark) -> Reporter:
    if known is None:
        return Reporter(mark, mark, mark)
    if mark.elapsed_s - known.newer.elapsed_s >= RATE_OVER_S:
        return Reporter(mark, known.newer, mark)
    return Reporter(mark, known.older, known.newer)


def _data_wait(found: list[Reporter]) -> float | None:
    """Of the time of all reporting processes, the share in which they waited for data."""
    passed_s = sum(one.last.elapsed_s - one.older.elapsed_s for one in found)
    waited_s = sum(one.last.data_wait_s - one.older.data_wait_s for one in found)
    return min(1.0, waited_s / passed_s) if passed_s > 0 else None


def _utilization(found: list[Reporter], peaks: list[float | None]) -> float | None:
    """Model FLOPs over what the job's GPUs of this node could do; None where a peak is not known."""
    known = [peak for peak in peaks if peak is not None]
    rates = [
        (one.last.model_flops - one.older.model_flops) / (one.last.elapsed_s - one.older.elapsed_s)
        for one in found
        if one.last.elapsed_s > one.older.elapsed_s
    ]
    if not known or len(known) != len(peaks) or not rates:
        return None
    return sum(rates) / sum(known)
