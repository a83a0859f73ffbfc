# SPDX-License-Identifier: Apache-2.0
"""One GPU over a window: where its time went, by what numbers, and what of it matters most."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpufeed.history.states import SLOT_NS, Slot
from gpufeed.model.ids import GpuKey
from gpufeed.model.state import Because, JobView, NodeState, StateCause

NOTABLE: Final = 0.1
"""Share of the time from which on a loss is what matters."""
_NO_LOSS: Final = frozenset({"busy", "communicating", "idle_free"})

Slots = Callable[[GpuKey], Sequence[Slot]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One GPU, or one instance of it."""

    key: GpuKey
    index: int
    job: str
    spent_ns: Mapping[StateCause, int]
    reasons: Mapping[StateCause, Because]
    current: StateCause

    @property
    def name(self) -> str:
        """`GPU 3`, `GPU 3 instance 1`."""
        return f"GPU {self.index}" if self.key.gi is None else f"GPU {self.index} instance {self.key.gi}"

    @property
    def matters(self) -> StateCause:
        """What of its time matters most."""
        return self.current if self.current.state == "fault" else dominant(self.spent_ns)


def dominant(spent_ns: Mapping[StateCause, int]) -> StateCause:
    """The greatest loss, if it is notable; else what it did most."""
    total_ns = sum(spent_ns.values())
    if not total_ns:
        return StateCause("unknown", "no_data")
    longest_first = sorted(spent_ns, key=lambda cause: (-spent_ns[cause], cause))
    lost = [cause for cause in longest_first if cause.state not in _NO_LOSS]
    if lost and spent_ns[lost[0]] >= NOTABLE * total_ns:
        return lost[0]
    return longest_first[0]


def members(state: NodeState, slots: Slots, window_ns: int, *, has_job_names: bool) -> tuple[Member, ...]:
    """All GPUs in their order; of a board that is split, its instances."""
    since_ns = state.time.monotonic_ns - window_ns
    split = {key.uuid for key in state.attributions if key.is_instance}
    found = []
    for key, attribution in state.attributions.items():
        record = state.gpus.get(key.uuid)
        if record is None or (key.uuid in split and not key.is_instance):
            continue
        spent_ns: dict[StateCause, int] = {}
        for slot in slots(key):
            if slot.began_ns + SLOT_NS > since_ns:
                for cause, part_ns in slot.spent_ns.items():
                    spent_ns[cause] = spent_ns.get(cause, 0) + part_ns
        reasons = {cause: why for cause, why in attribution.reasons.items() if why.at_ns >= since_ns}
        job = state.ownership.jobs.get(key) or state.ownership.jobs.get(key.board)
        found.append(
            Member(
                key=key,
                index=record.index,
                job=job_name(job) if job is not None and has_job_names else "",
                spent_ns=spent_ns,
                reasons=reasons,
                current=attribution.current,
            )
        )
    return tuple(sorted(found, key=lambda one: (one.index, one.key.gi or 0)))


def job_name(job: JobView) -> str:
    """`slurm job 4242`, `pod team/train-0`."""
    if job.k8s_pod:
        return f"pod {job.k8s_namespace}/{job.k8s_pod}"
    if not job.job_id:
        return ""
    return f"pod {job.job_id}" if job.scheduler == "kubernetes" else f"{job.scheduler or 'batch'} job {job.job_id}"
