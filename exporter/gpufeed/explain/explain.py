# SPDX-License-Identifier: Apache-2.0
"""Where the time of a node's GPUs went over a window, and why."""

from collections.abc import Sequence
from typing import Final

from gpufeed.catalogue.inputs import INPUTS
from gpufeed.explain.lines import lines, told
from gpufeed.explain.member import Member, Slots, members
from gpufeed.explain.part import part
from gpufeed.explain.reported import disagreements
from gpufeed.explain.shape import Explanation, Part
from gpufeed.health.subject import named
from gpufeed.model.state import NodeState, StateCause
from gpufeed.units import NS_PER_S

DEFAULT_WINDOW_S: Final = 300
MAX_WINDOW_S: Final = 1800

_NAMED: Final = 3
_HARMLESS: Final = frozenset({"busy", "communicating", "idle_free"})
_DECIDES: Final = (
    "gpm",
    "utilization",
    "task_states",
    "pressure",
    "job_owners",
    "nvlink",
    "infiniband",
    "clock_events",
)
"""Inputs without which a cause may be missed, also where nobody can do anything about it."""


def explain(
    state: NodeState, slots: Slots, window_s: float, *, hostname: str, is_simulated: bool, has_job_names: bool
) -> Explanation:
    """Everything there is to say of the last `window_s` seconds."""
    found = members(state, slots, round(window_s * NS_PER_S), has_job_names=has_job_names)
    alike: dict[tuple[str, StateCause], list[Member]] = {}
    for one in found:
        alike.setdefault((one.job, one.matters), []).append(one)
    parts = [part(group, state, group_name(group, found)) for group in alike.values()]
    parts.sort(key=_worst_first)
    jobs = dict.fromkeys(one.job for one in found if one.job)
    unseen = _not_measured(state, parts)
    apart = tuple(disagreements(state, found, has_job_names=has_job_names))
    return Explanation(
        hostname=hostname,
        simulated=is_simulated,
        time_seconds=state.time.wall_ns / NS_PER_S,
        window_seconds=window_s,
        parts=tuple(parts),
        gpus=tuple(part((one,), state, one.name) for one in found),
        jobs=tuple(part(group, state, job) for job in jobs if (group := [one for one in found if one.job == job])),
        not_measured=unseen,
        lines=(
            *lines(parts, unseen, _unwell(state, parts), window_s, is_probe_up=state.probe.is_up),
            *(line for one in apart for line in told(one)),
        ),
        disagreements=apart,
    )


def group_name(group: Sequence[Member], all_of_them: Sequence[Member]) -> str:
    """`All 8 GPUs`, `GPU 3`, `GPUs 0-3, 6`."""
    if len(group) == 1:
        return group[0].name
    if len(group) == len(all_of_them):
        return f"All {len(group)} GPUs" if not group[0].key.is_instance else f"All {len(group)} instances"
    if any(one.key.is_instance for one in group):
        if len(group) <= _NAMED:
            return ", ".join(one.name for one in group)
        boards = len({one.key.uuid for one in group})
        return f"{len(group)} instances on {boards} GPU{'' if boards == 1 else 's'}"
    runs: list[list[int]] = []
    for one in group:
        if runs and one.index == runs[-1][-1] + 1:
            runs[-1].append(one.index)
        else:
            runs.append([one.index])
    return "GPUs " + ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _unwell(state: NodeState, parts: Sequence[Part]) -> tuple[str, ...]:
    """What health checks say of other things than GPUs whose fault is told already."""
    told = {uuid for one in parts if one.state == "fault" for uuid in one.uuids}
    found = sorted(state.verdicts.values(), key=lambda one: (-one.level, one.check, str(one.subject)))
    return tuple(
        one.reason if (name := named(one.subject, state)) in one.reason else f"{name}: {one.reason}"
        for one in found
        if one.level and one.reason and getattr(one.subject, "uuid", None) not in told
    )


def _worst_first(one: Part) -> tuple[bool, bool, float]:
    lost = sum(share.ratio for share in one.shares if share.state not in _HARMLESS)
    return one.state != "fault", one.state in _HARMLESS, -lost * len(one.uuids)


def _not_measured(state: NodeState, parts: Sequence[Part]) -> tuple[str, ...]:
    """What may have hidden something: what can be helped first, then what this node does not have."""
    if all(one.state in _HARMLESS for one in parts):
        return ()
    worst: dict[str, str] = {}
    available = {one.input for one in state.inputs.values() if one.state == "available"}
    for one in state.inputs.values():
        is_helped = one.state in {"denied", "broken"}
        if one.input in available or not (is_helped or one.input in _DECIDES) or one.input not in INPUTS:
            continue
        worst[one.input] = f"{one.input}: {INPUTS[one.input].without}"
    return tuple(worst[name] for name in sorted(worst))
