# SPDX-License-Identifier: Apache-2.0
"""Rates for people: over the last ten seconds, never negative, never of what is no longer read."""

from collections.abc import Hashable, Mapping
from typing import Any

import pytest

from gpufeed.history.rates import Rates
from gpufeed.model.frame import FrameTime
from gpufeed.model.ids import GroupName, LaneId, StorageKey
from gpufeed.model.state import Held, NodeState
from gpufeed.model.storage import StorageCounters

DATA, HOME = StorageKey("nfs", "/data"), StorageKey("nfs", "/home")
S = 1_000_000_000


def node(at_s: float, *storages: StorageCounters) -> NodeState:
    at_ns = round(at_s * S)
    held: Mapping[Hashable, Held[Any]] = {
        one.storage: Held(
            sample=one,
            lane=LaneId("nfs"),
            group=GroupName("nfs.fast"),
            collector="nfs",
            read_at_ns=at_ns,
            stale_at_ns=at_ns,
        )
        for one in storages
    }
    return NodeState(time=FrameTime(at_ns, at_ns, at_ns), samples={StorageCounters: held})


def counters(read_bytes: int, key: StorageKey = DATA) -> StorageCounters:
    return StorageCounters(storage=key, read_bytes=read_bytes)


def test_one_reading_has_no_rate() -> None:
    rates = Rates()
    rates.append(node(1, counters(100)))
    rates.append(node(1, counters(100)))
    assert rates.of(StorageCounters, DATA) == {}


def test_a_rate_is_what_was_counted_by_the_time_between() -> None:
    rates = Rates()
    for at_s, value in ((1, 100), (2, 300), (5, 900)):
        rates.append(node(at_s, counters(value)))
    assert rates.of(StorageCounters, DATA) == {"read_bytes": pytest.approx(200)}


def test_only_the_last_ten_seconds_count() -> None:
    rates = Rates()
    for at_s in range(30):
        rates.append(node(at_s, counters(1000 * min(at_s, 15))))
    assert rates.of(StorageCounters, DATA) == {"read_bytes": 0.0}


def test_a_reset_has_no_rate() -> None:
    rates = Rates()
    rates.append(node(1, counters(100)))
    rates.append(node(2, counters(50)))
    assert rates.of(StorageCounters, DATA) == {}


def test_what_is_no_longer_read_is_forgotten() -> None:
    rates = Rates()
    rates.append(node(1, counters(100)))
    rates.append(node(2, counters(200)))
    rates.append(node(3))
    assert rates.of(StorageCounters, DATA) == {}


def test_subjects_above_the_limit_are_left_out() -> None:
    rates = Rates(max_subjects=1)
    for at_s in (1, 2):
        rates.append(node(at_s, counters(at_s), counters(at_s, HOME)))
    assert rates.of(StorageCounters, DATA) != {}
    assert rates.of(StorageCounters, HOME) == {}
