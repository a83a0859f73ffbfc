# SPDX-License-Identifier: Apache-2.0
"""What a capture lays down can be read again, and reads the same."""

import os
from pathlib import Path

import msgspec
import pytest

from gpufeed.clock import SystemClock
from gpufeed.errors import SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.ids import LaneId
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.sources.contract import Board, Desk
from gpufeed.sources.files import HeldFile, Tree
from gpufeed.sources.keeping import Keeper

HOST = tuple(source for source in BUILTIN if source.name != "nvml")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "sys").mkdir()
    config = ProbeConfig(
        procfs=str(tmp_path / "proc"),
        sysfs=str(tmp_path / "sys"),
        rootfs=str(tmp_path),
        runtime_dir=str(tmp_path),
        capture_dir=str(tmp_path / "kept"),
    )
    return Desk(lane=LaneId("x"), clock=SystemClock(), config=config, board=Board())


def test_a_file_lies_where_its_links_lead_and_the_links_stay_links(desk: Desk, tmp_path: Path) -> None:
    sys = tmp_path / "sys"
    (sys / "devices/pci0000:17/card/ports").mkdir(parents=True)
    (sys / "devices/pci0000:17/card/ports/state").write_text("4: ACTIVE\n", encoding="ascii")
    (sys / "class/net").mkdir(parents=True)
    (sys / "class/net/ib0").symlink_to("../../devices/pci0000:17/card")
    tree = Tree(str(sys), desk)
    assert tree.names("class/net") == ("ib0",)
    assert tree.attribute("class/net/ib0/ports/state") == b"4: ACTIVE\n"
    assert tree.link("class/net/ib0") == "card"
    kept = tmp_path / "kept/sysfs"
    assert (kept / "class/net/ib0").readlink() == Path("../../devices/pci0000:17/card")
    assert (kept / "devices/pci0000:17/card/ports/state").read_bytes() == b"4: ACTIVE\n"
    again = Tree(str(kept), desk)
    assert again.names("class/net") == ("ib0",)
    assert again.attribute("class/net/ib0/ports/state") == b"4: ACTIVE\n"
    assert again.target("class/net/ib0") == "../../devices/pci0000:17/card"


def test_a_file_that_refuses_refuses_in_the_copy_and_one_that_is_not_there_is_not(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "sys/broken/.read-fails").mkdir(parents=True)
    tree = Tree(str(tmp_path / "sys"), desk)
    for path in ("broken", "nothing"):
        with pytest.raises(SourceError):
            tree.attribute(path)
    with pytest.raises(SourceError):
        HeldFile(str(tmp_path / "sys"), "broken", desk).read()
    assert (tmp_path / "kept/sysfs/broken/.read-fails").is_dir()
    assert not (tmp_path / "kept/sysfs/nothing").exists()


def test_an_absolute_link_within_the_tree_stays_within_and_one_out_of_it_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a/file").write_text("x", encoding="ascii")
    (root / "in").symlink_to(root / "a")
    (root / "out").symlink_to("/etc")
    (root / "loop").symlink_to("loop")
    keeper = Keeper(str(root), tmp_path / "kept")
    keeper.saw("in/file", b"x")
    keeper.saw("out/passwd", b"root")
    keeper.saw("loop/file", b"x")
    keeper.saw("a/../a/file", b"x")
    assert (tmp_path / "kept/in").readlink() == Path("a")
    assert (tmp_path / "kept/in/file").read_bytes() == b"x"
    assert not list((tmp_path / "kept").rglob("passwd"))


def test_of_an_environment_only_what_slurm_sets_is_kept(tmp_path: Path) -> None:
    keeper = Keeper(str(tmp_path), tmp_path / "kept")
    keeper.saw("7/environ", b"SECRET=hunter2\0SLURM_JOB_ID=12\0HOME=/home/alice\0")
    assert (tmp_path / "kept/7/environ").read_bytes() == b"SLURM_JOB_ID=12\0"
    keeper.saw("8/environ", b"SECRET=hunter2\0")
    assert (tmp_path / "kept/8/environ").read_bytes() == b""


def test_a_listing_brings_what_is_listed_and_a_look_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "d/sub").mkdir(parents=True)
    (tmp_path / "d/file").touch()
    (tmp_path / "d/link").symlink_to("sub")
    keeper = Keeper(str(tmp_path), tmp_path / "kept")
    keeper.saw("d", ["file", "link", "sub"])
    keeper.saw("d/file", os.lstat(tmp_path / "d/file"))
    kept = tmp_path / "kept/d"
    assert (kept / "file").is_file()
    assert (kept / "sub").is_dir()
    assert (kept / "link").readlink() == Path("sub")
    keeper.saw("d/sub", b"no file")  # a folder stands there
    assert (kept / "sub").is_dir()


def test_a_disk_that_is_full_is_nobodys_trouble(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file where the copy should go", encoding="ascii")
    keeper = Keeper(str(tmp_path), tmp_path / "kept")
    keeper.saw("a", b"x")
    keeper.saw("b", ["x"])
    keeper.refused("c", PermissionError(13, "no"))


def test_a_captured_node_reads_as_the_node_did(tmp_path: Path) -> None:
    clock = SteppedClock()
    with SteppedNode("healthy", "h100", 2, root=tmp_path / "node", clock=clock) as node:
        told = node.config()
        kept = msgspec.structs.replace(told, simulated=None, capture_dir=str(tmp_path / "kept"))
        first = InlineProbe(kept, HOST, clock, node.is_blocked)
        read = first.tick()
        first.close()
        copied = {name: str(tmp_path / "kept" / name) for name in ("procfs", "sysfs", "rootfs")}
        again = msgspec.structs.replace(told, simulated=None, **copied)
        second = InlineProbe(again, HOST, clock, node.is_blocked)
        reread = second.tick()
        second.close()
    one = {(reading.lane, reading.group): reading.samples for reading in read.readings}
    other = {(reading.lane, reading.group): reading.samples for reading in reread.readings}
    assert set(one) == set(other)
    assert sum(map(len, one.values())) > 25
    differing = [key for key, samples in one.items() if samples != other[key]]
    assert differing == []
