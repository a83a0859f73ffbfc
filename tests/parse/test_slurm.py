# SPDX-License-Identifier: Apache-2.0
"""What Slurm leaves of a job's GPUs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.parse.slurm import parse_device_minors, parse_gpu_numbers, parse_slurm_environ, slurm_job_of


def test_only_the_variables_of_slurm_are_taken() -> None:
    data = b"PATH=/bin\0SLURM_JOB_ID=42\0AWS_SECRET=x\0SLURM_JOB_GPUS=2,3\0MY_SLURM_X=1\0SLURM_BAD\0slurm_x=2\0\0"
    assert parse_slurm_environ(data) == {"SLURM_JOB_ID": "42", "SLURM_JOB_GPUS": "2,3"}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2,3", (2, 3)),
        ("0-3,6", (0, 1, 2, 3, 6)),
        ("7", (7,)),
        ("3,3,1", (1, 3)),
        ("5-2", ()),
        ("", None),
        ("GPU-1", None),
        ("1,,2", None),
        ("٣", None),
    ],
)
def test_numbers_of_gpus_are_lists_and_ranges(text: str, numbers: tuple[int, ...] | None) -> None:
    assert parse_gpu_numbers(text) == numbers


def test_a_range_without_end_is_cut() -> None:
    found = parse_gpu_numbers("0-9999")
    assert found is not None
    assert len(found) == 64


def test_the_gpus_a_job_may_open_are_known_by_their_minor_numbers() -> None:
    data = b"c *:* m\nb *:* m\nc 1:3 rwm\nc 195:255 rwm\nc 195:254 rwm\nc 195:2 rwm\nc 195:0 rw\nc 507:1 rwm\n"
    assert parse_device_minors(data) == (0, 2)


@pytest.mark.parametrize("data", [b"a *:* rwm\n", b"c 1:3 rwm\nc 195:* rwm\n", b"c *:* rwm\n"])
def test_a_job_that_may_open_everything_says_nothing(data: bytes) -> None:
    assert parse_device_minors(data) is None


@pytest.mark.parametrize("data", [b"", b"nonsense\n", b"b *:* rwm\n", b"b 195:1 rwm\n"])
def test_a_job_that_may_open_no_gpu_has_none(data: bytes) -> None:
    assert parse_device_minors(data) == ()


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value(data: bytes) -> None:
    for text in (data, b"SLURM_" + data, b"c 195:" + data):
        assert all(name.startswith("SLURM_") for name in parse_slurm_environ(text))
        parse_device_minors(text)


@given(st.text(max_size=40))
def test_any_text_gives_a_few_numbers_or_none(text: str) -> None:
    numbers = parse_gpu_numbers(text)
    assert numbers is None or (len(numbers) <= 64 and all(number >= 0 for number in numbers))


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}, ("7", "0")),
        ({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "4294967291"}, ("7", "batch")),
        ({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "x y"}, ("7", "")),
        ({"SLURM_JOB_ID": "7"}, ("7", "")),
        ({"SLURM_JOB_ID": "seven"}, None),
        ({"SLURM_STEP_ID": "0"}, None),
    ],
)
def test_a_task_is_of_the_job_that_its_variables_name(
    variables: dict[str, str], expected: tuple[str, str] | None
) -> None:
    job = slurm_job_of(variables)
    assert (None if job is None else (job.job_id, job.step)) == expected
