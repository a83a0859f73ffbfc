# SPDX-License-Identifier: Apache-2.0
"""Every captured node: the page has what its files hold, no series more, none less, none twice.

The files are read a second time by the test. Cases of ours lie in tests/captures; GPUFEED_CAPTURES names a directory
with more, of real nodes, whose licences do not let all of them lie here.
"""

import os
from pathlib import Path

import pytest

from captured.pages import FORMATS, once, page_of, series_of
from captured.second_node import everything
from captured.second_reader import Node, differences
from captured.trees import OURS as ALL
from captured.trees import unpack

FOLDER = os.environ.get("GPUFEED_CAPTURES")
OURS = tuple(name for name in ALL if name != "jobs")  # those are held to what people read in them
ALONE = {"pressure-switched-off"}  # has the files of another case


def captured() -> list[Path]:
    found = sorted(Path(FOLDER).glob("*/*")) if FOLDER else []
    return [root for root in found if (root / "sys").is_dir() or (root / "proc").is_dir()]


def test_there_are_cases_of_every_kind() -> None:
    kinds = {name.partition("-")[0] for name in OURS}
    assert {"infiniband", "net", "disks", "nfs", "lustre", "ceph", "gds", "pressure"} <= kinds


@pytest.mark.parametrize("name", OURS)
def test_a_page_has_what_the_files_of_a_node_say(name: str, tmp_path: Path) -> None:
    root = unpack(name, tmp_path / "node")
    expected = everything(Node(root))
    assert len(expected.series) > 3  # of pressure alone
    assert list(differences(expected, series_of(page_of(root, tmp_path)))) == []


@pytest.fixture(scope="module")
def whole_node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node that has all of it at once: what one file does to its neighbours shows here."""
    root = tmp_path_factory.mktemp("node")
    for name in OURS:
        if name not in ALONE:
            unpack(name, root)
    return root


@pytest.mark.parametrize("form", FORMATS)
def test_the_command_prints_what_the_files_of_a_node_say(form: str, whole_node: Path) -> None:
    expected = everything(Node(whole_node))
    assert len(expected.series) > 400
    assert list(differences(expected, series_of(once(whole_node, form), form))) == []


@pytest.mark.skipif(not FOLDER, reason="GPUFEED_CAPTURES names no directory with captures of real nodes")
@pytest.mark.parametrize("root", captured(), ids=lambda root: f"{root.parent.name}-{root.name}")
def test_the_command_prints_what_the_files_of_a_captured_node_say(root: Path) -> None:
    expected = everything(Node(root))
    for form in FORMATS:
        assert list(differences(expected, series_of(once(root, form), form))) == []
