# SPDX-License-Identifier: Apache-2.0
"""The app on its sockets, behind its guard."""

import asyncio
import logging
import socket
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from gpufeed.web.access.door import Door
from gpufeed.web.app import build, snapshot
from gpufeed.web.endpoints import Endpoints
from gpufeed.web.guard import KEEP_ALIVE_S, FoldedErrors, Guard
from gpufeed.web.live import Live
from gpufeed.web.sockets import is_loopback_only
from gpufeed.web.tls_arrival import TlsArrivals

_DRAIN_S: Final = 1.0
_http_log: Final = logging.getLogger("gpufeed.web.http")


class WebServer:
    """Serves from `start` to `stop`."""

    def __init__(self, endpoints: Endpoints, guard: Guard | None = None, door: Door | None = None) -> None:
        self._endpoints = endpoints
        self._door = door
        self._tls = TlsArrivals(door.current_context) if door is not None and door.context is not None else None
        self._guard = guard if guard is not None else Guard()
        self._ui_guard = self._guard  # of its own, where the page has its own listener
        self._errors = FoldedErrors()
        self._listeners: list[asyncio.Server] = []
        self._runners: list[web.AppRunner] = []
        self._sweepers: list[asyncio.Task[None]] = []
        self._live: Live | None = None

    @property
    def rejected(self) -> int:
        """Connections above the cap and requests that were not HTTP, since the start."""
        return sum(guard.refused for guard in {self._guard, self._ui_guard}) + self._errors.count

    async def start(self, sockets: Sequence[socket.socket], ui_sockets: Sequence[socket.socket] = ()) -> None:
        """Listen on bound sockets; the page on `ui_sockets`, where there are any. All are closed with us."""
        _http_log.setLevel(logging.DEBUG)  # some of what is folded is said at that level only
        _http_log.addFilter(self._errors)
        if ui_sockets:
            self._ui_guard = Guard()
        if self._endpoints.has_ui:
            self._live = Live(lambda: snapshot(self._endpoints), self._ui_guard)
        if self._door is not None:
            self._sweepers.append(asyncio.create_task(self._door.follow(), name="web-config"))
        await self._serve(sockets, self._guard, live=None if ui_sockets else self._live)
        if ui_sockets:
            await self._serve(ui_sockets, self._ui_guard, has_metrics=False, live=self._live)

    async def _serve(
        self, sockets: Sequence[socket.socket], guard: Guard, *, has_metrics: bool = True, live: Live | None
    ) -> None:
        loopback = is_loopback_only(sockets)
        app = build(
            self._endpoints, guard, has_metrics=has_metrics, live=live, is_loopback_only=loopback, door=self._door
        )
        runner = web.AppRunner(app, access_log=None, logger=_http_log, keepalive_timeout=KEEP_ALIVE_S)
        self._runners.append(runner)
        await runner.setup()
        server = runner.server
        if server is None:
            raise RuntimeError("the runner made no server")
        loop = asyncio.get_running_loop()
        for one in sockets:
            made = guard.protocol_of(server, self._tls)
            self._listeners.append(await loop.create_server(made, sock=one, backlog=guard.max_connections))
        self._sweepers.append(asyncio.create_task(guard.sweep(server), name="web-sweep"))

    def close_listeners(self) -> None:
        """Take no more connections; a successor can bind at once."""
        for listener in self._listeners:
            listener.close()

    async def stop(self) -> None:
        """Close listeners, end streams, let answers under way finish within a second, close everything."""
        self.close_listeners()
        if self._live is not None:
            await self._live.close()
        for sweeper in self._sweepers:
            sweeper.cancel()
        if self._tls is not None:
            await self._tls.close()
        for runner in self._runners:
            if runner.server is not None:
                await runner.server.shutdown(_DRAIN_S)
                await runner.cleanup()
        _http_log.removeFilter(self._errors)
