# SPDX-License-Identifier: Apache-2.0
"""All verdicts in one: what a scheduler's health check is told, and the line that tells it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct

from gpufeed.health.checks import CHECKS
from gpufeed.health.subject import kind, named
from gpufeed.model.state import NodeState

Level = Literal["ok", "degraded", "failed", "unknown"]

_LEVELS: Final[tuple[Level, ...]] = ("ok", "degraded", "failed")
_DEGRADED: Final = 1
_SHOWN: Final = 3
_KIND_OF_METRIC: Final = {f"gpufeed_{name}_health": name for name in ("gpu", "ib", "storage", "host", "self")}


class Trouble(Struct, frozen=True, kw_only=True):
    """One check that is not ok and counts."""

    subject: str
    check: str  # kind.name, as the configuration spells it
    level: Level
    reason: str
    action: str


class Conclusion(Struct, frozen=True, kw_only=True):
    """The node as one level. `unknown`: nothing has been read that would say so."""

    level: Level
    line: str
    troubles: tuple[Trouble, ...] = ()
    checked: int = 0  # verdicts that count
    ignored: int = 0  # that are not ok, and do not count


def check_names() -> frozenset[str]:
    """Every `kind.check` there is."""
    return frozenset(f"{_KIND_OF_METRIC[metric]}.{check}" for metric, names in CHECKS.items() for check in names)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether `kind.check` is meant by one of `kind.check`, `kind.*` or `*`."""
    return any(pattern in {name, f"{name.partition('.')[0]}.*", "*"} for pattern in patterns)


def conclude(state: NodeState, include: Sequence[str], exclude: Sequence[str]) -> Conclusion:
    """What the checks that count say together.

    What is wrong with gpufeed itself is at most `degraded`: it is no reason to take a node away from its users.
    """
    if not state.probe.frames:
        return Conclusion(level="unknown", line="unknown: nothing has been read yet")
    verdicts = [(f"{kind(one.subject)}.{one.check}", one) for one in state.verdicts.values()]
    counted = [(name, one) for name, one in verdicts if matches(name, include) and not matches(name, exclude)]
    if not counted:
        return Conclusion(level="unknown", line="unknown: no check that counts could be made", ignored=_bad(verdicts))
    found = sorted(
        (
            (min(one.level, _DEGRADED) if one.subject == "self" else one.level, named(one.subject, state), name, one)
            for name, one in counted
            if one.level
        ),
        key=lambda item: (-item[0], item[2], item[1]),
    )
    troubles = tuple(
        Trouble(subject=subject, check=name, level=_LEVELS[level], reason=one.reason, action=one.action)
        for level, subject, name, one in found
    )
    level = troubles[0].level if troubles else "ok"
    text = "; ".join(_told(troubles)) or _well(state, len(counted))
    ignored = _bad(verdicts) - len(troubles)
    return Conclusion(level=level, line=f"{level}: {text}", troubles=troubles, checked=len(counted), ignored=ignored)


def _bad(verdicts: Iterable[tuple[str, object]]) -> int:
    return sum(bool(getattr(one, "level", 0)) for _, one in verdicts)


def _well(state: NodeState, checked: int) -> str:
    gpus = len(state.gpus)
    return f"{gpus} GPU{'' if gpus == 1 else 's'}, {checked} checks, nothing wrong"


def _told(troubles: Sequence[Trouble]) -> Iterator[str]:
    for one in troubles[:_SHOWN]:
        action = f" ({one.action.replace('_', ' ')})" if one.action else ""
        about = one.reason if one.subject in one.reason or one.subject in {"host", "self"} else ""
        yield f"{about or f'{one.subject}: {one.reason}'}{action} [{one.check}]"
    if len(troubles) > _SHOWN:
        yield f"and {len(troubles) - _SHOWN} more"
