# SPDX-License-Identifier: Apache-2.0
"""Records of the kernel log, and the XIDs among them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.kernel_log import Record, XidLine, parse_record, parse_xid


def test_a_record_has_its_number_its_time_and_its_text() -> None:
    assert parse_record(b"4,1207,98765432,-;NVRM: loading") == Record(1207, 98_765_432_000, b"NVRM: loading")


def test_newer_kernels_put_more_fields_before_the_text() -> None:
    assert parse_record(b"30,5,1,c,caller=T812;a;b").text == b"a;b"


@pytest.mark.parametrize("line", [b"", b" SUBSYSTEM=pci", b"4,1,2", b"4,1,2,-", b"x,1,2,-;a", b"4,-1,2,-;a"])
def test_other_lines_are_no_records(line: bytes) -> None:
    with pytest.raises(ParseError):
        parse_record(line)


@pytest.mark.parametrize("line", [b"4,99999999999999999999,2,-;a", b"4,1,18446744073709552,-;a"])
def test_numbers_that_no_kernel_counts_to_are_refused(line: bytes) -> None:
    with pytest.raises(ParseError):
        parse_record(line)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            b"NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            XidLine("0000:18:00", 79, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus."),
        ),
        (b"NVRM: Xid (PCI:0000:C1:00): 48, DBE", XidLine("0000:c1:00", 48, "DBE")),
        (b"NVRM: Xid (0000:05:00): 31, Ch 00000001", XidLine("0000:05:00", 31, "Ch 00000001")),
        (b"NVRM: Xid (PCI:00000008:01:00.0): 119, Timeout", XidLine("0008:01:00", 119, "Timeout")),
        (b"NVRM: Xid (PCI:10001:01:00): 13", XidLine("10001:01:00", 13, "")),
        (b"NVRM: Xid (PCI:0000:01:00 GPU-I:05): 43, pid=7", XidLine("0000:01:00", 43, "pid=7")),
        (b"NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 45, x", XidLine("0000:01:00", 45, "x")),
        (b"NVRM: Xid (PCI:0000:01:00): 999, \xff", XidLine("0000:01:00", 999, "�")),
    ],
)
def test_an_xid_is_found_in_every_spelling_that_drivers_have_had(text: bytes, said: XidLine) -> None:
    assert parse_xid(text) == said


@pytest.mark.parametrize(
    "text",
    [
        b"NVRM: GPU at PCI:0000:18:00: GPU-6b1f",
        b"nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 20034, Fatal",
        b"user says: NVRM: Xid (PCI:0000:18:00): 79",
        b"NVRM: Xid (PCI:0000:18): 79",
        b"NVRM: Xid (PCI:0000:18:00): 1234567, x",
        b"",
    ],
)
def test_what_is_no_xid_of_a_gpu_gives_none(text: bytes) -> None:
    assert parse_xid(text) is None


@given(st.binary(max_size=300))
def test_any_bytes_are_a_record_or_a_parse_error(data: bytes) -> None:
    try:
        record = parse_record(data)
    except ParseError:
        return
    assert record.sequence >= 0
    assert record.at_ns >= 0


@given(st.binary(max_size=300))
def test_any_text_is_an_xid_or_none(data: bytes) -> None:
    said = parse_xid(b"NVRM: Xid (PCI:0000:18:00): " + data)
    assert said is None or (said.pci_bus_id == "0000:18:00" and 0 <= said.xid < 100_000)
