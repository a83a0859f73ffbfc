# SPDX-License-Identifier: Apache-2.0
"""A recording folds to the same state and text, at many times real time; what is none, or damaged, is said so."""

import contextlib
import io
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exposition.stories import tell
from gpufeed import step as fold
from gpufeed.cli import main
from gpufeed.clock import read_frame_time
from gpufeed.commands.replay import Replay
from gpufeed.daemon.frames import opening_of
from gpufeed.explain.explain import explain
from gpufeed.history.states import StateHistory
from gpufeed.model.frame import Frame, FrameTime, Reading
from gpufeed.model.gpu import GpuIdentity
from gpufeed.model.host import NodeInfo
from gpufeed.model.ids import GpuKey, GpuUuid, GroupName, LaneId, StorageKey
from gpufeed.model.storage import StorageInfo
from gpufeed.probe.inline import InlineProbe
from gpufeed.redaction import Redaction
from gpufeed.signals.settings import Capacity, Settings
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.wire.messages import PROTOCOL_VERSION
from gpufeed.wire.recording import MAGIC, Header, Reader, RecordingError, Writer
from gpufeed.wire.redacted import FrameRedaction

S = 1_000_000_000
SECONDS = 20
SETTINGS = Settings(expected_gpus=8, storage_capacity={StorageKey("nfs", "/data"): Capacity(read_bytes_per_s=5e9)})


class Recorded:
    def __init__(self, root: Path) -> None:
        clock = SteppedClock()
        simulated = SteppedNode("storage_starved", gpus=8, root=root, clock=clock)
        begun = read_frame_time(clock)
        self.node, self.history = fold.initial(SETTINGS, begun), StateHistory()
        stream = io.BytesIO()
        writer = Writer(stream, Header(PROTOCOL_VERSION, "1.2.3", begun, SETTINGS, is_simulated=True))
        self.count = 0
        with simulated:
            probe = InlineProbe(simulated.config(), BUILTIN, clock, simulated.is_blocked)
            for _ in range(2 * SECONDS):
                frame = probe.tick()
                writer.add(frame)
                writer.flush()
                self.count += 1
                self.node = fold.step(self.node, frame)
                self.history.append(self.node.state)
                simulated.advance(S // 2)
            probe.close()
        writer.close()
        self.data = stream.getvalue()

    def lines(self) -> tuple[str, ...]:
        return explain(
            self.node.state, self.history.slots, 300, hostname="", is_simulated=True, has_job_names=True
        ).lines


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("node"))


def read(data: bytes) -> tuple[Replay, str]:
    replay = Replay(Reader(io.BytesIO(data)))
    return replay, replay.run(None)


def test_a_replay_has_the_same_state_and_the_same_text(recorded: Recorded) -> None:
    replay, damage = read(recorded.data)
    assert damage == ""
    assert replay.count == recorded.count
    assert replay.node == recorded.node
    told = explain(replay.node.state, replay.history.slots, 300, hostname="", is_simulated=True, has_job_names=True)
    assert told.lines == recorded.lines()
    assert any("waiting for storage" in line for line in told.lines)


