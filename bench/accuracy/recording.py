# SPDX-License-Identifier: Apache-2.0
"""What a shard showed and what was true of it, on disk: to judge a changed product again needs no node."""

import zlib
from collections.abc import Iterator, Sequence
from os import getpid
from pathlib import Path
from shutil import rmtree
from typing import IO, Final

import msgspec

from bench.accuracy.timeline import Seconds
from gpufeed.model.frame import Frame

Shown = tuple[int, Frame]
"""The number of the face, and what it sent."""
Bins = list[list[Seconds]]
"""Truth by GPU and bin."""

_LENGTH_BYTES: Final = 4
_CHUNK_BYTES: Final = 1 << 18
_LEVEL: Final = 1
"""Of compression: more takes longer than it would take to live again."""
_Written = list[list[list[tuple[str, str, float]]]]


class Recording:
    """Of one shard: frames in one file, the truth in another, which is there only once all frames are."""

    def __init__(self, folder: Path, name: str) -> None:
        self._frames = folder / f"{name}.frames"
        self._truth = folder / f"{name}.truth"

    @property
    def is_there(self) -> bool:
        """Whether it was lived to its end."""
        return self._truth.exists()

    def truth(self) -> Bins:
        """What was true. Raises OSError where it is not there."""
        written = msgspec.msgpack.decode(self._truth.read_bytes(), type=_Written)
        return [[{(state, why): spent_s for state, why, spent_s in of} for of in bins] for bins in written]

    def play(self) -> Iterator[Shown]:
        """All frames, in their order. Raises OSError where they are not there."""
        decode = msgspec.msgpack.Decoder(Shown).decode
        rest = b""
        with self._frames.open("rb") as file:
            inflate = zlib.decompressobj()
            while packed := file.read(_CHUNK_BYTES):
                rest += inflate.decompress(packed)
                at = 0
                while at + _LENGTH_BYTES <= len(rest):
                    end = at + _LENGTH_BYTES + int.from_bytes(rest[at : at + _LENGTH_BYTES], "big")
                    if end > len(rest):
                        break
                    yield decode(rest[at + _LENGTH_BYTES : end])
                    at = end
                rest = rest[at:]

    def keep(self, shown: Iterator[Shown]) -> Iterator[Shown]:
        """The same frames, written down on their way. Nothing is there before `finish`."""
        self._frames.parent.mkdir(parents=True, exist_ok=True)
        draft = self._frames.with_suffix(f".{getpid()}.part")
        with draft.open("wb") as file:
            yield from _written(shown, file)
        draft.replace(self._frames)

    def finish(self, truth: Sequence[Sequence[Seconds]]) -> None:
        """All frames are there, and this was true."""
        draft = self._truth.with_suffix(f".{getpid()}.part")
        written = [[[(*cause, spent_s) for cause, spent_s in of.items()] for of in bins] for bins in truth]
        draft.write_bytes(msgspec.msgpack.encode(written))
        draft.replace(self._truth)


def forget_others(folder: Path) -> None:
    """Recordings of simulators that are no more: what was shown by another is of no use to this one."""
    for other in folder.parent.glob("*") if folder.parent.is_dir() else ():
        if other != folder and other.is_dir():
            rmtree(other, ignore_errors=True)


def _written(shown: Iterator[Shown], file: IO[bytes]) -> Iterator[Shown]:
    encode, deflate = msgspec.msgpack.Encoder().encode, zlib.compressobj(_LEVEL)
    for each in shown:
        packed = encode(each)
        file.write(deflate.compress(len(packed).to_bytes(_LENGTH_BYTES, "big") + packed))
        yield each
    file.write(deflate.flush())
