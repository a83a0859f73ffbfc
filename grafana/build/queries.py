# SPDX-License-Identifier: Apache-2.0
"""Selectors and expressions that several dashboards share. Sums keep what tells nodes apart: job and instance."""

from typing import Final

from gpufeed.model.state import CAUSES
from gpufeed.palette import CAUSE_COLOURS, name_of

NODE: Final = 'cluster=~"$cluster", job=~"$job", instance=~"$instance"'
GPU: Final = f'{NODE}, gpu=~"$gpu"'
JOB: Final = f'{NODE}, job_id=~"$job_id"'
PORT: Final = f'{NODE}, device=~"$device"'
TARGET: Final = f'{NODE}, kind=~"$kind", target=~"$target"'
RATE: Final = "$__rate_interval"
OWNED: Final = f"max by (job, instance, uuid) (gpufeed_gpu_job_info{{{JOB}}})"
"""1 for every GPU of the jobs chosen: the right side of a join on job, instance and uuid."""
LOST: Final = 'state=~"starved|throttled|fault"'

STATE_NAMES: Final = tuple(CAUSE_COLOURS)
"""A dominant state is drawn by its place in this list, counted from 1."""


def rate(metric: str, selector: str, over: str = RATE) -> str:
    """Increase per second of one of our counters."""
    return f"rate(gpufeed_{metric}{{{selector}}}[{over}])"


def increase(metric: str, selector: str) -> str:
    """How many, of one of our counters."""
    return f"increase(gpufeed_{metric}{{{selector}}}[{RATE}])"


def state_time(selector: str, by: str = "") -> str:
    """GPUs (seconds per second) by labels."""
    return f"sum by ({by}) ({rate('gpu_state_seconds_total', selector)})"


def dominant_state(selector: str) -> str:
    """For every GPU, the place in STATE_NAMES of the state and cause that most of its time went to."""
    of_gpu = "cluster, job, instance, gpu"
    most = f"max by ({of_gpu}) ({state_time(selector, f'{of_gpu}, state, cause')})"
    return " or ".join(
        f"((max by ({of_gpu}) ({state_time(f'{selector}, {_pairs(name)}', f'{of_gpu}, state, cause')})"
        f" == {most}) * 0 + {place})"
        for place, name in enumerate(STATE_NAMES, 1)
    )


def of_job(metric: str, by: str) -> str:
    """A counter of GPUs, per second, of the GPUs of the jobs chosen."""
    inner = f"sum by (job, instance, uuid, {by}) ({rate(metric, NODE)})"
    return f"sum by (instance, {by}) ({inner} * on (job, instance, uuid) group_left () {OWNED})"


def latency(kind: str, selector: str) -> str:
    """Mean time of one operation: `read` or `write`. Nothing where none ended."""
    by = "sum by (instance, kind, target)"
    took = f"{by} ({rate(f'storage_{kind}_seconds_total', selector)})"
    return f"{took} / ({by} ({rate(f'storage_{kind}s_total', selector)}) > 0)"


def _pairs(name: str) -> str:
    """Matchers of all that an entry of the palette colours."""
    found = [(state, cause) for state, causes in CAUSES.items() for cause in causes if name_of(state, cause) == name]
    states = "|".join(sorted({state for state, _ in found}))
    causes = "|".join(cause for _, cause in found if cause)
    return f'state="{states}", cause=~"{causes}"' if causes else f'state="{states}"'
