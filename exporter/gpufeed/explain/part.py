# SPDX-License-Identifier: Apache-2.0
"""One or more GPUs that are told of together."""

from collections.abc import Mapping, Sequence
from typing import Final

from gpufeed.explain.causes import story
from gpufeed.explain.member import Member, dominant
from gpufeed.explain.numbers import percent, phrase, quantity
from gpufeed.explain.shape import Number, Part, Share
from gpufeed.model.evidence import Evidence
from gpufeed.model.ids import GpuKey
from gpufeed.model.state import NodeState, StateCause
from gpufeed.units import NS_PER_S

_STRONG: Final = 0.25
"""Score from which on a number is worth telling."""
_TOLD: Final = 4
_TARGET: Final = " read latency"  # names the storage, also before its usual latency has been learned
_WITHIN: Final = 0.01
_SLOW_CLOCK: Final = "SM clock of highest"
_NOT_IN_USE: Final = frozenset({"idle_free", "fault", "unknown"})


def part(of: Sequence[Member], state: NodeState, name: str) -> Part:
    """What is to be said of these GPUs."""
    spent_ns: dict[StateCause, int] = {}
    for one in of:
        for cause, part_ns in one.spent_ns.items():
            spent_ns[cause] = spent_ns.get(cause, 0) + part_ns
    total_ns = sum(spent_ns.values())
    faults = {one.current for one in of if one.current.state == "fault"}
    matters = min(faults) if len(faults) == 1 and all(one.current in faults for one in of) else dominant(spent_ns)
    shares = {cause: part_ns / total_ns for cause, part_ns in spent_ns.items() if total_ns}
    numbers = _numbers(of, matters)
    told = story(matters)
    return Part(
        name=name,
        uuids=tuple(one.key.uuid for one in of),
        job=next(iter({one.job for one in of})) if len({one.job for one in of}) == 1 else "",
        watched_seconds=total_ns / len(of) / NS_PER_S,
        shares=tuple(
            Share(cause.state, cause.cause, ratio)
            for cause, ratio in sorted(shares.items(), key=lambda item: (-item[1], item[0]))
        ),
        state=matters.state,
        cause=matters.cause,
        confidence=_confidence(of, matters),
        evidence=numbers,
        gain_at_most=_gain(shares, matters, numbers),
        summary=_summary(matters, shares),
        why="; ".join((*_beyond(of, state, matters), *(phrase(number) for number in numbers))),
        next=told.next,
        alike=told.alike,
    )


def _numbers(of: Sequence[Member], matters: StateCause) -> tuple[Number, ...]:
    """Those that decided, the strongest first; of several GPUs the means by time."""
    sums: dict[str, list[tuple[float, Evidence]]] = {}
    for one in of:
        why = one.reasons.get(matters)
        for item in why.evidence if why is not None else ():
            sums.setdefault(item.input, []).append((why.weight_s if why is not None else 0.0, item))
    means = [_mean(items) for items in sums.values()]

    def names_target(item: Evidence) -> bool:
        return matters.cause == "storage" and item.input.endswith(_TARGET)

    scored = sorted(
        (item for item in means if (item.score or 0) >= _STRONG or names_target(item)),
        key=lambda item: (not names_target(item), -(item.score or 0)),
    )
    shown = story(matters).shown
    if not scored:
        scored = [item for name in shown for item in means if item.input == name]
    return tuple(Number(item.input, item.value, item.unit, item.usual) for item in scored[:_TOLD])


def _mean(items: Sequence[tuple[float, Evidence]]) -> Evidence:
    total = sum(weight for weight, _ in items) or 1.0

    def over(values: Sequence[tuple[float, float | None]]) -> float | None:
        known = [(weight, value) for weight, value in values if value is not None]
        whole = sum(weight for weight, _ in known)
        return sum(weight * value for weight, value in known) / whole if whole else None

    first = items[0][1]
    return Evidence(
        input=first.input,
        value=sum(weight * item.value for weight, item in items) / total,
        unit=first.unit,
        score=over([(weight, item.score) for weight, item in items]),
        usual=over([(weight, item.usual) for weight, item in items]),
    )


def _confidence(of: Sequence[Member], matters: StateCause) -> float | None:
    if matters.state == "fault":
        return 1.0
    known = [why.confidence for one in of if (why := one.reasons.get(matters)) is not None]
    sure = [one for one in known if one is not None]
    return sum(sure) / len(sure) if sure else None


def _gain(shares: Mapping[StateCause, float], matters: StateCause, numbers: Sequence[Number]) -> float | None:
    """Times the work at most. By time alone: what a layer could carry is not asked."""
    if matters.state not in {"starved", "throttled"} or matters.cause == "unknown":
        return None
    in_use = sum(ratio for cause, ratio in shares.items() if cause.state not in _NOT_IN_USE)
    lost = shares.get(matters, 0.0) / in_use if in_use else 0.0
    if matters.state == "throttled":
        clock = next((number.value for number in numbers if number.input == _SLOW_CLOCK), None)
        if clock is None:
            return None
        lost *= 1.0 - clock
    return 1.0 / (1.0 - lost) if lost < 1.0 - _WITHIN else None


def _summary(matters: StateCause, shares: Mapping[StateCause, float]) -> str:
    rest: dict[str, float] = {}
    for cause, ratio in shares.items():
        if cause != matters:
            name = f"{cause.state} ({cause.cause})" if cause.state in {"starved", "throttled"} else cause.state
            rest[name] = rest.get(name, 0.0) + ratio
    others = ", ".join(
        f"{name.replace('_', ' ')} {percent(ratio)}"
        for name, ratio in sorted(rest.items(), key=lambda item: -item[1])
        if ratio >= _WITHIN
    )
    head = f"{story(matters).is_} {percent(shares.get(matters, 0.0))} of the time"
    return f"{head}; {others}" if others else head


def _beyond(of: Sequence[Member], state: NodeState, matters: StateCause) -> tuple[str, ...]:
    """What health checks and the comparison of GPUs add."""
    keys = {one.key.board for one in of}
    if matters.state == "fault":
        verdicts = [one for one in state.verdicts.values() if one.subject in keys and one.level == 2]  # noqa: PLR2004 failed
        return tuple(dict.fromkeys(one.reason for one in verdicts if one.reason))[:2]
    if matters == ("starved", "peer"):
        scored = {uuid: found for uuid, found in state.stragglers.items() if uuid in state.gpus}
        slowest = max(scored, key=lambda uuid: scored[uuid].score, default=None)
        if slowest is None or scored[slowest].score < 0.1 or GpuKey(slowest) in keys:  # noqa: PLR2004 a tenth of the time
            return ("no GPU of this node stands out: the slow one is elsewhere",)
        how = "; ".join(
            f"{item.input} {quantity(item.value, item.unit)}"
            + (f", the others' {quantity(item.usual, item.unit)}" if item.usual is not None else "")
            for item in scored[slowest].reasons[:2]
        )
        return (f"GPU {state.gpus[slowest].index} waits least: the others wait for it{f' ({how})' if how else ''}",)
    return ()
