# SPDX-License-Identifier: Apache-2.0
"""A recording: frames as they came over the wire, compressed, with what is needed to fold them again.

A line that names the form, then blocks: length, CRC-32, zlib data. The first block is the header, each other one holds
framed messages; a block of length 0 is the end. What is read may come from anybody: everything is bounded and checked.
"""

import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

import msgspec

from gpufeed.errors import GpufeedError, WireError
from gpufeed.model.frame import Frame, FrameTime
from gpufeed.signals.settings import Settings
from gpufeed.wire.framing import Decoder, encode
from gpufeed.wire.messages import MAX_MESSAGE_BYTES, PROTOCOL_VERSION

FAMILY: Final = b"gpufeed recording "
MAGIC: Final = FAMILY + b"1\n"
BLOCK_BYTES: Final = 512 * 1024
_MAX_BLOCK_BYTES: Final = MAX_MESSAGE_BYTES + BLOCK_BYTES
_MAX_HEADER_BYTES: Final = 64 * 1024
_WORD: Final = 4


class RecordingError(GpufeedError):
    """What was given is no recording, or not a whole one, or one that this version does not read."""


class Header(msgspec.Struct, frozen=True, array_like=True, tag="recording"):
    """How the recording was made. Fields are only ever added at the end, with a default."""

    protocol: int
    version: str  # of the gpufeed that recorded
    time: FrameTime  # where the fold begins
    settings: Settings
    is_simulated: bool = False
    is_redacted: bool = True


class Writer:
    """Writes frames to a stream; `close` makes it whole."""

    def __init__(self, stream: BinaryIO, header: Header) -> None:
        self._stream = stream
        self._waiting = bytearray()
        self.written_bytes = stream.write(MAGIC)
        self._block(msgspec.msgpack.encode(header))

    def add(self, frame: Frame) -> None:
        """One more. Raises WireError, OSError."""
        self._waiting += encode(frame)
        if len(self._waiting) >= BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what waits. Raises OSError."""
        if self._waiting:
            self._block(bytes(self._waiting))
            self._waiting.clear()

    def close(self) -> None:
        """Write what waits, and the end. Raises OSError."""
        self.flush()
        self.written_bytes += self._stream.write(bytes(_WORD))
        self._stream.flush()

    def _block(self, data: bytes) -> None:
        packed = zlib.compress(data)
        sums = zlib.crc32(packed).to_bytes(_WORD, "big")
        self.written_bytes += self._stream.write(len(packed).to_bytes(_WORD, "big") + sums + packed)


class Reader:
    """Reads one recording from a stream."""

    def __init__(self, stream: BinaryIO) -> None:
        """Reads as far as the header. Raises RecordingError."""
        self._stream = stream
        self._number = 0
        magic = stream.readline(len(MAGIC) + 8)
        if not magic.startswith(FAMILY):
            raise RecordingError("this is no recording of gpufeed")
        if magic != MAGIC:
            form = magic[len(FAMILY) :].decode("ascii", "replace").strip()
            raise RecordingError(
                f"a recording of form {form}; this version reads form 1: take the gpufeed that made it"
            )
        self.header = self._header()

    def frames(self) -> Iterator[Frame]:
        """Its frames in order. Raises RecordingError where it is damaged, after those before the damage."""
        while (data := self._data(_MAX_BLOCK_BYTES)) is not None:
            try:
                for message in Decoder().feed(data):
                    if not isinstance(message, Frame):
                        raise RecordingError(f"block {self._number} holds something else than frames")
                    yield message
            except WireError as error:
                raise RecordingError(f"block {self._number}: {error}") from None

    def _header(self) -> Header:
        data = self._data(_MAX_HEADER_BYTES)
        try:
            protocol, version = _made_by(data or b"")
            if protocol != PROTOCOL_VERSION:
                raise RecordingError(
                    f"recorded by gpufeed {version} with wire version {protocol}; this one reads {PROTOCOL_VERSION}: "
                    "replay it with the gpufeed that made it"
                )
            return msgspec.msgpack.decode(data or b"", type=Header)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise RecordingError(f"its header cannot be read: {error}") from None

    def _data(self, cap: int) -> bytes | None:
        """The next block; None at the end. Raises RecordingError."""
        length = int.from_bytes(self._exactly(_WORD), "big")
        if length == 0:
            return None
        self._number += 1
        if length > cap:
            raise RecordingError(f"block {self._number} says it has {length} bytes: it is damaged")
        sums, packed = self._exactly(_WORD), self._exactly(length)
        if zlib.crc32(packed).to_bytes(_WORD, "big") != sums:
            raise RecordingError(f"block {self._number} is damaged: its checksum is wrong")
        unpacking = zlib.decompressobj()
        try:
            data = unpacking.decompress(packed, cap)
        except zlib.error as error:
            raise RecordingError(f"block {self._number} is damaged: {error}") from None
        if not unpacking.eof:
            raise RecordingError(f"block {self._number} unpacks to more than {cap} bytes")
        return data

    def _exactly(self, length: int) -> bytes:
        data = self._stream.read(length)
        if len(data) != length:
            raise RecordingError("it is cut off: the copy is not complete, or whoever recorded was killed")
        return data


def _made_by(data: bytes) -> tuple[int, str]:
    """Of any version's header. Raises ValueError, msgspec.DecodeError."""
    parts = msgspec.msgpack.decode(data)
    if not isinstance(parts, list) or len(parts) < 3 or parts[0] != "recording" or not isinstance(parts[1], int):  # noqa: PLR2004 tag, protocol, version
        raise ValueError("it is of no known form")
    return parts[1], str(parts[2])[:40]
