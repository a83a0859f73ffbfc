# SPDX-License-Identifier: Apache-2.0
"""Answers of mmpmon, and the configuration of BeeGFS clients."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.parse.beegfs import parse_management_host
from gpufeed.parse.mmpmon import GpfsIo, parse_mmpmon

SCRATCH = (
    b"_fs_io_s_ _n_ 10.0.0.7 _nn_ node7 _rc_ 0 _t_ 1700000000 _tu_ 53212 _cl_ hpc.example _fs_ scratch _d_ 48 "
    b"_br_ 205607400434 _bw_ 74839282351 _oc_ 2377 _cc_ 2201 _rdc_ 59420 _wc_ 18874 _dir_ 40 _iu_ 544\n"
)
HOME = SCRATCH.replace(b"scratch", b"home").replace(b"205607400434", b"5")
NOTHING = b"_fs_io_s_ _n_ 10.0.0.7 _nn_ node7 _rc_ 1 _t_ 1700000000 _tu_ 407431 _cl_ - _fs_ -\n"


def test_every_file_system_is_a_row() -> None:
    parsed = parse_mmpmon(SCRATCH + HOME)
    assert parsed.rows[0] == GpfsIo(
        cluster="hpc.example",
        name="scratch",
        read_bytes=205_607_400_434,
        write_bytes=74_839_282_351,
        opens=2377,
        closes=2201,
        reads=59_420,
        writes=18_874,
        directory_reads=40,
        inode_updates=544,
    )
    assert [(row.name, row.read_bytes) for row in parsed.rows[1:]] == [("home", 5)]
    assert parsed.rejects == ()


def test_with_nothing_mounted_there_are_no_rows_and_nothing_is_wrong() -> None:
    assert parse_mmpmon(NOTHING) == parse_mmpmon(b"")


def test_prompts_versions_and_text_for_people_are_passed_over() -> None:
    noise = b"mmpmon node 10.0.0.7 name node7 fs_io_s OK\n_ver_ _n_ 10.0.0.7 _rc_ 0 _v_ 3\n_response_ begin\n"
    assert parse_mmpmon(noise) == parse_mmpmon(b"")


def test_pairs_are_read_by_key_and_newer_ones_left_alone() -> None:
    line = b"_fs_io_s_ _rc_ 0 _new_ 1 _fs_ f _iu_ 8 _dir_ 7 _wc_ 6 _rdc_ 5 _cc_ 4 _oc_ 3 _bw_ 2 _br_ 1 _end_"
    (row,) = parse_mmpmon(line).rows
    assert (row.cluster, row.read_bytes, row.write_bytes, row.reads, row.inode_updates) == ("", 1, 2, 5, 8)


@pytest.mark.parametrize(
    "line",
    [
        SCRATCH.replace(b"_rc_ 0", b"_rc_ 22"),
        SCRATCH.replace(b"_rc_ 0", b""),
        SCRATCH.replace(b"_fs_ scratch", b""),
        SCRATCH.replace(b"_br_ 205607400434", b""),
        SCRATCH.replace(b"_br_ 205607400434", b"_br_ -1"),
        b"_fs_io_s_",
    ],
)
def test_an_answer_that_failed_or_makes_no_sense_is_rejected_alone(line: bytes) -> None:
    parsed = parse_mmpmon(line + b"\n" + HOME)
    assert [row.name for row in parsed.rows] == ["home"]
    assert len(parsed.rejects) == 1


@given(st.binary(max_size=300), st.integers(0, len(SCRATCH)))
def test_any_bytes_in_an_answer_hurt_no_other(noise: bytes, place: int) -> None:
    parsed = parse_mmpmon(SCRATCH[:place] + noise + SCRATCH[place:] + b"\n" + HOME)
    assert "home" in [row.name for row in parsed.rows]


@pytest.mark.parametrize(
    ("data", "host"),
    [
        (b"cfgFile = /etc/beegfs.conf\nsysMgmtdHost = mgmt1\nsysMgmtd = other\n", "mgmt1"),
        (b"sysMgmtdHost=10.0.0.1", "10.0.0.1"),
        (b"sysMgmtdHost\nlogLevel = 3\n", ""),
        (b"\xff\x00", ""),
    ],
)
def test_a_beegfs_client_says_who_manages_its_file_system(data: bytes, host: str) -> None:
    assert parse_management_host(data) == host


@given(st.binary(max_size=200))
def test_any_bytes_are_a_name_fit_for_a_label(noise: bytes) -> None:
    name = parse_management_host(b"sysMgmtdHost = " + noise)
    assert len(name) <= 256
    assert "\n" not in name
    assert "\x00" not in name
