# SPDX-License-Identifier: Apache-2.0
"""The second truth: how much GPU time would be gained if one stage took no time, by living the same seed again."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gpufeed.simulate.activity import Cause
from gpufeed.simulate.pipeline.node import JudgedNode
from gpufeed.simulate.pipeline.scenario import JudgedScenario
from gpufeed.simulate.pipeline.stages import Stage, stage_of

SUFFICIENT: Final = 0.8
"""Share of the waiting that has to go for a stage to be the cause of it."""

_STRIDE_NS: Final = 10_000_000_000
_LEAST: Final = 0.002
"""Share of the time below which no stage is tried, and no waiting has a cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One GPU: how long it starved, and what each stage's infinite speed would have given it, in seconds."""

    starved_s: float
    gained_s: Mapping[Stage, float]

    @property
    def sufficient(self) -> frozenset[Stage]:
        """Stages each of which alone, infinitely fast, takes SUFFICIENT of the waiting away."""
        enough_s = max(SUFFICIENT * self.starved_s, _LEAST)
        return frozenset(stage for stage, gained_s in self.gained_s.items() if gained_s >= enough_s)


def counterfactual(
    scenario: str | JudgedScenario, seed: int, duration_ns: int, model: str = "h100", gpus: int = 8
) -> Mapping[Stage, float]:
    """GPU seconds gained on all GPUs together, by the stage that takes no time."""
    verdicts = judge(scenario, seed, duration_ns, model, gpus)
    gained: Counter[Stage] = Counter()
    for verdict in verdicts:
        gained.update(verdict.gained_s)
    return dict(gained)


def judge(
    scenario: str | JudgedScenario, seed: int, duration_ns: int, model: str = "h100", gpus: int = 8
) -> tuple[Verdict, ...]:
    """A verdict for each GPU. Stages that nobody waited for, and nobody's peers, are not tried."""
    lived = JudgedNode(scenario, model, gpus, seed)
    lived.advance(duration_ns)
    gained = {stage: gain(lived, stage, math.inf, seed) for stage in _suspects(lived)}
    return tuple(
        Verdict(
            starved_s=sum(ns for cause, ns in gpu.truth_ns.items() if cause[0] == "starved") / 1e9,
            gained_s=MappingProxyType({stage: of[gpu.board.index] for stage, of in gained.items()}),
        )
        for gpu in lived.gpus
    )


def gain(lived: JudgedNode, stage: Stage, factor: float, seed: int) -> list[float]:
    """Seconds by which each GPU would have done the same work sooner, had a stage been faster by a factor."""
    again = JudgedNode(lived.scenario, lived.model.key, len(lived.gpus), seed, {stage: factor})
    sites = [gpu.site for gpu in lived.gpus]
    for before, after in zip(sites, (gpu.site for gpu in again.gpus), strict=True):
        after.goal = before.finished or None
    # another order of events can cost a little where it was expected to gain: not so long that it would matter
    while again.age_ns < 2 * lived.age_ns and any(_is_behind(gpu.site.goal, gpu.site.goal_ns) for gpu in again.gpus):
        again.advance(_STRIDE_NS)
    return [
        (before.finished_ns - (after.goal_ns or before.finished_ns)) / 1e9 if before.finished else 0.0
        for before, after in zip(sites, (gpu.site for gpu in again.gpus), strict=True)
    ]


def _is_behind(goal: int | None, reached_ns: int | None) -> bool:
    return goal is not None and reached_ns is None


def _suspects(lived: JudgedNode) -> list[Stage]:
    spent: Counter[Cause] = Counter()
    for gpu in lived.gpus:
        spent.update(gpu.truth_ns)
        spent.update(gpu.roots_ns)
    least_ns = _LEAST * lived.age_ns * len(lived.gpus)
    return sorted({stage for cause, ns in spent.items() if ns >= least_ns and (stage := stage_of(cause))})
