# SPDX-License-Identifier: Apache-2.0
"""The routes."""

import time
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from gpufeed.units import NS_PER_S
from gpufeed.web.access.door import Door
from gpufeed.web.api import Api
from gpufeed.web.assets import ASSETS, PREFIX
from gpufeed.web.endpoints import Endpoints
from gpufeed.web.guard import Guard, Handler
from gpufeed.web.health import healthy, ready, reload
from gpufeed.web.live import Live, Snapshot
from gpufeed.web.metrics import Metrics
from gpufeed.web.origin import refuse_foreign_host
from gpufeed.web.page import POLICY, page
from gpufeed.web.sections import sections
from gpufeed.web.shape import NodeView
from gpufeed.web.timeline import LONGEST_S
from gpufeed.web.view import view
from gpufeed.web.view_gpu import history

MAX_BODY_BYTES: Final = 1024
_EVERYWHERE: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_KEPT: Final = {"Cache-Control": "public, max-age=31536000, immutable"}  # an address that carries the hash


def build(
    endpoints: Endpoints,
    guard: Guard,
    *,
    has_metrics: bool = True,
    live: Live | None = None,
    is_loopback_only: bool = False,
    door: Door | None = None,
) -> web.Application:
    """The application that serves `endpoints`: metrics or the page, or both; the page only with `live`."""
    checks = [_only_own_name] if is_loopback_only else []
    if door is not None:
        checks.append(door.middleware)
    app = web.Application(middlewares=[guard.middleware, *checks], client_max_size=MAX_BODY_BYTES)
    if door is not None:
        app.on_response_prepare.append(door.add_headers)
    app.on_response_prepare.append(_add_headers)
    app.router.add_get("/-/healthy", healthy)
    if has_metrics:
        app.router.add_get(endpoints.telemetry_path, Metrics(endpoints).answer)
        app.router.add_get("/-/ready", ready(endpoints))
        app.router.add_route("*", "/-/reload", reload(endpoints))
    if live is not None:
        api = Api(endpoints)
        app.router.add_get("/", _page(endpoints, has_metrics=has_metrics))
        app.router.add_get(PREFIX + "{name}", _asset)
        app.router.add_get("/api/v1/status", api.status)
        app.router.add_get("/api/v1/history", api.history)
        app.router.add_get("/api/v1/explain", api.explain)
        app.router.add_get("/api/v1/openapi.json", api.describe)
        app.router.add_get("/api/v1/events", live.answer, allow_head=False)
    return app


def snapshot(endpoints: Endpoints) -> Snapshot:
    """The sections of the page now."""
    return _drawn(endpoints)[1]


def _drawn(endpoints: Endpoints) -> tuple[NodeView, Snapshot]:
    node, state = view(endpoints), endpoints.state()
    past = history(state, endpoints, state.time.monotonic_ns - LONGEST_S * NS_PER_S)
    when = time.strftime("%H:%M:%S UTC", time.gmtime(node.time_seconds))
    return node, Snapshot(when, node.version, sections(node, past))


@web.middleware
async def _only_own_name(request: web.Request, handler: Handler) -> web.StreamResponse:
    refuse_foreign_host(request)
    return await handler(request)


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    for name, value in _EVERYWHERE.items():
        response.headers.setdefault(name, value)
    response.headers["Server"] = "gpufeed"  # without versions of what is below


def _page(endpoints: Endpoints, *, has_metrics: bool) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_: web.Request) -> web.StreamResponse:
        node, drawn = _drawn(endpoints)
        text = page(node, drawn.sections, endpoints.telemetry_path if has_metrics else None)
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
        return web.Response(text=text, content_type="text/html", headers=headers)

    return answer


async def _asset(request: web.Request) -> web.StreamResponse:
    asset = ASSETS.get(request.match_info["name"])
    if asset is None:
        raise web.HTTPNotFound
    return web.Response(body=asset.body, content_type=asset.content_type, headers=_KEPT)
