# SPDX-License-Identifier: Apache-2.0
"""Receivers of alerts on loopback that do what a test tells them, and remember what they were sent."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from aiohttp import web

Answer = Callable[[list[Any]], tuple[int, dict[str, str]]]


def _ok(_: object) -> tuple[int, dict[str, str]]:
    return 200, {}


@dataclass
class RecordedReceiver:
    """Answers as told; `ahead` is its clock against ours."""

    answer: Answer = _ok
    ahead: timedelta = timedelta()
    body: str = ""
    requests: list[web.Request] = field(default_factory=list)
    posts: list[Any] = field(default_factory=list)
    url: str = ""
    _runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._on_request)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        assert self._runner.addresses
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def alerts(self) -> list[dict[str, Any]]:
        """Every alert that was posted and taken, one after the other."""
        return [alert for post in self.posts if isinstance(post, list) for alert in post]

    async def _on_request(self, request: web.Request) -> web.Response:
        sent = json.loads(await request.read())
        self.requests.append(request)
        status, headers = self.answer(sent)
        if status == 200:
            self.posts.append(sent)
        date = format_datetime(datetime.now(UTC) + self.ahead, usegmt=True)
        return web.Response(status=status, text=self.body, headers={"Date": date, **headers})
