# SPDX-License-Identifier: Apache-2.0
"""Messages on a byte stream: four bytes of length, big-endian, then one MessagePack message. Both ways capped."""

from collections.abc import Iterator
from typing import Final

import msgspec

from gpufeed.errors import WireError
from gpufeed.wire.messages import MAX_MESSAGE_BYTES, Message
from gpufeed.wire.salvage import salvage_frame

LENGTH_BYTES: Final = 4

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Message)


def encode(message: Message) -> bytes:
    """The message, framed. Raises WireError where it is too large or holds what cannot cross the wire."""
    try:
        body = _encoder.encode(message)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise WireError(f"{type(message).__name__} cannot be encoded: {error}") from error
    if len(body) > MAX_MESSAGE_BYTES:
        raise WireError(f"{type(message).__name__} of {len(body)} bytes is over the cap of {MAX_MESSAGE_BYTES}")
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def decode(body: bytes | memoryview) -> Message:
    """One message without its length. Raises WireError.

    A frame with a reading that does not fit its type is kept without that reading, which becomes a failure.
    """
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError as error:
        return salvage_frame(body, str(error))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise WireError(f"not a message: {error}") from error


class Decoder:
    """Takes bytes as they come. After a WireError the stream is lost: where the next message begins is unknown."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._error: WireError | None = None

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that `data` completes. Raises WireError, again at every later call."""
        if self._error is not None:
            raise self._error
        self._buffer += data
        try:
            yield from self._complete()
        except WireError as error:
            self._error = error
            raise

    def _complete(self) -> Iterator[Message]:
        while len(self._buffer) >= LENGTH_BYTES:
            length = int.from_bytes(self._buffer[:LENGTH_BYTES], "big")
            if length > MAX_MESSAGE_BYTES:
                raise WireError(f"a message of {length} bytes is announced, over the cap of {MAX_MESSAGE_BYTES}")
            end = LENGTH_BYTES + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[LENGTH_BYTES:end])
            del self._buffer[:end]
            yield decode(body)
