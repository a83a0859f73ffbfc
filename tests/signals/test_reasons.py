# SPDX-License-Identifier: Apache-2.0
"""The numbers kept of each cause: means by time, in which old ones fade."""

from math import exp

import pytest

from gpufeed.model.evidence import Evidence
from gpufeed.model.state import StateCause
from gpufeed.signals.decision import Decision
from gpufeed.signals.reasons import MAX_INPUTS, MEMORY_S, Reasons, after

S = 1_000_000_000
BUSY, STORAGE, CPU = StateCause("busy", "tensor"), StateCause("starved", "storage"), StateCause("starved", "host_cpu")


def decision(latency_s: float, confidence: float | None = 0.8, usual: float | None = 0.003) -> Decision:
    return Decision(
        shares=((BUSY, 0.4), (STORAGE, 0.6)),
        confidence=confidence,
        evidence=(
            Evidence(input="active", value=0.4, unit="ratio"),
            Evidence(input="latency", value=latency_s, unit="seconds", score=1.0, usual=usual),
        ),
        runner_up=CPU,
    )


def values(reasons: Reasons, cause: StateCause) -> dict[str, float]:
    return {item.input: item.value for item in reasons[cause].evidence}


def test_waiting_has_the_hosts_numbers_and_working_has_not() -> None:
    reasons = after({}, [(BUSY, 4 * S // 10), (STORAGE, 6 * S // 10)], decision(0.1), S)
    assert values(reasons, STORAGE) == {"active": 0.4, "latency": 0.1}
    assert values(reasons, BUSY) == {"active": 0.4}
    assert (reasons[STORAGE].runner_up, reasons[BUSY].runner_up) == (CPU, None)


def test_numbers_are_means_by_time_and_old_ones_fade() -> None:
    one = after({}, [(STORAGE, S)], decision(0.1, confidence=1.0), S)
    two = after(one, [(STORAGE, S)], decision(0.2, confidence=0.5), 61 * S)
    old_s = exp(-60 / MEMORY_S)
    share = 1 / (1 + old_s)
    assert values(two, STORAGE)["latency"] == pytest.approx(0.1 + 0.1 * share)
    assert two[STORAGE].confidence == pytest.approx(1.0 - 0.5 * share)
    assert two[STORAGE].weight_s == pytest.approx(1 + old_s)


def test_what_was_not_read_this_time_stays() -> None:
    one = after({}, [(STORAGE, S)], decision(0.1, usual=None), S)
    without = Decision(
        shares=((STORAGE, 1.0),), confidence=None, evidence=(Evidence(input="x", value=1, unit="ratio"),)
    )
    two = after(one, [(STORAGE, S)], without, 2 * S)
    assert values(two, STORAGE) == {"active": 0.4, "latency": 0.1, "x": 1}
    assert two[STORAGE].confidence == 0.8


def test_an_interval_without_length_or_numbers_changes_nothing() -> None:
    one = after({}, [(STORAGE, S)], decision(0.1), S)
    assert after(one, [(STORAGE, 0)], decision(0.9), 2 * S) is one
    assert after(one, [(STORAGE, S)], Decision(shares=((STORAGE, 1.0),), confidence=None), 2 * S) is one


def test_inputs_are_bounded() -> None:
    many = tuple(Evidence(input=str(number), value=0, unit="ratio") for number in range(100))
    found = after({}, [(STORAGE, S)], Decision(shares=((STORAGE, 1.0),), confidence=None, evidence=many), S)
    assert len(found[STORAGE].evidence) == MAX_INPUTS
