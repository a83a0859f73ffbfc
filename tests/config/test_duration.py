# SPDX-License-Identifier: Apache-2.0
"""Durations are read as Prometheus writes them, and written back the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.config.duration import Duration


@pytest.mark.parametrize(
    ("text", "ms"),
    [("200ms", 200), ("10s", 10_000), ("5m", 300_000), ("1h30m", 5_400_000), ("1d", 86_400_000), ("0s", 0)],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, ms: int) -> None:
    assert Duration.parse(text).ns == ms * 1_000_000


@pytest.mark.parametrize("text", ["", "10", "s", "-1s", "1.5s", "1s1m", "1 s", "10s ", "٣s", "1us", "9999999999s"])
def test_what_is_not_a_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        Duration.parse(text)


@given(st.integers(min_value=0, max_value=10**12))
def test_a_duration_written_is_read_back_the_same(ms: int) -> None:
    duration = Duration(ms * 1_000_000)
    assert Duration.parse(str(duration)) == duration
