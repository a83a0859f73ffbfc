# SPDX-License-Identifier: Apache-2.0
"""Copied trees in which links are files."""

import pytest

from gpufeed.errors import Absent, SourceError
from gpufeed.sources.files import Tree
from gpufeed.sources.kept_links import followed, kept_target
from host_bench import HostBench


@pytest.fixture
def tree(bench: HostBench) -> Tree:
    bench.write("sys/class/infiniband/mlx4_0", "../../devices/pci0000:80/0000:82:00.0/infiniband/mlx4_0")
    bench.write("sys/class/infiniband/scif0", "../../devices/gone/scif0\n")
    bench.write("sys/class/net/bonding_masters", "bond0\n")
    bench.write("sys/devices/pci0000:80/0000:82:00.0/infiniband/mlx4_0/device", "../../../0000:82:00.0")
    bench.write("sys/devices/pci0000:80/0000:82:00.0/infiniband/mlx4_0/ports/1/state", "4: ACTIVE\n")
    bench.write("sys/devices/pci0000:80/0000:82:00.0/numa_node", "1\n")
    bench.write("sys/devices/loop", "./loop")
    bench.write("sys/devices/outside", "../../../etc")
    return Tree(bench.config.sysfs, bench.desk())


def test_files_behind_a_kept_link_are_read(tree: Tree) -> None:
    assert tree.attribute("class/infiniband/mlx4_0/ports/1/state") == b"4: ACTIVE\n"
    assert tree.table("class/infiniband/mlx4_0/device/numa_node") == b"1\n"
    assert tree.names("class/infiniband/mlx4_0/ports") == ("1",)
    assert tree.names("class/infiniband/mlx4_0") == ("device", "ports")
    assert tree.has("class/infiniband/mlx4_0/device/numa_node")
    assert not tree.has("class/infiniband/mlx4_0/device/physfn")


def test_a_kept_link_says_where_it_leads(tree: Tree) -> None:
    assert tree.link("class/infiniband/mlx4_0/device") == "0000:82:00.0"
    assert tree.target("class/infiniband/mlx4_0").endswith("/0000:82:00.0/infiniband/mlx4_0")


@pytest.mark.parametrize("path", ["class/infiniband/scif0/ports", "class/net/bonding_masters/x", "devices/loop/x"])
def test_a_kept_link_to_nowhere_and_a_file_that_is_none_are_absent(tree: Tree, path: str) -> None:
    with pytest.raises(Absent):
        tree.names(path)
    with pytest.raises(SourceError):
        tree.attribute(path)


def test_no_kept_link_leads_out_of_its_tree(tree: Tree) -> None:
    with pytest.raises(Absent):
        tree.attribute("devices/outside/passwd")


@pytest.mark.parametrize("root", ["/sys", "/proc"])
def test_in_the_kernels_own_trees_no_file_is_taken_for_a_link(root: str) -> None:
    assert followed(root, "class/net/bonding_masters/x") is None
    assert kept_target(root, "class/net/bonding_masters") is None


def test_a_file_that_cannot_be_read_is_no_link(bench: HostBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("sys/x", "../y")

    def refuse(*_arguments: object) -> None:
        raise PermissionError

    monkeypatch.setattr("builtins.open", refuse)
    assert kept_target(bench.config.sysfs, "x") is None
