# SPDX-License-Identifier: Apache-2.0
"""Why time was counted as each cause: means of the numbers that decided, over the last minute of each."""

from collections.abc import Mapping, Sequence
from math import exp
from typing import Final

from gpufeed.model.evidence import Evidence
from gpufeed.model.state import Because, StateCause
from gpufeed.signals.decision import Decision
from gpufeed.units import seconds

MEMORY_S: Final = 60.0
"""Numbers this old count a third of those of now."""
MAX_INPUTS: Final = 24

Reasons = Mapping[StateCause, Because]


def after(before: Reasons, parts: Sequence[tuple[StateCause, int]], decision: Decision, ended_ns: int) -> Reasons:
    """With one more interval, which ended then and was split into `parts`."""
    news = [(cause, seconds(part_ns)) for cause, part_ns in parts if part_ns > 0]
    if not news or not decision.evidence:
        return before
    now = dict(before)
    for cause, part_s in news:
        old = before.get(cause)
        faded_s = 0.0 if old is None else old.weight_s * exp(-min(60.0, seconds(ended_ns - old.at_ns) / MEMORY_S))
        share = part_s / (faded_s + part_s)
        is_waiting = decision.shares[-1][0] == cause
        evidence = [item for item in decision.evidence if is_waiting or item.score is None]
        now[cause] = Because(
            weight_s=faded_s + part_s,
            at_ns=ended_ns,
            confidence=_mean(old.confidence if old is not None else None, decision.confidence, share),
            evidence=_merged(old.evidence if old is not None else (), evidence, share),
            runner_up=decision.runner_up if is_waiting else None,
        )
    return now


def _merged(old: Sequence[Evidence], new: Sequence[Evidence], share: float) -> tuple[Evidence, ...]:
    """By input; one that was not read this time stays as it was."""
    found = {item.input: item for item in old}
    for item in new:
        known = found.get(item.input)
        if known is not None:
            item = Evidence(  # noqa: PLW2901 the same input, over a longer time
                input=item.input,
                value=known.value + (item.value - known.value) * share,
                unit=item.unit,
                score=_mean(known.score, item.score, share),
                usual=_mean(known.usual, item.usual, share),
            )
        found[item.input] = item
    return tuple(found.values())[:MAX_INPUTS]


def _mean(old: float | None, new: float | None, share: float) -> float | None:
    if old is None or new is None:
        return new if new is not None else old
    return old + (new - old) * share
