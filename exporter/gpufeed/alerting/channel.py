# SPDX-License-Identifier: Apache-2.0
"""The way to one receiver: HTTP with its credentials, and nothing that it could lead us astray with."""

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

import gpufeed
from gpufeed.alerting.resolver import LaneResolver, is_link_local
from gpufeed.config.alerting import Receiver
from gpufeed.errors import LaneStuck, Unreachable
from gpufeed.regular_file import read_regular
from gpufeed.units import NS_PER_S
from gpufeed.wire.server_lane import ServerLane

MAX_ANSWER_BYTES: Final = 4_096
MAX_SECRET_BYTES: Final = 16_384
FILES_WITHIN_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a receiver said. `date_wall_ns` is its clock, to the second."""

    status: int
    text: str
    date_wall_ns: int | None


class Channel:
    """Posts to one receiver. Follows no redirect, keeps no cookie, reads no proxy from the environment."""

    def __init__(self, receiver: Receiver, url: str) -> None:
        self._receiver = receiver
        self._url = url
        self._names = ServerLane("dns")
        self._files = ServerLane("secrets")
        self._session: ClientSession | None = None

    async def post(self, body: bytes) -> Answer:
        """One request. Raises Unreachable."""
        host = urlsplit(self._url).hostname or ""
        if is_link_local(host):
            raise Unreachable(f"{host} is an address of the local link")
        try:
            return await self._posted(body)
        except (TimeoutError, LaneStuck):
            raise Unreachable("no answer in time") from None
        except (aiohttp.ClientError, OSError, ValueError, RuntimeError) as error:
            raise Unreachable(f"{type(error).__name__}: {error}") from None

    async def close(self) -> None:
        """Let go of connections."""
        if self._session is not None:
            await self._session.close()

    async def _posted(self, body: bytes) -> Answer:
        if self._session is None:
            self._session = await self._opened()
        tls = self._receiver.tls
        async with self._session.post(
            self._url,
            data=body,
            headers=await self._files.run(self._headers, timeout_s=FILES_WITHIN_S),
            allow_redirects=False,
            server_hostname=tls.server_name if tls is not None else None,
        ) as response:
            text = await response.content.read(MAX_ANSWER_BYTES)
            date_ns = _date_ns(response.headers.get("Date"))
            return Answer(response.status, text.decode("utf-8", "replace"), date_ns)

    async def _opened(self) -> ClientSession:
        context = await self._files.run(self._context, timeout_s=FILES_WITHIN_S)
        connector = TCPConnector(resolver=LaneResolver(self._names), limit=1, ssl=context, ttl_dns_cache=60)
        return ClientSession(
            connector=connector,
            timeout=ClientTimeout(total=self._receiver.timeout.seconds),
            cookie_jar=DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
        )

    def _context(self) -> ssl.SSLContext | bool:
        """May block: reads certificates."""
        tls = self._receiver.tls
        if urlsplit(self._url).scheme != "https":
            return True
        context = ssl.create_default_context(cafile=tls.ca_file if tls is not None else None)
        if tls is not None and tls.cert_file is not None:
            context.load_cert_chain(tls.cert_file, tls.key_file)
        return context

    def _headers(self) -> Mapping[str, str]:
        """May block: reads secrets, anew for every request, because they rotate."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"gpufeed/{gpufeed.__version__}",
            "Accept-Encoding": "identity",
        }
        receiver = self._receiver
        if receiver.bearer_token_file is not None:
            headers["Authorization"] = f"Bearer {_secret(receiver.bearer_token_file)}"
        auth = receiver.basic_auth
        if auth is not None:
            password = _secret(auth.password_file) if auth.password_file is not None else auth.password or ""
            pair = base64.b64encode(f"{auth.username}:{password}".encode()).decode()
            headers["Authorization"] = f"Basic {pair}"
        return headers


def receiver_name(url: str) -> str:
    """A receiver in logs and labels: its host and port, without what may be secret in a URL."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def _secret(path: str) -> str:
    return read_regular(path, MAX_SECRET_BYTES).decode().strip()


def _date_ns(text: str | None) -> int | None:
    try:
        return None if text is None else int(parsedate_to_datetime(text).timestamp()) * NS_PER_S
    except (ValueError, TypeError, OverflowError):
        return None
