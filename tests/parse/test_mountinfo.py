# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/mountinfo."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.parse.mountinfo import MountEntry, parse_mountinfo


def test_a_line_names_the_device_number_of_its_file_system() -> None:
    parsed = parse_mountinfo(
        rb"96 30 0:51 /set /mnt/my\040data rw,relatime shared:9 master:2 - nfs4 nas:/set rw,vers=4.2"
    )
    assert parsed.rows == (
        MountEntry(
            device="0:51",
            root="/set",
            mountpoint="/mnt/my data",
            fstype="nfs4",
            source="nas:/set",
            options="rw,relatime,rw,vers=4.2",
        ),
    )


@pytest.mark.parametrize("tail", [b"- proc proc rw", b"shared:1 - proc proc rw", b"- proc proc"])
def test_optional_fields_may_be_missing(tail: bytes) -> None:
    (row,) = parse_mountinfo(b"22 1 0:20 / /proc rw " + tail).rows
    assert (row.fstype, row.source) == ("proc", "proc")


def test_a_line_that_makes_no_sense_is_rejected_alone() -> None:
    parsed = parse_mountinfo(b"garbage\n22 1 0:20 / /proc rw - proc proc rw\n")
    assert len(parsed.rows) == 1
    assert parsed.rejects[0].where == "mountinfo"


@given(st.binary(max_size=200))
def test_any_bytes_give_rows_and_rejects(data: bytes) -> None:
    parsed = parse_mountinfo(data)
    assert len(parsed.rows) + len(parsed.rejects) == len([line for line in data.split(b"\n") if line.strip()])
