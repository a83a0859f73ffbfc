# SPDX-License-Identifier: Apache-2.0
"""Liveness, readiness and reload, with Prometheus' own paths and answers."""

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from gpufeed.errors import ConfigError
from gpufeed.web.endpoints import Endpoints
from gpufeed.web.origin import refuse_other_sites

_ALLOWED: Final = ("POST", "PUT")


async def healthy(_: web.Request) -> web.StreamResponse:
    """The event loop runs: that is all this says."""
    return web.Response(text="gpufeed is healthy\n")


def ready(endpoints: Endpoints) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """503 until everything is started. Does not wait for a driver."""

    async def answer(_: web.Request) -> web.StreamResponse:
        if endpoints.is_ready():
            return web.Response(text="gpufeed is ready\n")
        raise web.HTTPServiceUnavailable(text="gpufeed is starting\n")

    return answer


def reload(endpoints: Endpoints) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Read the configuration again: POST or PUT, when switched on, and not from a page of another site."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.method not in _ALLOWED:
            raise web.HTTPMethodNotAllowed(request.method, _ALLOWED, text="POST or PUT\n")
        if not endpoints.options().has_lifecycle:
            raise web.HTTPForbidden(text="switched off; --web.enable-lifecycle switches it on, SIGHUP always works\n")
        refuse_other_sites(request)
        try:
            await endpoints.reload()
        except ConfigError as error:
            text = f"the configuration is wrong, the old one stays in force:\n{error}\n"
            return web.Response(status=web.HTTPInternalServerError.status_code, text=text)
        return web.Response(text="reloaded\n")

    return answer
