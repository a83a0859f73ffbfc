# SPDX-License-Identifier: Apache-2.0
"""Which causes may be named for a GPU: those whose cure would have given its time back. Found once, then kept."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bench.accuracy.store import read_json, write_json
from gpufeed.simulate.activity import Cause
from gpufeed.simulate.pipeline.counterfactual import SUFFICIENT, gain, judge
from gpufeed.simulate.pipeline.node import JudgedNode
from gpufeed.simulate.pipeline.stages import Stage

BIN_NS: Final = 5_000_000_000
"""Truth and answers are held to one another in pieces of this length."""
_SECOND_NS: Final = 1_000_000_000

CHAIN: Final = (Stage.STORAGE, Stage.HOST_CPU)
"""What a loader does to one batch, one after the other."""

LEAST_STARVED: Final = 0.01
"""Share of time below which it is not asked what would have cured the waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """Of one GPU over a run. Nothing that was waited for after its last finished work can be cured: it was in vain."""

    until_s: float = 0.0  # when that was; afterwards only where an item was says who was to blame
    starved_s: float = 0.0  # until then
    gained_s: Mapping[str, float] | None = None  # by cause; None: nobody lived the run again

    @property
    def is_asked(self) -> bool:
        """Whether it was tried out what would have cured the waiting."""
        return self.gained_s is not None

    @property
    def sufficient(self) -> frozenset[str]:
        """Causes each of which alone explains the waiting."""
        gained = self.gained_s or {}
        return frozenset(cause for cause, gained_s in gained.items() if gained_s >= SUFFICIENT * self.starved_s > 0)

    @property
    def is_one(self) -> bool:
        """Whether there is one right answer, and saying nothing is not as right."""
        return not self.is_asked or len(self.sufficient) == 1

    @property
    def is_mixed(self) -> bool:
        """Whether no single cause explains the waiting."""
        return self.is_asked and not self.sufficient

    def tempered(self, truth: Mapping[Cause, float]) -> Mapping[Cause, float]:
        """`truth` where a mixed cause is named only as far as curing it would help; the rest is unknown."""
        if not self.is_mixed:
            return truth
        told: dict[Cause, float] = {}
        whole_s = sum(spent_s for (state, _), spent_s in truth.items() if state == "starved")
        for (state, cause), spent_s in truth.items():
            if state != "starved":
                told[state, cause] = spent_s
                continue
            # in proportion: at any moment so far, as it will be at the end
            most_s = whole_s * max(0.0, (self.gained_s or {}).get(cause, 0.0)) / self.starved_s
            told[state, cause] = min(spent_s, most_s)
            told["starved", "unknown"] = told.get(("starved", "unknown"), 0.0) + max(0.0, spent_s - most_s)
        return told


def rights_of(scenario: str, seed: int, seconds: int, model: str, gpus: int, kept: Path) -> tuple[Right, ...]:
    """By GPU. `kept`: the folder of verdicts of this simulator."""
    path = kept / f"{scenario}-{model}-{gpus}-{seed}-{seconds}.json"
    found = read_json(path)
    if found is None:
        found = [asdict(right) for right in _judged(JudgedNode(scenario, model, gpus, seed), seed, seconds)]
        write_json(path, found)
    return tuple(Right(**each) for each in found)


def _judged(node: JudgedNode, seed: int, seconds: int) -> list[Right]:
    """`node` has not lived yet."""
    lived = _lived(node, seconds)
    if all(starved_s < LEAST_STARVED * until_s for until_s, starved_s in lived):
        return [Right() for _ in lived]
    verdicts = judge(node.scenario, seed, seconds * _SECOND_NS, node.model.key, len(node.gpus))
    gained = [{stage.value: gained_s for stage, gained_s in verdict.gained_s.items()} for verdict in verdicts]
    # whoever waits on a chain waits in its last part: what is wrong may be any of them
    if any(stage.value in gained[0] for stage in CHAIN):
        for stage in CHAIN:
            if stage.value not in gained[0]:
                for of, gained_s in zip(gained, gain(node, stage, math.inf, seed), strict=True):
                    of[stage.value] = gained_s
    return [_right(*times, of) for times, of in zip(lived, gained, strict=True)]


def _right(until_s: float, starved_s: float, gained_s: Mapping[str, float]) -> Right:
    if starved_s < LEAST_STARVED * until_s or not until_s:
        return Right()
    return Right(until_s=until_s, starved_s=starved_s, gained_s=gained_s)


def _lived(node: JudgedNode, seconds: int) -> list[tuple[float, float]]:
    """Of each GPU: when the bin ends in which it last finished anything, and how long it had starved by then."""
    found = [(0.0, 0.0) for _ in node.gpus]
    finished = [0 for _ in node.gpus]
    while node.age_ns < seconds * _SECOND_NS:
        node.advance(BIN_NS)
        for at, gpu in enumerate(node.gpus):
            if gpu.site.finished > finished[at]:
                finished[at] = gpu.site.finished
                found[at] = (node.age_ns / _SECOND_NS, _starved_s(gpu.truth_ns))
    return found


def _starved_s(truth_ns: Mapping[Cause, int]) -> float:
    return sum(spent_ns for (state, _), spent_ns in truth_ns.items() if state == "starved") / _SECOND_NS
