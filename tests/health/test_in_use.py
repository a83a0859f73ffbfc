# SPDX-License-Identifier: Apache-2.0
"""In use recently: a quarter of an hour of memory."""

import pytest

from gpufeed.health.in_use import is_gpu_in_use, is_host_in_use
from health.states import MINUTE, ONE, SECOND, START, TWO, node, record


@pytest.mark.parametrize(
    ("in_use_at_ns", "expected"),
    [
        pytest.param(None, False, id="never"),
        pytest.param(START, True, id="now"),
        pytest.param(START - 15 * MINUTE, True, id="15 min ago"),
        pytest.param(START - 15 * MINUTE - SECOND, False, id="a second longer ago"),
    ],
)
def test_a_gpu_is_in_use_for_a_quarter_of_an_hour_after_its_last_process(
    in_use_at_ns: int | None, expected: bool
) -> None:
    gpu = record(ONE, in_use_at_ns=in_use_at_ns)
    assert is_gpu_in_use(gpu, START) is expected
    assert is_host_in_use(node(gpus={ONE: gpu, TWO: record(TWO)})) is expected
