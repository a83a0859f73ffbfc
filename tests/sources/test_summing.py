# SPDX-License-Identifier: Apache-2.0
"""Sums of parts: never of some of them only, and never more than a counter holds."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.model.storage import StorageCounters
from gpufeed.parse.lustre import parse_lustre_stats
from gpufeed.sources.lustre_counters import LustreClient, counters_of
from gpufeed.sources.summing import by_name, total

MOST = 2**64 - 1


@pytest.mark.parametrize(
    ("values", "expected"), [([], 0), ([1, 2], 3), ([1, None], None), ([0.5, 0.25], 0.75), ([MOST, 5], MOST)]
)
def test_a_part_that_is_not_known_makes_the_sum_unknown(values: list[float | None], expected: float | None) -> None:
    assert total(values) == expected


def test_names_are_added_up_in_the_order_they_appear() -> None:
    assert list(by_name([("b", 1), ("a", 2), ("b", 3)]).items()) == [("b", 4), ("a", 2)]
    assert by_name([("a", MOST), ("a", 1)]) == {"a": MOST}


@given(st.lists(st.integers(0, MOST), min_size=2, max_size=3), st.binary(max_size=100))
def test_whatever_the_files_say_crosses_the_wire(values: list[int], noise: bytes) -> None:
    texts = [b"snapshot_time 1\nread_bytes %d samples [bytes] 0 0 %d\n" % (value, value) + noise for value in values]
    clients = [LustreClient(llite=stats, osc=(stats, stats)) for stats in map(parse_lustre_stats, texts)]
    sample = counters_of("scratch", clients)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(sample), type=StorageCounters) == sample
