# SPDX-License-Identifier: Apache-2.0
"""The metrics endpoint: how many scrapes at once, and how what is asked for is handed on."""

from typing import Final

from aiohttp import web

from gpufeed.web.endpoints import Endpoints, RequestError, ScrapePage, ScrapeRequest

_RETRY_AFTER_S: Final = "1"


class Metrics:
    """Answers scrapes from what was read last; never waits for hardware."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._under_way = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The series asked for. 400 for a wrong filter, 503 above the limit."""
        limit = self._endpoints.options().max_requests
        if limit and self._under_way >= limit:
            text = f"{self._under_way} scrapes are under way, which is the limit; try again\n"
            raise web.HTTPServiceUnavailable(text=text, headers={"Retry-After": _RETRY_AFTER_S})
        self._under_way += 1
        try:
            return await _send(request, self._endpoints.scrape(_asked(request)))
        except RequestError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from None
        finally:
            self._under_way -= 1


def _asked(request: web.Request) -> ScrapeRequest:
    return ScrapeRequest(
        accept=",".join(request.headers.getall("Accept", [])),
        accept_encoding=",".join(request.headers.getall("Accept-Encoding", [])),
        collect=tuple(request.query.getall("collect[]", [])),
        exclude=tuple(request.query.getall("exclude[]", [])),
    )


async def _send(request: web.Request, page: ScrapePage) -> web.StreamResponse:
    headers = {
        "Content-Type": page.content_type,
        "Vary": "Accept, Accept-Encoding",
        "Cache-Control": "no-store",
    }
    if page.is_gzip:
        headers["Content-Encoding"] = "gzip"
    response = web.Response(body=page.body, headers=headers)
    await response.prepare(request)
    await response.write_eof()  # here, so that a slow reader counts as a scrape under way
    return response