def test_a_replay_is_printed_as_text_json_and_metrics(
    recorded: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "case"
    file.write_bytes(recorded.data)
    assert main(["replay", str(file)]) == 0
    assert "waiting for storage" in capsys.readouterr().out
    assert main(["replay", "--format=json", str(file)]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["parts"][0]["cause"] == "storage"
    assert main(["replay", "--format=metrics", "--at=5s", str(file)]) == 0
    early = capsys.readouterr().out
    assert main(["replay", "--format=metrics", str(file)]) == 0
    late = capsys.readouterr().out
    tracked = 'gpufeed_gpu_tracked_seconds_total{gpu="0",'
    assert 0 < value(early, tracked) < value(late, tracked) < SECONDS
    assert main(["replay", "--window=1h", str(file)]) == 2
    assert main(["replay", "--at=soon", str(file)]) == 2
    assert main(["replay", str(tmp_path / "none")]) == 2


def value(page: str, begin: str) -> float:
    return next(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(begin))


def test_a_recording_that_was_cut_off_tells_what_is_whole_and_says_so(
    recorded: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "case"
    file.write_bytes(recorded.data[: len(recorded.data) // 2])
    assert main(["replay", str(file)]) == 1
    said = capsys.readouterr()
    assert "it is cut off" in said.err
    assert "frames, recorded by gpufeed 1.2.3, of a simulated node" in said.out
    without_end, damage = read(recorded.data[:-4])
    assert without_end.count == recorded.count
    assert "cut off" in damage


def test_a_damaged_block_is_named(recorded: Recorded) -> None:
    middle = len(recorded.data) // 2
    bent = recorded.data[:middle] + bytes([recorded.data[middle] ^ 1]) + recorded.data[middle + 1 :]
    replay, damage = read(bent)
    assert 0 < replay.count < recorded.count
    assert "damaged" in damage


def header(**changes: object) -> bytes:
    stream = io.BytesIO()
    told: dict[str, object] = {
        "protocol": PROTOCOL_VERSION, "version": "1.2.3", "time": FrameTime(0, 0, 0), "settings": Settings(), **changes
    }  # fmt: skip
    Writer(stream, Header(**told)).close()  # type: ignore[arg-type] # fields by name
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no recording of gpufeed"),
        (b"\x1f\x8b" + bytes(100), "no recording of gpufeed"),
        (MAGIC.replace(b"1", b"7"), "form 7"),
        (MAGIC, "cut off"),
        (MAGIC + bytes(4), "header cannot be read"),
        (MAGIC + b"\xff" * 12, "damaged"),
        (header(protocol=0, version="0.0.9"), "recorded by gpufeed 0.0.9 with wire version 0; this one reads"),
    ],
)
def test_what_is_no_recording_is_refused_with_the_reason(
    data: bytes, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "case"
    file.write_bytes(data)
    assert main(["replay", str(file)]) == 1
    assert why in capsys.readouterr().err


def test_an_empty_recording_is_whole() -> None:
    replay, damage = read(header())
    assert (replay.count, damage) == (0, "")


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_raise_anything_else(data: bytes, is_behind_magic: bool) -> None:
    with contextlib.suppress(RecordingError):
        list(Reader(io.BytesIO((MAGIC if is_behind_magic else b"") + data)).frames())


def reading(*samples: object) -> Frame:
    one = Reading(
        lane=LaneId("a"), collector="nvml", group=GroupName("nvml.slow"), began_ns=0, ended_ns=1, period_ns=S,
        samples=samples,  # type: ignore[arg-type] # real samples
    )  # fmt: skip
    return Frame(sequence=1, time=FrameTime(0, 0, 0), readings=(one,))


def test_names_are_replaced_the_same_by_the_same_and_numbers_stay() -> None:
    uuid = GpuUuid("GPU-12345678-1234-1234-1234-1234567890ab")
    gpu = GpuIdentity(gpu=GpuKey(uuid), index=0, serial="1320000000001")
    host = NodeInfo(nodename="train07.example.com", machine_id="0123456789abcdef0123456789abcdef")
    mount = StorageInfo(storage=StorageKey("nfs", "filer.example.com:/export"), source="filer.example.com:/export")
    frames = FrameRedaction(Redaction(b"k" * 32, {"train07"}))
    one, two = frames.frame(reading(gpu, host, mount)), frames.frame(reading(gpu))
    text = msgspec.json.encode(one).decode()
    for secret in ("12345678-1234", "1320000000001", "train07", "0123456789abcdef", "filer"):
        assert secret not in text
    assert one.readings[0].samples[0] == two.readings[0].samples[0]
    shown = one.readings[0].samples[2]
    assert isinstance(shown, StorageInfo)
    assert shown.storage.target == shown.source
    assert frames.settings(Settings(storage_capacity={StorageKey("nfs", "filer.example.com:/export"): Capacity()})) == (
        Settings(storage_capacity={StorageKey("nfs", str(shown.source)): Capacity()})
    )
    assert frames.frame(Frame(sequence=3, time=FrameTime(1, 2, 3))).time == FrameTime(1, 2, 3)


def test_a_recording_begins_with_all_that_is_known_though_it_is_said_once_a_minute_only(tmp_path: Path) -> None:
    told = tell("healthy", 12, tmp_path)
    node = fold.step(fold.initial(Settings(), told.time), opening_of(told))
    assert node.state.samples == told.samples
    assert {uuid: gpu.identity for uuid, gpu in node.state.gpus.items()} == {
        uuid: gpu.identity for uuid, gpu in told.gpus.items()
    }
    assert node.state.inputs == told.inputs
