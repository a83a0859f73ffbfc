# SPDX-License-Identifier: Apache-2.0
"""The routes."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import web

from gpufeed.web.endpoints import Endpoints
from gpufeed.web.guard import Guard, Handler
from gpufeed.web.health import healthy, ready, reload
from gpufeed.web.metrics import Metrics
from gpufeed.web.origin import refuse_foreign_host
from gpufeed.web.page import POLICY, page
from gpufeed.web.view import view

MAX_BODY_BYTES: Final = 1024
_EVERYWHERE: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


def build(endpoints: Endpoints, guard: Guard, *, is_loopback_only: bool = False) -> web.Application:
    """The application that serves `endpoints`."""
    checks = [_only_own_name] if is_loopback_only else []
    app = web.Application(middlewares=[guard.middleware, *checks], client_max_size=MAX_BODY_BYTES)
    app.on_response_prepare.append(_add_headers)
    app.router.add_get(endpoints.telemetry_path, Metrics(endpoints).answer)
    app.router.add_get("/-/healthy", healthy)
    app.router.add_get("/-/ready", ready(endpoints))
    app.router.add_route("*", "/-/reload", reload(endpoints))
    if endpoints.has_ui:
        app.router.add_get("/", _page(endpoints))
        app.router.add_get("/api/v1/status", _status(endpoints))
    return app


@web.middleware
async def _only_own_name(request: web.Request, handler: Handler) -> web.StreamResponse:
    refuse_foreign_host(request)
    return await handler(request)


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    for name, value in _EVERYWHERE.items():
        response.headers.setdefault(name, value)
    response.headers["Server"] = "gpufeed"  # without versions of what is below


def _page(endpoints: Endpoints) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_: web.Request) -> web.StreamResponse:
        text = page(view(endpoints), endpoints.telemetry_path)
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
        return web.Response(text=text, content_type="text/html", headers=headers)

    return answer


def _status(endpoints: Endpoints) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_: web.Request) -> web.StreamResponse:
        body = msgspec.json.encode(view(endpoints))
        return web.Response(body=body, content_type="application/json", headers={"Cache-Control": "no-store"})

    return answer
