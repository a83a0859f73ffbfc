# SPDX-License-Identifier: Apache-2.0
"""What may leave a node in a capture: nothing that says whose it is, and everything that parses still does."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.redaction import Redaction

KEY = b"k" * 32


def redacted(text: str, *hosts: str) -> str:
    return Redaction(KEY, hosts).text(text)


@pytest.mark.parametrize(
    ("secret", "form"),
    [
        ("GPU-3e41639c-c01e-55c9-b1c7-35e401444dd2", r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
        ("kubepods-pod3e41639c_c01e_55c9_b1c7_35e401444dd2.slice", None),
        ("pod/3e41639c_c01e_55c9_b1c7_35e401444dd2/x", r"pod/[0-9a-f]{8}(_[0-9a-f]{4}){3}_[0-9a-f]{12}/x"),
        ("0c42:a103:0065:9dd2", r"[0-9a-f]{4}(:[0-9a-f]{4}){3}"),
        ("fe80:0000:0000:0000:0c42:a103:0065:9dd2", r"[0-9a-f]{4}(:[0-9a-f]{4}){7}"),
        ("0c:42:a1:65:9d:d2", r"[0-9a-f]{2}(:[0-9a-f]{2}){5}"),
        ("00:00:10:27:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:65:9d:d2", r"[0-9a-f]{2}(:[0-9a-f]{2}){19}"),
        ("8fd0dc1e5cf04e55b8a2a4f1a9ffbb12", r"[0-9a-f]{32}"),
        ("172.16.31.7", r"10(\.\d{1,3}){3}"),
        ("fe80::ec4:2a1f:fe65:9dd2", r"[0-9a-f:]+"),
    ],
)
def test_a_number_that_tells_whose_it_is_becomes_another_of_its_form(secret: str, form: str | None) -> None:
    found = redacted(f"a {secret} b")
    assert secret not in found
    if form is not None:
        assert re.fullmatch(f"a {form} b", found)


@pytest.mark.parametrize(
    "kept",
    [
        "0000:18:00.0",  # where a card sits
        "../../../devices/pci0000:17/0000:17:01.0/0000:18:00.0",
        "0xffffffff",
        "28.43.2026",  # firmware
        "4: ACTIVE",
        "0000:0000:0000:0000",
        "127.0.0.1 0.0.0.0",
        "   8       0 sda 1021 12 20180 412",
        "some avg10=0.00 avg60=0.12 avg300=1.20 total=1234567890",
        "400 Gb/sec (4X NDR)",
        "12:34:56",
    ],
)
def test_what_is_measured_stays_as_it_is(kept: str) -> None:
    assert redacted(kept) == kept


def test_the_same_is_replaced_by_the_same_everywhere_and_differently_in_another_capture() -> None:
    one = Redaction(KEY, ())
    first, second = one.text("10.1.2.3"), one.data(b"addr=10.1.2.3,").decode()
    assert second == f"addr={first},"
    assert Redaction(b"x" * 32, ()).text("10.1.2.3") != first


def test_a_pod_is_the_same_in_a_cgroup_and_in_a_folder_of_logs() -> None:
    one = Redaction(KEY, ())
    dashes = one.text("3e41639c-c01e-55c9-b1c7-35e401444dd2")
    assert one.text("3e41639c_c01e_55c9_b1c7_35e401444dd2") == dashes.replace("-", "_")


def test_names_of_this_node_of_servers_and_of_people_are_replaced() -> None:
    text = (
        "device nas17.corp.example:/export mounted on /home/alice/data with fstype nfs4 statvers=1.1\n"
        "\topts:\trw,vers=4.2,addr=nas17.corp.example,clientaddr=gpu041\n"
    )
    found = redacted(text, "gpu041.corp.example", "gpu041")
    for name in ("nas17", "corp", "alice", "gpu041"):
        assert name not in found
    assert re.match(r"device server-[0-9a-f]{6}:/export mounted on /home/user-[0-9a-f]{6}/data with", found)


def test_a_node_called_vm_leaves_nvme_alone() -> None:
    assert redacted("nvme0n1 vm-disk", "vm").startswith("nvme0n1 host-")


def test_what_was_replaced_is_counted_by_kind() -> None:
    one = Redaction(KEY, ("node1",))
    one.text("node1 10.1.2.3 10.1.2.4 0c42:a103:0065:9dd2")
    assert dict(one.counts) == {"host": 1, "address": 2, "guid": 1}


@given(st.binary(max_size=300))
def test_any_bytes_are_taken_and_lines_stay_lines(data: bytes) -> None:
    assert Redaction(KEY, ("node",)).data(data).count(b"\n") == data.count(b"\n")
