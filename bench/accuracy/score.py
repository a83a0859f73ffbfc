# SPDX-License-Identifier: Apache-2.0
"""One GPU's answer held to its truth: how far off its shares are, and which seconds were given a wrong cause.

Of the starved seconds of a bin an answer is right as far as
- its cause is one that alone explains the waiting of this run, whatever stage an item was in at that moment; or
- its cause is where the item was at that moment, give or take a bin;
- where no cause alone explains the waiting: it names each no more than curing it would have given back.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from bench.accuracy.timeline import Bin, Seconds
from bench.accuracy.verdicts import BIN_NS, Right
from gpufeed.simulate.activity import Cause

K = TypeVar("K")
Totals = defaultdict[K, float]

WINDOW_BINS: Final = 600_000_000_000 // BIN_NS
UNKNOWN: Final = "unknown"
_TINY_S: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Seconds, unless said otherwise."""

    errors: list[float]  # of each ten minutes, or what there was: the error of the state's share that is furthest off
    total: float
    starved: float  # in truth
    wrong: float  # of these: given another cause
    false: float  # given a cause of starvation while the GPU did not starve
    unknown: float  # of which nothing was said where something could have been
    truth: dict[str, float]
    answer: dict[str, float]
    confusion: dict[str, float]  # "truth>answer", both as `label` has them


def scored(bins: Sequence[Bin], right: Right, *, is_visible: bool, margin: float) -> Score:
    """`margin`: share of the starved seconds that a mixed cause may be named too much."""
    truth, answer = _sum(of.truth for of in bins), _sum(of.answer for of in bins)
    asked = int(right.until_s * 1e9) // BIN_NS if right.is_mixed else 0
    wrong_s, false_s = _unmatched(bins[asked:], right)
    if asked:
        excess_s, beyond_s = _beyond_cures(bins[:asked], right, margin)
        wrong_s, false_s = wrong_s + excess_s, false_s + beyond_s
    undecided_s = answer.get(("starved", UNKNOWN), 0.0) if right.is_one else 0.0
    blind_s = sum(spent_s for (state, _), spent_s in answer.items() if state == UNKNOWN)
    return Score(
        errors=[share_error(bins[at : at + WINDOW_BINS]) for at in range(0, len(bins), WINDOW_BINS)],
        total=sum(truth.values()),
        starved=_starved(truth),
        wrong=wrong_s,
        false=false_s,
        unknown=blind_s + undecided_s if is_visible else 0.0,
        truth=_written(truth),
        answer=_written(answer),
        confusion=confusion(bins),
    )


def share_error(bins: Sequence[Bin]) -> float:
    """The largest error of any state's share over all these bins."""
    true, said = _states(of.truth for of in bins), _states(of.answer for of in bins)
    total_s = sum(true.values())
    return max((abs(said[state] - true[state]) for state in true | said), default=0.0) / total_s if total_s else 0.0


def label(cause: Cause) -> str:
    """A state; of starvation, with its cause."""
    return "/".join(cause) if cause[0] == "starved" else cause[0]


def confusion(bins: Iterable[Bin]) -> dict[str, float]:
    """What is equal in a bin is the same time; of the rest, every answer is spread over what was true."""
    cells: Totals[str] = defaultdict(float)
    for of in bins:
        true, said = _labels(of.truth), _labels(of.answer)
        for name in true.keys() & said.keys():
            same_s = min(true[name], said[name])
            cells[f"{name}>{name}"] += same_s
            true[name] -= same_s
            said[name] -= same_s
        left_s = sum(true.values())
        for was, was_s in true.items():
            for name, said_s in said.items():
                if was_s > _TINY_S and said_s > _TINY_S:
                    cells[f"{was}>{name}"] += was_s * said_s / left_s
    return dict(cells)


def _unmatched(bins: Sequence[Bin], right: Right) -> tuple[float, float]:
    """Named seconds for which there is no truth: in starved ones, and beyond them."""
    named = [{cause[1]: spent_s for cause, spent_s in of.answer.items() if _is_named(cause)} for of in bins]
    true = [{cause[1]: spent_s for cause, spent_s in of.truth.items() if cause[0] == "starved"} for of in bins]
    for reach in (0, -1, 1):
        _match_alike(named, true, reach)
    for reach in (0, -1, 1):
        _match_sufficient(named, true, reach, right.sufficient)
    wrong_s = false_s = 0.0
    for of, said, was in zip(bins, named, true, strict=True):
        undecided_s = of.answer.get(("starved", UNKNOWN), 0.0)
        left_s, room_s = sum(said.values()), max(0.0, sum(was.values()) - undecided_s)
        wrong_s += min(left_s, room_s)
        false_s += max(0.0, left_s - room_s)
    return wrong_s, false_s


def _match_alike(named: Sequence[dict[str, float]], true: Sequence[dict[str, float]], reach: int) -> None:
    for said, was in _beside(named, true, reach):
        for cause in said.keys() & was.keys():
            same_s = min(said[cause], was[cause])
            said[cause] -= same_s
            was[cause] -= same_s


def _match_sufficient(
    named: Sequence[dict[str, float]], true: Sequence[dict[str, float]], reach: int, sufficient: frozenset[str]
) -> None:
    for said, was in _beside(named, true, reach):
        for cause in said.keys() & sufficient:
            for other in was:
                same_s = min(said[cause], was[other])
                said[cause] -= same_s
                was[other] -= same_s


def _beside(
    named: Sequence[dict[str, float]], true: Sequence[dict[str, float]], reach: int
) -> Iterable[tuple[dict[str, float], dict[str, float]]]:
    for at, said in enumerate(named):
        if 0 <= at + reach < len(true):
            yield said, true[at + reach]


def _beyond_cures(bins: Sequence[Bin], right: Right, margin: float) -> tuple[float, float]:
    """Named seconds beyond what curing each cause would have given: in starved ones, and beyond them."""
    answer, starved_s = _sum(of.answer for of in bins), _starved(_sum(of.truth for of in bins))
    gained = right.gained_s or {}
    named = {cause[1]: spent_s for cause, spent_s in answer.items() if _is_named(cause)}
    excess_s = sum(
        max(0.0, spent_s - max(0.0, gained.get(cause, 0.0)) - margin * starved_s) for cause, spent_s in named.items()
    )
    beyond_s = min(excess_s, max(0.0, sum(named.values()) - starved_s))
    return excess_s - beyond_s, beyond_s


def _is_named(cause: Cause) -> bool:
    return cause[0] == "starved" and cause[1] != UNKNOWN


def _starved(seconds: Seconds) -> float:
    return sum(spent_s for (state, _), spent_s in seconds.items() if state == "starved")


def _sum(parts: Iterable[Seconds]) -> Totals[Cause]:
    total: Totals[Cause] = defaultdict(float)
    for part in parts:
        for cause, spent_s in part.items():
            total[cause] += spent_s
    return total


def _states(parts: Iterable[Seconds]) -> Totals[str]:
    total: Totals[str] = defaultdict(float)
    for part in parts:
        for (state, _), spent_s in part.items():
            total[state] += spent_s
    return total


def _labels(part: Seconds) -> Totals[str]:
    total: Totals[str] = defaultdict(float)
    for cause, spent_s in part.items():
        total[label(cause)] += spent_s
    return total


def _written(seconds: Seconds) -> dict[str, float]:
    return {"/".join(cause): round(spent_s, 6) for cause, spent_s in seconds.items()}
