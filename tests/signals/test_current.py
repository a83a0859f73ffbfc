# SPDX-License-Identifier: Apache-2.0
"""The label of now: steady, and at once for a fault."""

from gpufeed.model.state import StateCause
from gpufeed.signals.current import NOTHING_YET, Recent, label
from gpufeed.signals.decision import Decision

S = 1_000_000_000
BUSY, STARVED = StateCause("busy", "tensor"), StateCause("starved", "storage")
LOST = StateCause("fault", "lost")


def after(recent: Recent, cause: StateCause, confidence: float | None = 0.8) -> Recent:
    decision = Decision(shares=((cause, 1.0),), confidence=confidence)
    return recent.after([(cause, S // 2), (LOST, 0)], decision, S // 2)


def test_a_label_changes_only_when_another_prevails() -> None:
    recent, labels = Recent(), []
    for _ in range(20):
        recent = after(recent, BUSY)
    now = label(recent, None, None)[0]
    for _ in range(8):
        recent = after(recent, STARVED)
        now = label(recent, now, None)[0]
        labels.append(now)
    assert labels[0] == BUSY
    assert labels[-1] == STARVED
    assert labels == sorted(labels, key=[BUSY, STARVED].index)  # once over, it stays over


def test_a_fault_is_said_at_once() -> None:
    assert label(after(Recent(), BUSY), BUSY, LOST) == (LOST, None)


def test_before_anything_is_decided_nothing_is_known() -> None:
    assert label(Recent(), None, None) == (NOTHING_YET, None)
    assert label(Recent(), BUSY, None) == (BUSY, None)


def test_the_runner_up_is_the_next_cause_or_the_next_state() -> None:
    recent = after(after(after(Recent(), BUSY), BUSY), STARVED)
    assert label(recent, None, None) == (BUSY, STARVED)
    decision = Decision(shares=((BUSY, 1.0),), confidence=None, runner_up=LOST)
    assert label(recent.after([(BUSY, S)], decision, S), None, None) == (BUSY, LOST)
    assert label(after(Recent(), BUSY), None, None) == (BUSY, None)


def test_confidence_fades_into_the_new_one() -> None:
    recent = after(after(Recent(), BUSY, 1.0), BUSY, 0.0)
    assert recent.confidence is not None
    assert 0.5 < recent.confidence < 1.0
    assert after(recent, BUSY, None).confidence is None


def test_what_is_long_past_leaves_no_weight() -> None:
    recent = after(Recent(), BUSY)
    for _ in range(200):
        recent = after(recent, STARVED)
    assert set(recent.weights) == {STARVED}
