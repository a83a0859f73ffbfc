# SPDX-License-Identifier: Apache-2.0
"""The server's end of the socket to one probe: bytes in, messages out, and the other way; nothing here blocks."""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from gpufeed.errors import WireError
from gpufeed.wire.framing import Decoder, encode
from gpufeed.wire.messages import MAX_MESSAGE_BYTES, Message

MAX_UNSENT_BYTES: Final = 4 * MAX_MESSAGE_BYTES
"""A probe that takes nothing of this much is not listening."""


class Link(asyncio.Protocol):
    """Tells of each message, and once of the end and its reason."""

    def __init__(self, on_message: Callable[[Message], None], on_end: Callable[[str], None]) -> None:
        self._on_message = on_message
        self._on_end = on_end
        self._decoder = Decoder()
        self._transport: asyncio.Transport | None = None
        self._has_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is ours."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Bytes came: hand on the messages they complete."""
        try:
            for message in self._decoder.feed(data):
                self._on_message(message)
        except WireError as error:
            self._end(f"the probe sent nonsense: {error}")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - a reset, when it left bytes unread
        """The process ended: nobody else has the other end."""
        self._end("the probe ended")

    def send(self, message: Message) -> None:
        """Queue a message. Raises WireError where it cannot be framed."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        transport.write(encode(message))
        if transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self._end("the probe does not read")

    def close(self) -> None:
        """Drop the socket at once; `on_end` is not called for it."""
        self._has_ended = True
        if self._transport is not None:
            self._transport.abort()

    def _end(self, reason: str) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._on_end(reason)
