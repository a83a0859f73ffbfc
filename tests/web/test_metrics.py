# SPDX-License-Identifier: Apache-2.0
"""Scrapes: what is asked for is handed on, what comes back is sent, and how many at once."""

import asyncio
import gzip

import aiohttp

from gpufeed.web.endpoints import ScrapeRequest
from serving import Node, Serve


async def test_what_is_asked_for_is_handed_on_as_it_came(node: Node, serve: Serve) -> None:
    served = await serve(node)
    headers = {"Accept": "text/plain;q=0.5", "Accept-Encoding": "identity"}
    async with served.client.get(
        served.url + "/metrics?collect[]=nvml&collect%5B%5D=nfs&exclude[]=host", headers=headers
    ) as answer:
        assert answer.status == 200
        assert await answer.read() == b"a 1\n"
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert "Content-Encoding" not in answer.headers
    asked = ScrapeRequest(
        accept="text/plain;q=0.5", accept_encoding="identity", collect=("nvml", "nfs"), exclude=("host",)
    )
    assert node.asked == [asked]


async def test_a_compressed_page_says_so(node: Node, serve: Serve) -> None:
    served = await serve(node)
    async with served.client.get(served.url + "/metrics", headers={"Accept-Encoding": "gzip"}) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(await answer.read()) == b"a 1\n"


async def test_a_wrong_request_is_a_400_that_says_why(node: Node, serve: Serve) -> None:
    node.refusal = "no such collector"
    served = await serve(node)
    async with served.client.get(served.url + "/metrics?collect[]=x") as answer:
        assert (answer.status, await answer.text()) == (400, "no such collector\n")


async def test_above_the_limit_is_a_503_that_says_when_to_come_again(node: Node, serve: Serve) -> None:
    node.allow(max_requests=1)
    node.body = b"x" * 64_000_000  # more than the sockets' buffers hold
    served = await serve(node)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1024)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readline()
    async with served.client.get(served.url + "/metrics") as answer:
        assert answer.status == 503
        assert answer.headers["Retry-After"] == "1"
    writer.transport.abort()
    node.body = b"a 1\n"
    async with asyncio.timeout(10):
        while await status_of(served.client, served.url + "/metrics") != 200:
            pass


async def status_of(client: aiohttp.ClientSession, url: str) -> int:
    async with client.get(url) as answer:
        return answer.status


async def test_head_and_wrong_methods(node: Node, serve: Serve) -> None:
    served = await serve(node)
    async with served.client.head(served.url + "/metrics") as answer:
        assert (answer.status, await answer.read()) == (200, b"")
    async with served.client.post(served.url + "/metrics") as answer:
        assert answer.status == 405
