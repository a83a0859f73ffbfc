# SPDX-License-Identifier: Apache-2.0
"""What a node can and cannot measure, in lines for a tired person. Pure: statuses in, text out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpufeed.catalogue.inputs import AREAS, INPUTS, Area, InputDef
from gpufeed.model.frame import InputState, InputStatus

MARKS: Final[Mapping[InputState, str]] = {
    "available": "✓", "absent": "·", "unsupported": "·", "denied": "✕", "broken": "✕",
    "released": "·",
}  # fmt: skip
_WORDS: Final[Mapping[InputState, str]] = {
    "available": "can be read",
    "absent": "not here",
    "unsupported": "not offered",
    "denied": "may not be read",
    "broken": "cannot be read",
    "released": "let go of",
}
_WORST_FIRST: Final[tuple[InputState, ...]] = ("broken", "denied", "released", "unsupported", "absent", "available")
TROUBLE: Final[frozenset[InputState]] = frozenset({"denied", "broken"})
_UNLISTED: Final = InputDef("Host", "a source of your own", "what it would tell is not known")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One input in one state, on all the devices that are in it for the same reason."""

    name: str
    state: InputState
    scopes: tuple[str, ...]
    of: int  # devices that have this input at all
    reason: str
    fix: str

    @property
    def area(self) -> Area:
        """Where it stands."""
        return INPUTS.get(self.name, _UNLISTED).area

    @property
    def is_trouble(self) -> bool:
        """It is there and cannot be read: somebody can do something about it."""
        return self.state in TROUBLE


def diagnoses(inputs: Sequence[InputStatus]) -> tuple[Diagnosis, ...]:
    """All inputs, those of several devices together, in the order of areas and names, the worst first."""
    together: dict[tuple[str, InputState, str, str], list[str]] = {}
    scopes: dict[str, set[str]] = {}
    for status in inputs:
        reason = status.reason if status.state != "available" else ""
        together.setdefault((status.input, status.state, _general(reason, status.scope), status.fix), []).append(
            status.scope
        )
        scopes.setdefault(status.input, set()).add(status.scope)
    found = [
        Diagnosis(name=name, state=state, scopes=tuple(sorted(where)), of=len(scopes[name]), reason=reason, fix=fix)
        for (name, state, reason, fix), where in together.items()
    ]
    return tuple(sorted(found, key=_order))


def report(found: Sequence[Diagnosis], *, is_brief: bool = False) -> Iterator[str]:
    """The lines, by area. Brief: only what is there and cannot be read."""
    for area in AREAS:
        lines = [line for one in found if one.area == area and (one.is_trouble or not is_brief) for line in _lines(one)]
        if lines:
            yield area
            yield from lines


def verdict(found: Sequence[Diagnosis]) -> str:
    """The last line: what is to be done, in one sentence."""
    trouble = [one for one in found if one.is_trouble]
    if not found:
        return "Nothing could be found out."
    if not trouble:
        return "Everything that is here can be read."
    fixes = len({one.fix for one in trouble if one.fix})
    more = f"; {fixes} thing{'s' if fixes > 1 else ''} to do, marked →" if fixes else ""
    return f"{len(trouble)} of {len(found)} inputs are here and cannot be read{more}."


def _lines(one: Diagnosis) -> Iterator[str]:
    told = INPUTS.get(one.name, _UNLISTED)
    count = f" ({len(one.scopes)} of {one.of})" if one.of > 1 else ""
    reason = f": {one.reason}" if one.reason else ""
    source = f" ({told.source})" if one.state == "available" else ""
    yield f"  {MARKS[one.state]} {one.name:<18} {_WORDS[one.state]}{count}{source}{reason}"
    if one.is_trouble and len(one.scopes) < one.of:
        yield f"      on {_some(one.scopes)}"
    if one.is_trouble or one.fix:
        yield f"      without it {told.without}"
    if one.fix:
        yield f"      → {one.fix}"


def _order(one: Diagnosis) -> tuple[int, str, int]:
    return AREAS.index(one.area), one.name, _WORST_FIRST.index(one.state)


def _general(reason: str, scope: str) -> str:
    """The reason without the device's own name, so that eight GPUs give one line."""
    return reason.replace(scope, "…") if scope else reason


_SHOWN: Final = 4


def _some(scopes: Sequence[str]) -> str:
    more = len(scopes) - _SHOWN
    return ", ".join(scopes[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
