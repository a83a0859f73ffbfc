# SPDX-License-Identifier: Apache-2.0
"""Pauses between probes: short at first, bounded, short again after a good life."""

from gpufeed.wire.backoff import Backoff


def test_pauses_double_up_to_half_a_minute() -> None:
    backoff = Backoff()
    assert [backoff.after(1.0) for _ in range(10)] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_a_probe_that_lived_a_minute_starts_the_pauses_anew() -> None:
    backoff = Backoff()
    for _ in range(5):
        backoff.after(59.0)
    assert backoff.after(60.0) == 0.2
    assert backoff.after(1.0) == 0.4
