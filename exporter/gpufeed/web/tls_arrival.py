# SPDX-License-Identifier: Apache-2.0
"""A connection before its TLS handshake is done: counted, bounded in time, with the settings in force as it arrives."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import Final

HANDSHAKE_S: Final = 5.0


class TlsArrivals:
    """Makes the protocols of TLS connections; `count` shake hands now."""

    def __init__(self, context: Callable[[], ssl.SSLContext]) -> None:
        self._context = context
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def count(self) -> int:
        """Connections whose handshake is under way."""
        return len(self._tasks)

    def wrap(self, make: Callable[[], asyncio.Protocol]) -> asyncio.Protocol:
        """A protocol for a plain connection, which hands it to one of `make` once it is encrypted."""
        return _Arrival(lambda transport: self._begin(transport, make))

    async def close(self) -> None:
        """End every handshake under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, transport: asyncio.Transport, make: Callable[[], asyncio.Protocol]) -> None:
        task = asyncio.get_running_loop().create_task(self._shake(transport, make), name="tls-handshake")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _shake(self, transport: asyncio.Transport, make: Callable[[], asyncio.Protocol]) -> None:
        early = _Early()
        loop = asyncio.get_running_loop()
        try:
            encrypted = await loop.start_tls(
                transport, early, self._context(), server_side=True, ssl_handshake_timeout=HANDSHAKE_S
            )
        except (OSError, asyncio.CancelledError):  # ssl.SSLError and TimeoutError are OSErrors: what clients do
            with contextlib.suppress(OSError):
                transport.abort()
            return
        if encrypted is not None:
            early.hand_over(encrypted, make())


class _Arrival(asyncio.Protocol):
    """Of the plain connection: nothing is read by it."""

    def __init__(self, begin: Callable[[asyncio.Transport], None]) -> None:
        self._begin = begin

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            transport.pause_reading()
            self._begin(transport)


class _Early(asyncio.Protocol):
    """Keeps what a client sends in one breath with the end of its handshake, until its protocol is there."""

    def __init__(self) -> None:
        self._data: list[bytes] = []
        self._is_over = False

    def data_received(self, data: bytes) -> None:
        self._data.append(data)

    def eof_received(self) -> bool | None:
        self._is_over = True
        return None

    def connection_lost(self, _: Exception | None) -> None:
        self._is_over = True

    def hand_over(self, transport: asyncio.Transport, protocol: asyncio.Protocol) -> None:
        """The handshake is done: everything from here on, and what came before, is the protocol's."""
        if self._is_over:
            transport.abort()
            return
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        for data in self._data:
            protocol.data_received(data)
