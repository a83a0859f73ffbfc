# SPDX-License-Identifier: Apache-2.0
"""The block's layout as documented, and that readers never see half of a write."""

import struct
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.simulate.block import (
    FLOATS,
    GPU_BYTES,
    INTS,
    POSITION,
    BlockReader,
    BlockWriter,
    Header,
    Moment,
    TornBlockError,
    block_bytes,
)


def header(turn: int = 0, now_ns: int = 5) -> Header:
    return Header(
        gpus=2, now_ns=now_ns, wall_ns=6, period_ns=7, has_driver=True, fault_bytes=0, fault_turn=turn,
        model="h100", driver_version="570.124.06",
    )  # fmt: skip


def record(value: float) -> tuple[float | int, ...]:
    return (*(value for _ in FLOATS), *(int(value) for _ in INTS))


def test_numbers_stand_where_the_docstring_says(tmp_path: Path) -> None:
    path = tmp_path / "truth"
    writer = BlockWriter(str(path), 2)
    writer.write(header(turn=3), [record(1.5), record(2.5)], b"[]")
    data = path.read_bytes()
    assert data[:8] == b"GPFTRUTH"
    assert struct.unpack_from("<9q", data, 8) == (1, 2, 2, 5, 6, 7, 1, 2, 3)
    assert data[80:96].rstrip(b"\0") == b"h100"
    assert data[96:128].rstrip(b"\0") == b"570.124.06"
    assert struct.unpack_from("<d", data, 128) == (1.5,)
    assert struct.unpack_from("<d", data, 128 + GPU_BYTES) == (2.5,)
    assert struct.unpack_from("<q", data, 128 + 8 * len(FLOATS)) == (1,)
    assert data[128 + 2 * GPU_BYTES :][:2] == b"[]"
    assert len(data) == block_bytes(2)
    writer.close()


@given(st.floats(allow_nan=False), st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, value: float, whole: int) -> None:
    path = tmp_path_factory.mktemp("block") / "truth"
    writer = BlockWriter(str(path), 1)
    written = (*(value for _ in FLOATS), *(whole for _ in INTS))
    writer.write(header(), [written], b"")
    reader = BlockReader(str(path))
    moment = reader.read(0)
    assert moment.value("energy_j") == value
    assert moment.whole("xids") == whole
    assert (moment.header.now_ns, moment.header.model) == (5, "h100")
    reader.close()
    writer.close()


def test_a_gpu_that_is_not_there_has_no_record(tmp_path: Path) -> None:
    writer = BlockWriter(str(tmp_path / "truth"), 2)
    writer.write(header(), [record(1), record(2)], b"")
    reader = BlockReader(str(tmp_path / "truth"))
    assert reader.read().record == reader.read(2).record == reader.read(-1).record == ()


def test_a_reader_sees_all_of_a_write_or_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "truth")
    writer = BlockWriter(path, 2)
    writer.write(header(now_ns=0), [record(0), record(0)], b"")
    stop = threading.Event()

    def write() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            writer.write(header(now_ns=turn), [record(turn), record(turn)], b"")

    thread = threading.Thread(target=write)
    thread.start()
    reader = BlockReader(path)
    try:
        seen: dict[int, Moment] = {}
        while len(seen) < 20:
            moment = reader.read(1)
            seen[moment.header.now_ns] = moment
    finally:
        stop.set()
        thread.join()
    assert all(set(moment.record) == {moment.header.now_ns} for moment in seen.values() if moment.record[0])


def test_a_write_that_never_ends_is_said(tmp_path: Path) -> None:
    path = tmp_path / "truth"
    BlockWriter(str(path), 1).write(header(), [record(1)], b"")
    content = bytearray(path.read_bytes())
    content[24] += 1
    path.write_bytes(content)
    with pytest.raises(TornBlockError, match="half written"):
        BlockReader(str(path)).read(0)


def test_another_file_is_no_truth(tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(b"something else entirely")
    with pytest.raises(TornBlockError, match="not a truth block"):
        BlockReader(str(path))


def test_every_number_is_aligned() -> None:
    assert GPU_BYTES == 8 * (len(FLOATS) + len(INTS)) == 8 * len(POSITION)
