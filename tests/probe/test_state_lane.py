# SPDX-License-Identifier: Apache-2.0
"""Blobs: whole or not at all, and every trouble with them said."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import Broken
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.probe.state_lane import MAX_BLOB_BYTES, Mailbox, StateKeeper, load_blob, save_blob
from gpufeed.simulate.clock import SteppedClock
from gpufeed.sources.contract import Board, Desk, Reader
from gpufeed.wire.messages import Blob, BlobSaved

READ = GroupName("state.orders")


class Station:
    """A state lane's reader over a folder, and what it answered."""

    def __init__(self, folder: Path | None) -> None:
        self.answers: list[Blob | BlobSaved] = []
        self.mailbox = Mailbox(self.answers.append)
        config = ProbeConfig(runtime_dir="/nowhere", state_dir=None if folder is None else str(folder))
        (plan,) = self.mailbox.plan(config)
        desk = Desk(lane=LaneId("state"), clock=SteppedClock(), config=config, board=Board())
        self.reader: Reader = plan.open(plan.spec, desk)
        assert isinstance(self.reader, StateKeeper)


def test_what_was_saved_is_found(tmp_path: Path) -> None:
    station = Station(tmp_path / "state")
    station.mailbox.put(Blob(name="node", data=b"\x00data"))
    station.reader.read(READ)
    station.mailbox.put(Blob(name="node", data=None))
    station.reader.read(READ)
    assert station.answers == [BlobSaved(name="node"), Blob(name="node", data=b"\x00data")]


def test_only_the_newest_order_of_a_name_is_carried_out(tmp_path: Path) -> None:
    station = Station(tmp_path)
    for data in (b"old", b"new"):
        station.mailbox.put(Blob(name="node", data=data))
    station.reader.read(READ)
    assert station.answers == [BlobSaved(name="node")]
    assert load_blob(tmp_path, "node") == b"new"


def test_the_last_order_is_carried_out_on_closing(tmp_path: Path) -> None:
    station = Station(tmp_path)
    station.mailbox.put(Blob(name="node", data=b"last"))
    station.reader.close()
    assert load_blob(tmp_path, "node") == b"last"


def test_a_blob_that_is_not_there_is_none(tmp_path: Path) -> None:
    station = Station(tmp_path)
    station.mailbox.put(Blob(name="node", data=None))
    station.reader.read(READ)
    assert station.answers == [Blob(name="node", data=None)]


def test_without_a_state_directory_nothing_is_kept_and_that_is_said() -> None:
    station = Station(None)
    station.mailbox.put(Blob(name="node", data=b"x"))
    station.mailbox.put(Blob(name="alerts", data=None))
    station.reader.read(READ)
    assert station.answers == [
        BlobSaved(name="node", error="no state directory is configured"),
        Blob(name="alerts", data=None),
    ]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda text: text[:-1], id="cut"),
        pytest.param(lambda text: text[:-1] + b"?", id="changed"),
        pytest.param(lambda text: b"other" + text, id="of another kind"),
        pytest.param(lambda text: text[:0], id="empty"),
        pytest.param(lambda text: text + bytes(MAX_BLOB_BYTES), id="too large"),
    ],
)
def test_a_damaged_blob_is_none_and_named_as_broken(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    save_blob(tmp_path, "node", b"data")
    path = tmp_path / "node.blob"
    path.write_bytes(damage(path.read_bytes()))
    station = Station(tmp_path)
    station.mailbox.put(Blob(name="node", data=None))
    with pytest.raises(Broken, match="node"):
        station.reader.read(READ)
    assert station.answers == [Blob(name="node", data=None)]


def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    station = Station(tmp_path / "file")
    station.mailbox.put(Blob(name="node", data=b"x"))
    station.reader.read(READ)
    (answer,) = station.answers
    assert isinstance(answer, BlobSaved)
    assert "file" in answer.error


def test_a_full_disk_is_said_and_keeps_the_old_blob(tmp_path: Path) -> None:
    save_blob(tmp_path, "node", b"old")
    (tmp_path / "node.fresh").symlink_to("/dev/full")
    station = Station(tmp_path)
    station.mailbox.put(Blob(name="node", data=b"new"))
    station.reader.read(READ)
    (answer,) = station.answers
    assert isinstance(answer, BlobSaved)
    assert "No space left" in answer.error
    assert load_blob(tmp_path, "node") == b"old"


@pytest.mark.parametrize("name", ["", "../etc", "a/b", "Upper", "a" * 65])
def test_a_name_that_is_a_path_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        save_blob(tmp_path, name, b"x")


def test_a_blob_over_the_cap_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="over the cap"):
        save_blob(tmp_path, "node", bytes(MAX_BLOB_BYTES + 1))


@given(data=st.binary(max_size=200))
def test_any_data_comes_back(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("state")
    save_blob(folder, "node", data)
    assert load_blob(folder, "node") == data
