# SPDX-License-Identifier: Apache-2.0
"""Bounds on what clients can hold: connections, and the time for a header, an answer and doing nothing.

aiohttp has none of these: a client that connects and says nothing stays for ever, and enough of them take every
descriptor. Only its public attributes are used.
"""

import asyncio
import logging
import resource
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from gpufeed.web.tls_arrival import TlsArrivals

MAX_CONNECTIONS: Final = 80  # 50 may watch the page; a flood of them still fits the backlog of a socket
LEAST_CONNECTIONS: Final = 8
KEPT_DESCRIPTORS: Final = 64
"""For everything else that the server has open."""
HEADER_RECEIPT_S: Final = 5.0
KEEP_ALIVE_S: Final = 30.0
ANSWER_S: Final = 30.0
_SWEEP_S: Final = 0.5

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def max_connections() -> int:
    """As many as this process has descriptors for: as many again may be accepted before they are refused."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(LEAST_CONNECTIONS, min(MAX_CONNECTIONS, (soft - KEPT_DESCRIPTORS) // 2))


class _Refused(asyncio.Protocol):
    """A connection above the cap: reset at once, so that it costs no descriptor."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            transport.abort()


class Guard:
    """Makes the protocols of new connections, and ends those that outstay their time."""

    def __init__(self, header_receipt_s: float = HEADER_RECEIPT_S, keep_alive_s: float = KEEP_ALIVE_S) -> None:
        self._header_receipt_s = header_receipt_s
        self._keep_alive_s = keep_alive_s
        self.max_connections = max_connections()
        self._deadlines: dict[asyncio.BaseProtocol, float] = {}  # loop time; answering ones have none
        self._answers: dict[asyncio.BaseProtocol, asyncio.Timeout] = {}  # under way, and when each is to be done
        self._arriving = 0  # made, but not among the server's connections before the loop's next turn
        self.refused = 0

    def protocol_of(self, server: web.Server, tls: TlsArrivals | None = None) -> Callable[[], asyncio.Protocol]:
        """The protocol factory to listen with; connections are encrypted by `tls`, where there is one."""

        def make() -> asyncio.Protocol:
            shaking = tls.count if tls is not None else 0
            if len(server.connections) + self._arriving + shaking >= self.max_connections:
                self.refused += 1
                return _Refused()
            self._arriving += 1  # the loop accepts a whole backlog before it tells any protocol of its connection
            asyncio.get_running_loop().call_soon(self._arrive)
            return server() if tls is None else tls.wrap(server)

        return make

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer within `ANSWER_S`, writing included; the connection is not swept meanwhile."""
        protocol = request.protocol
        transport = request.transport
        try:
            async with asyncio.timeout(ANSWER_S) as deadline:
                self._answers[protocol] = deadline
                response = await handler(request)
                await response.prepare(request)
                await response.write_eof()
        except ConnectionError:
            return web.Response(status=499)
        except TimeoutError:
            if transport is not None:
                transport.abort()
            return web.Response(status=408)
        finally:
            self._answers.pop(protocol, None)
            self._deadlines[protocol] = asyncio.get_running_loop().time() + self._keep_alive_s
        return response

    def put_off(self, request: web.Request, within_s: float) -> None:
        """For an answer that is a stream: what comes next is due within so many seconds."""
        deadline = self._answers.get(request.protocol)
        if deadline is not None:
            deadline.reschedule(asyncio.get_running_loop().time() + within_s)

    async def sweep(self, server: web.Server) -> None:
        """End, for ever, connections that neither wait for an answer nor are within their time."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_SWEEP_S)
            self._sweep_once(server, loop.time())

    def _arrive(self) -> None:
        self._arriving -= 1

    def _sweep_once(self, server: web.Server, now_s: float) -> None:
        connections = server.connections
        for gone in self._deadlines.keys() - set(connections):
            del self._deadlines[gone]
        for connection in connections:
            deadline_s = self._deadlines.setdefault(connection, now_s + self._header_receipt_s)
            if connection in self._answers or now_s < deadline_s:
                continue
            transport = connection.transport
            connection.force_close()
            if isinstance(transport, asyncio.Transport):
                transport.abort()  # a client that does not read would keep a closing transport open


class FoldedErrors(logging.Filter):
    """Counts what clients get wrong instead of logging it: no byte of theirs reaches the log."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep a record only where an error of our own is behind it."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and type(error).__module__.partition(".")[0] != "aiohttp":
            record.msg, record.args = "a request handler failed", ()
            return True
        self.count += 1
        return False
