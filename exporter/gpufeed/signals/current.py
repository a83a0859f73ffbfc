# SPDX-License-Identifier: Apache-2.0
"""What a GPU does now, in one word for people: steady, because it looks at seconds; counters never look here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Final

from gpufeed.model.evidence import Evidence
from gpufeed.model.state import StateCause
from gpufeed.signals.decision import Decision
from gpufeed.units import seconds

MEMORY_S: Final = 3.0
"""What happened this long ago counts a third of what happens now."""
LEAVES_BELOW: Final = 0.8
"""A label is left when it holds less than this share of the strongest other one."""
FORGOTTEN_BELOW: Final = 1e-6
NOTHING_YET: Final = StateCause("unknown", "no_data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """Seconds of each (state, cause) in the last moments, fading; confidence likewise; the evidence of the last one."""

    weights: Mapping[StateCause, float] = field(default_factory=dict)
    confidence: float | None = None
    evidence: tuple[Evidence, ...] = ()
    runner_up: StateCause | None = None

    def after(self, parts: Sequence[tuple[StateCause, int]], decision: Decision, length_ns: int) -> "Recent":
        """With one more interval, of the given parts."""
        fading = exp(-min(60.0, seconds(length_ns) / MEMORY_S))
        weights = {cause: weight * fading for cause, weight in self.weights.items() if weight > FORGOTTEN_BELOW}
        for cause, part_ns in parts:
            if part_ns > 0:
                weights[cause] = weights.get(cause, 0.0) + min(seconds(part_ns), MEMORY_S)
        confidence = decision.confidence
        if confidence is not None and self.confidence is not None:
            confidence = self.confidence * fading + confidence * (1 - fading)
        return Recent(weights=weights, confidence=confidence, evidence=decision.evidence, runner_up=decision.runner_up)


def label(
    recent: Recent, before: StateCause | None, overriding: StateCause | None
) -> tuple[StateCause, StateCause | None]:
    """The (state, cause) of now, and the next likely one. A fault is said at once, anything else when it prevails."""
    if overriding is not None:
        return overriding, None
    ranked = sorted(recent.weights, key=lambda cause: (-recent.weights[cause], cause))
    if not ranked:
        return before or NOTHING_YET, None
    best = ranked[0]
    if before is not None and recent.weights.get(before, 0.0) >= LEAVES_BELOW * recent.weights[best]:
        best = before
    others = [cause for cause in ranked if cause != best]
    return best, recent.runner_up or (others[0] if others else None)
