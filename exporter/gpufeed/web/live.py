# SPDX-License-Identifier: Apache-2.0
"""Sections of the page as server-sent events: made once for all who watch, only what changed, only while any watches.

A client that reads slowly misses states between, never gets old ones; one that does not read at all is let go. What
waits for a client is at most one event.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from aiohttp import web

from gpufeed.web.guard import Guard
from gpufeed.web.markup import Markup

MAX_CLIENTS: Final = 50
PERIOD_S: Final = 1.0
TAKE_WITHIN_S: Final = 20.0
"""Longest that one event may wait for a client."""

_HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # proxies would keep events until they have many
}


class Snapshot(msgspec.Struct, frozen=True):
    """The page at one moment."""

    when: str
    version: str
    sections: Mapping[str, Markup]


class Live:
    """Makes events while anybody watches."""

    def __init__(self, look: Callable[[], Snapshot], guard: Guard, period_s: float = PERIOD_S) -> None:
        self._look = look
        self._guard = guard
        self._period_s = period_s
        self._clients = 0
        self._number = 0
        self._changed_at: dict[str, int] = {}  # section: number of the look that found it changed
        self._last: Snapshot | None = None
        self._events: dict[int, bytes] = {}  # for clients that have seen a number
        self._news = asyncio.Condition()
        self._looking: asyncio.Task[None] | None = None
        self._is_closed = False

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Events until the client goes, stops reading, or we end. 503 when too many watch."""
        if self._is_closed or self._clients >= MAX_CLIENTS:
            raise web.HTTPServiceUnavailable(
                text="too many watch; the page itself is at /\n", headers={"Retry-After": "5"}
            )
        self._clients += 1
        try:
            response = web.StreamResponse(headers=_HEADERS)
            self._guard.put_off(request, TAKE_WITHIN_S)
            await response.prepare(request)
            await self._serve(request, response)
        finally:
            self._clients -= 1
        return response

    async def close(self) -> None:
        """End all streams now."""
        self._is_closed = True
        if self._looking is not None:
            self._looking.cancel()
        async with self._news:
            self._news.notify_all()

    async def _serve(self, request: web.Request, response: web.StreamResponse) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._keep_looking(), name="web-live")
        seen = 0
        while not self._is_closed:
            self._guard.put_off(request, TAKE_WITHIN_S)
            async with self._news:
                await self._news.wait_for(lambda: self._is_closed or self._number > seen)  # noqa: B023 awaited here
            event, seen = self._event(seen), self._number
            if self._is_closed or request.transport is None or request.transport.is_closing():
                return
            self._guard.put_off(request, TAKE_WITHIN_S)
            await response.write(event)

    async def _keep_looking(self) -> None:
        while self._clients > 0:
            snapshot = self._look()
            self._number += 1
            known = self._last.sections if self._last is not None else {}
            for name, text in snapshot.sections.items():
                if known.get(name) != text:
                    self._changed_at[name] = self._number
            self._last = snapshot
            self._events.clear()
            async with self._news:
                self._news.notify_all()
            await asyncio.sleep(self._period_s)

    def _event(self, seen: int) -> bytes:
        """What changed since a client has seen look number `seen`; an event without sections says that we live."""
        if self._last is None:
            return b": nothing yet\n\n"
        if seen not in self._events:
            changed = {name: str(text) for name, text in self._last.sections.items() if self._changed_at[name] > seen}
            data = {"when": self._last.when, "version": self._last.version, "sections": changed}
            self._events[seen] = b"event: sections\ndata: " + msgspec.json.encode(data) + b"\n\n"
        return self._events[seen]
