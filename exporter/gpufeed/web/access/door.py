# SPDX-License-Identifier: Apache-2.0
"""What is in force at the door, and the file followed: a change that is wrong leaves the old in force."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from aiohttp import web

from gpufeed.errors import ConfigError, LaneStuck
from gpufeed.logs import fields
from gpufeed.web.access.passwords import Passwords
from gpufeed.web.access.rate import Bucket
from gpufeed.web.access.read import Access, read, signature
from gpufeed.web.access.tls import names
from gpufeed.wire.server_lane import ServerLane

LOOK_EVERY_S: Final = 1.0
_READ_WITHIN_S: Final = 10.0
_log: Final = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Door:
    """Decides about every request, in the toolkit's order: rate, headers, password."""

    def __init__(self, access: Access) -> None:
        """Made from settings that `read` found right; `access.files[0]` is the file to follow."""
        self.access = access
        self._path = access.files[0]
        self._lane = ServerLane("web-config")
        self._passwords = Passwords()
        self._bucket: Bucket | None = None
        self._tried = access.signature
        self._problem = ""

    @property
    def context(self) -> ssl.SSLContext | None:
        """For a connection made now; None without TLS."""
        return self.access.context

    def current_context(self) -> ssl.SSLContext:
        """The same where TLS is on. Raises LookupError where it is not."""
        if self.access.context is None:
            raise LookupError("served without TLS")
        return self.access.context

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Pass on who may ask; 429, 401, or an end of the connection for others."""
        config = self.access.config
        if not self._may_pass():
            raise web.HTTPTooManyRequests(text="too many requests; rate_limit of the web configuration says how many\n")
        allowed = config.tls_server_config.client_allowed_sans
        transport = request.transport
        if allowed and transport is not None and names(transport.get_extra_info("peercert")).isdisjoint(allowed):
            transport.abort()
            raise web.HTTPForbidden(text="this certificate has none of the names that are allowed\n")
        if config.basic_auth_users:
            await self._authenticate(request)
        return await handler(request)

    async def add_headers(self, _: web.Request, response: web.StreamResponse) -> None:
        """The configured headers, where the answer has none of its own."""
        for name, value in self.access.config.http_server_config.headers.items():
            response.headers.setdefault(name, value)

    async def follow(self) -> None:
        """Put changes of the file, and of those it names, in force; for ever."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self._look()
            except (TimeoutError, LaneStuck):
                continue  # the file system is stuck; what is in force stays

    async def _look(self) -> None:
        found = await self._lane.run(signature, self.access.files, timeout_s=_READ_WITHIN_S)
        if found == self._tried and not self._problem:
            return  # while there is a problem, it may be with a file that is named only now: looked at every time
        self._tried = found
        try:
            new = await self._lane.run(read, self._path, timeout_s=_READ_WITHIN_S)
            self._put_in_force(new)
        except ConfigError as error:
            self._say(str(error))
            return
        self._tried, self._problem = new.signature, ""

    def _say(self, problem: str) -> None:
        if problem != self._problem:
            _log.error("the web configuration is wrong, the old one stays in force", extra=fields(reason=problem))
        self._problem = problem

    def _put_in_force(self, new: Access) -> None:
        if (new.context is None) != (self.access.context is None):
            raise ConfigError((f"{self._path}: TLS is switched on and off only with a restart",))
        self.access = new
        _log.info("web configuration changed", extra=fields(file=self._path))

    def _may_pass(self) -> bool:
        now_s = asyncio.get_running_loop().time()
        if self._bucket is None or self._bucket.limit != self.access.config.rate_limit:
            self._bucket = Bucket(self.access.config.rate_limit, now_s)
        return self._bucket.take(now_s)

    async def _authenticate(self, request: web.Request) -> None:
        users = self.access.config.basic_auth_users
        try:
            is_right = await self._passwords.are_right(request.headers.get("Authorization"), users)
        except (TimeoutError, LaneStuck):
            raise web.HTTPServiceUnavailable(text="too many passwords to check; try again\n") from None
        if not is_right:
            raise web.HTTPUnauthorized(text="Unauthorized\n", headers={"WWW-Authenticate": "Basic"})


def door(path: Path | str) -> Door:
    """The door that a web configuration file describes. Blocks. Raises ConfigError."""
    return Door(read(path))
