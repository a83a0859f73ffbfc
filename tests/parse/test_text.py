# SPDX-License-Identifier: Apache-2.0
"""Text fit for a label."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.parse.text import clean_text, unescape_octal


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"host HCA-1\n", "host HCA-1"),
        ("données".encode(), "données"),
        (b"donn\xe9es", "donn\\xe9es"),
        (b"a\nb", "a\\x0ab"),
        (b"a\x00b\x1b[31m", "a\\x00b\\x1b[31m"),
    ],
)
def test_odd_bytes_are_spelled_out(data: bytes, text: str) -> None:
    assert clean_text(data) == text


def test_text_is_cut_to_its_limit() -> None:
    assert clean_text(b"x" * 1000, 10) == "x" * 10


@given(st.binary(max_size=600))
def test_any_bytes_become_short_valid_text_without_control_characters(data: bytes) -> None:
    text = clean_text(data)
    assert text.encode().decode() == text
    assert len(text) <= 256
    assert not [one for one in text if unicodedata.category(one) == "Cc"]


def test_octal_escapes_of_a_mount_table_are_undone() -> None:
    assert unescape_octal(rb"/mnt/my\040data\134x\011") == b"/mnt/my data\\x\t"


@given(st.binary(max_size=60))
def test_unescaping_undoes_the_kernels_escaping(path: bytes) -> None:
    escaped = b"".join(b"\\%03o" % byte if byte in b" \t\n\\#" else bytes((byte,)) for byte in path)
    assert unescape_octal(escaped) == path
