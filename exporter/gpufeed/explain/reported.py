# SPDX-License-Identifier: Apache-2.0
"""Where a job says something else of its waiting than was seen from outside."""

from collections.abc import Iterator, Sequence
from typing import Final

from gpufeed.explain.member import Member, job_name
from gpufeed.explain.numbers import percent
from gpufeed.model.state import NodeState, StateCause

APART: Final = 0.1
"""Shares of the time that differ by more than this are told."""
_INPUT: Final = frozenset({StateCause("starved", cause) for cause in ("storage", "host_cpu", "host_memory")})


def disagreements(state: NodeState, of: Sequence[Member], *, has_job_names: bool) -> Iterator[str]:
    """A sentence for each job that reports its waits for data, where they are not what was seen."""
    for key, progress in state.progress.items():
        if progress.data_wait_ratio is None:
            continue
        found = []
        for one in of:
            job = state.ownership.jobs.get(one.key) or state.ownership.jobs.get(one.key.board)
            if job is not None and (job.scheduler, job.job_id) == (key.scheduler, key.job_id):
                found.append((one, job))
        total_ns = sum(sum(one.spent_ns.values()) for one, _ in found)
        if not total_ns:
            continue
        waited_ns = sum(ns for one, _ in found for cause, ns in one.spent_ns.items() if cause in _INPUT)
        seen = waited_ns / total_ns
        if abs(seen - progress.data_wait_ratio) > APART:
            name = job_name(found[0][1]) if has_job_names else "A job"
            why = (
                "work queued on the GPU hides its waits, or they are for something else"
                if seen < progress.data_wait_ratio
                else "its loop waits elsewhere, or some of its processes do not report"
            )
            told = f"{name} reports that it waits for data {percent(progress.data_wait_ratio)} of the time"
            yield f"{told}; seen here: {percent(seen)} ({why})"
