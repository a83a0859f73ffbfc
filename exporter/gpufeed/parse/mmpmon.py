# SPDX-License-Identifier: Apache-2.0
"""Answers of `mmpmon -p` to `fs_io_s`: one line a mounted GPFS file system. Source: IBM Storage Scale, "mmpmon".

A line is a keyword and pairs of `_key_ value`. What the client counts is what applications read and wrote: bytes that
the pagepool answered are among them.
"""

from dataclasses import dataclass
from typing import Final

from gpufeed.errors import ParseError
from gpufeed.parse.number import counts
from gpufeed.parse.table import Parsed
from gpufeed.parse.text import clean_text

REQUEST: Final = b"fs_io_s"

_ANSWER: Final = b"_fs_io_s_"
_WENT_WELL: Final = b"0"
_NOTHING_MOUNTED: Final = b"1"
_COUNTS: Final = (b"_br_", b"_bw_", b"_oc_", b"_cc_", b"_rdc_", b"_wc_", b"_dir_", b"_iu_")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpfsIo:
    """One file system since the daemon started or somebody reset it."""

    cluster: str
    name: str
    read_bytes: int
    write_bytes: int
    opens: int
    closes: int
    reads: int
    writes: int
    directory_reads: int
    inode_updates: int


def parse_mmpmon(data: bytes) -> Parsed[GpfsIo]:
    """One row per file system; other lines are passed over, an answer that failed or makes no sense is a reject."""
    rows: list[GpfsIo] = []
    rejects: list[ParseError] = []
    for line in data.split(b"\n"):
        keyword, *words = line.split() or [b""]
        if keyword != _ANSWER:
            continue
        values = dict(zip(words[::2], words[1::2], strict=False))
        if values.get(b"_rc_") == _NOTHING_MOUNTED:
            continue
        try:
            rows.append(_parse_answer(values, line))
        except ParseError as error:
            rejects.append(error)
    return Parsed(rows=tuple(rows), rejects=tuple(rejects))


def _parse_answer(values: dict[bytes, bytes], line: bytes) -> GpfsIo:
    name = clean_text(values.get(b"_fs_", b""))
    if values.get(b"_rc_") != _WENT_WELL or not name:
        raise ParseError("an answer with _rc_ 0 and a file system", line, "mmpmon")
    found = counts([values[key] for key in _COUNTS if key in values], len(_COUNTS), f"mmpmon {name}")
    return GpfsIo(
        cluster=clean_text(values.get(b"_cl_", b"")),
        name=name,
        read_bytes=found[0],
        write_bytes=found[1],
        opens=found[2],
        closes=found[3],
        reads=found[4],
        writes=found[5],
        directory_reads=found[6],
        inode_updates=found[7],
    )
