# SPDX-License-Identifier: Apache-2.0
"""Reports of jobs: what is none says why."""

import pytest

from gpufeed.errors import ParseError
from gpufeed.parse.job_report import MAX_BYTES, parse_report


def test_a_report_says_what_it_counts() -> None:
    found = parse_report(b'{"version": 1, "pid": 7, "elapsed_s": 10.0, "data_wait_s": 2.5}')
    assert (found.pid, found.elapsed_s, found.data_wait_s, found.model_flops) == (7, 10.0, 2.5, None)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b" " * (MAX_BYTES + 1), f"at most {MAX_BYTES} bytes"),
        (b"[" * 4_000, "a report"),
        (b'{"version": 2, "pid": 7, "elapsed_s": 1.0}', "version 1"),
    ],
)
def test_what_is_no_report_says_what_was_expected(data: bytes, expected: str) -> None:
    with pytest.raises(ParseError, match=expected):
        parse_report(data)
