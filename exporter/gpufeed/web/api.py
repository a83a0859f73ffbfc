# SPDX-License-Identifier: Apache-2.0
"""The JSON API: status and history. Its description is made from the same types that are sent."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from aiohttp import web

from gpufeed.explain.shape import Explanation
from gpufeed.units import NS_PER_S
from gpufeed.web.assets import packaged
from gpufeed.web.endpoints import Endpoints
from gpufeed.web.shape import History, NodeView, Problem
from gpufeed.web.view import event, view
from gpufeed.web.view_gpu import history

MAX_WINDOW_S: Final = 1800
DEFAULT_WINDOW_S: Final = 900
EXPLAINED_WINDOW_S: Final = 300
_FRESH: Final = {"Cache-Control": "no-store"}


class Api:
    """Answers in JSON, from the state there is."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints

    async def status(self, _: web.Request) -> web.StreamResponse:
        """The node now."""
        return _json(view(self._endpoints))

    async def history(self, request: web.Request) -> web.StreamResponse:
        """Where the time of every GPU went during the last `window_seconds`. 400 for a wrong one."""
        try:
            window_s = _window_s(request.query)
        except ValueError as error:
            return _json(Problem(str(error)), status=400)
        state = self._endpoints.state()
        past = history(state, self._endpoints, state.time.monotonic_ns - window_s * NS_PER_S)
        changes = tuple(event(one) for one in self._endpoints.events())
        return _json(msgspec.structs.replace(past, events=changes))

    async def explain(self, request: web.Request) -> web.StreamResponse:
        """Where the time of every GPU went during the last `window_seconds`, and why. 400 for a wrong one."""
        try:
            window_s = _window_s(request.query, EXPLAINED_WINDOW_S)
        except ValueError as error:
            return _json(Problem(str(error)), status=400)
        return _json(self._endpoints.explain(window_s, self._endpoints.options().has_job_names))

    async def describe(self, _: web.Request) -> web.StreamResponse:
        """This API in OpenAPI's form."""
        return web.Response(body=packaged("openapi.json"), content_type="application/json", headers=_FRESH)


def description() -> dict[str, Any]:
    """What `static/openapi.json` holds; a test compares."""
    _, components = msgspec.json.schema_components(
        (NodeView, History, Explanation, Problem), ref_template="#/components/schemas/{name}"
    )
    window: dict[str, Any] = {
        "name": "window_seconds",
        "in": "query",
        "description": "How far back.",
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_WINDOW_S, "default": DEFAULT_WINDOW_S},
    }
    explained = {**window, "schema": {**window["schema"], "default": EXPLAINED_WINDOW_S}}
    refused = {"400": _answer("Problem", "A parameter is wrong.")}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "gpufeed",
            "version": "1",
            "description": "One node: what its GPUs do and did. Fields are only ever added. null: not measured.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/api/v1/status": {"get": _operation("status", "The node now.", "NodeView")},
            "/api/v1/history": {
                "get": _operation("history", "The recent past of every GPU.", "History", (window,), refused)
            },
            "/api/v1/explain": {
                "get": _operation(
                    "explain", "Where the time of every GPU went, and why.", "Explanation", (explained,), refused
                )
            },
        },
        "components": {"schemas": dict(sorted(components.items()))},
    }


def _operation(
    name: str, summary: str, answer: str, parameters: tuple[Any, ...] = (), others: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "parameters": list(parameters),
        "responses": {"200": _answer(answer, summary), **(others or {})},
    }


def _answer(schema: str, text: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": text, "content": content}


def _window_s(query: Mapping[str, str], otherwise_s: int = DEFAULT_WINDOW_S) -> int:
    unknown = sorted(set(query) - {"window_seconds"})
    if unknown:
        raise ValueError(f"no such parameter: {unknown[0]}; there is window_seconds")
    text = query.get("window_seconds", str(otherwise_s))
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_WINDOW_S))):
        raise ValueError(f"window_seconds: a whole number from 1 to {MAX_WINDOW_S}")
    if not 1 <= int(text) <= MAX_WINDOW_S:
        raise ValueError(f"window_seconds: a whole number from 1 to {MAX_WINDOW_S}")
    return int(text)


def _json(body: msgspec.Struct, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json", headers=_FRESH)
