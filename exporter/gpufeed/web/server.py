# SPDX-License-Identifier: Apache-2.0
"""The app on its sockets, behind its guard."""

import asyncio
import logging
import socket
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from gpufeed.web.app import build
from gpufeed.web.endpoints import Endpoints
from gpufeed.web.guard import KEEP_ALIVE_S, FoldedErrors, Guard
from gpufeed.web.sockets import is_loopback_only

_DRAIN_S: Final = 1.0
_http_log: Final = logging.getLogger("gpufeed.web.http")


class WebServer:
    """Serves from `start` to `stop`."""

    def __init__(self, endpoints: Endpoints, guard: Guard | None = None) -> None:
        self._endpoints = endpoints
        self._guard = guard if guard is not None else Guard()
        self._errors = FoldedErrors()
        self._listeners: list[asyncio.Server] = []
        self._runner: web.AppRunner | None = None
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def rejected(self) -> int:
        """Connections above the cap and requests that were not HTTP, since the start."""
        return self._guard.refused + self._errors.count

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Listen on bound sockets. They are closed with us."""
        app = build(self._endpoints, self._guard, is_loopback_only=is_loopback_only(sockets))
        _http_log.setLevel(logging.DEBUG)  # some of what is folded is said at that level only
        _http_log.addFilter(self._errors)
        self._runner = web.AppRunner(app, access_log=None, logger=_http_log, keepalive_timeout=KEEP_ALIVE_S)
        await self._runner.setup()
        server = self._runner.server
        if server is None:
            raise RuntimeError("the runner made no server")
        loop = asyncio.get_running_loop()
        for one in sockets:
            self._listeners.append(await loop.create_server(self._guard.protocol_of(server), sock=one))
        self._sweeper = asyncio.create_task(self._guard.sweep(server), name="web-sweep")

    def close_listeners(self) -> None:
        """Take no more connections; a successor can bind at once."""
        for listener in self._listeners:
            listener.close()

    async def stop(self) -> None:
        """Close listeners, let answers under way finish within a second, close everything."""
        self.close_listeners()
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._runner is not None and self._runner.server is not None:
            await self._runner.server.shutdown(_DRAIN_S)
            await self._runner.cleanup()
        _http_log.removeFilter(self._errors)
