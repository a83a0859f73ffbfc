# SPDX-License-Identifier: Apache-2.0
"""Users of the node, places in the PCI tree, open files on mounts."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.mountinfo import MountEntry
from gpufeed.parse.open_files import data_mounts, is_network
from gpufeed.parse.passwd import parse_users
from gpufeed.parse.pci import is_pci_function, pci_path
from gpufeed.parse.task_status import parse_user_id


def test_users_are_named_by_number_and_the_first_name_counts() -> None:
    data = b"root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:/bin/sh\nada:x:1000:1000:,,,:/home/ada:/bin/sh\n"
    assert parse_users(data) == {0: "root", 1000: "ada"}


def test_lines_that_are_no_users_are_passed_over() -> None:
    assert parse_users(b"\n# x\n+::::::\na:x:1:1:::\nb:x:-1:1:::\nc:x:99999999999:1:::\n:x:5:5:::\n") == {1: "a"}


def test_the_real_user_of_a_process_is_read() -> None:
    assert parse_user_id(b"Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n") == 1000
    with pytest.raises(ParseError, match="Uid"):
        parse_user_id(b"Name:\tUid: 5\n")


BELOW = ("pci0000:15", "0000:15:01.0", "0000:16:00.0", "0000:17:02.0", "0000:1b:00.0")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("../../../devices/" + "/".join(BELOW), BELOW),
        ("../../devices/" + "/".join(BELOW) + "/infiniband/mlx5_0", BELOW),
        ("../../devices/platform/soc/pci0005:00/0005:00:00.0", ("pci0005:00", "0005:00:00.0")),
        ("../../devices/PCI0000:AB/0000:AB:01.0", ("pci0000:ab", "0000:ab:01.0")),
        ("../../devices/virtual/net/bond0", ()),
        ("", ()),
    ],
)
def test_a_place_in_the_pci_tree_is_the_way_from_the_host_bridge(path: str, expected: tuple[str, ...]) -> None:
    assert pci_path(path) == expected


def test_a_function_is_told_from_a_port_of_another_bus() -> None:
    assert is_pci_function("0000:18:00.0")
    assert not is_pci_function("pci0000:15")
    assert not is_pci_function("0000:18:00.8")


def entry(mountpoint: str, fstype: str, source: str = "x") -> MountEntry:
    return MountEntry(device="0:1", root="/", mountpoint=mountpoint, fstype=fstype, source=source)


TABLE = (
    entry("/", "ext4"),
    entry("/data", "nfs4", "below"),
    entry("/data", "nfs4", "nas:/data"),
    entry("/data/local", "xfs"),
    entry("/s3", "fuse.s3fs"),
    entry("/run", "tmpfs"),
)


def mounts(*paths: str) -> list[str]:
    return [f"{found.mountpoint}:{found.source}" for found in data_mounts(paths, TABLE)]


def test_a_file_lies_on_the_longest_mount_point_above_it() -> None:
    assert mounts("/data/a", "/data/b", "/data/local/c", "/s3/d") == ["/data:nas:/data", "/data/local:x", "/s3:x"]
    assert mounts("/data") == ["/data:nas:/data"]


@pytest.mark.parametrize("path", ["/usr/lib/x.so", "/database/x", "/run/x", "pipe:[7]", "", "/s3x"])
def test_what_holds_no_data_is_left_out(path: str) -> None:
    assert mounts(path) == []


def test_a_process_without_a_mount_table_has_files_nowhere() -> None:
    assert data_mounts(["/data/a"], []) == ()


@pytest.mark.parametrize(
    ("fstype", "is_one"), [("nfs4", True), ("fuse.gcsfuse", True), ("lustre", True), ("nfsd", False)]
)
def test_network_file_systems_are_known_by_their_exact_type(fstype: str, is_one: bool) -> None:
    assert is_network(entry("/x", fstype)) is is_one


@given(st.binary(max_size=100), st.text(max_size=50))
def test_anything_gives_a_value_or_a_parse_error(data: bytes, text: str) -> None:
    parse_users(data)
    pci_path(text)
    data_mounts([text, f"/data/{text}"], TABLE)
    with suppress(ParseError):
        assert parse_user_id(b"Uid:\t" + data) >= 0
